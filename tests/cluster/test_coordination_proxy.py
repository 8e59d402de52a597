"""What the coordination proxy forwards to a client, and what it does not."""

import json
import os
import socket
import stat
import subprocess
import sys
import textwrap

from tests.processes import alive, children_of, wait_until

from evenfeed.cluster.handshake import greeting, is_proof

STARTS = textwrap.dedent("""
    import sys
    from evenfeed.cluster import joining
    from evenfeed.cluster.membership import Membership, Worker
    workers = Worker("worker", 0, sys.argv[1]), Worker("worker", 1, "127.0.0.1:1")
    with joining._coordination_proxy(Membership(workers, 1), b"key") as address:
        print(address, flush=True)
        sys.stdin.readline()
    print("joined", flush=True)
    sys.stdin.read()
""")


def test_the_proxy_proves_itself_passes_all_on_but_the_end_and_ends_with_its_worker():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        worker = subprocess.Popen(
            [sys.executable, "-c", STARTS, f"127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with worker:
            path = worker.stdout.readline().strip().removeprefix("unix:")
            (proxy,) = children_of(worker.pid)
            assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
            service, _ = server.accept()
            service.sendall(greeting("challenge", needs_token=True))
            claim = json.loads(service.makefile("rb", buffering=0).readline())
            assert claim["proxy"] == 1
            assert is_proof(claim["proof"], b"key", "proxy", "challenge")
            client.sendall(b"asks")
            assert service.recv(9) == b"asks"
            service.sendall(b"answers")
            assert client.recv(9) == b"answers"
            service.close()
            client.settimeout(0.3)
            try:
                heard = client.recv(1)
            except TimeoutError:
                heard = "nothing"
            assert heard == "nothing"
            worker.stdin.write("\n")
            worker.stdin.flush()
            assert worker.stdout.readline() == "joined\n"
            assert not os.path.exists(os.path.dirname(path))  # no further client can connect
            worker.stdin.close()
        client.settimeout(20)
        assert client.recv(1) == b""  # the proxy has ended
        client.close()
        wait_until(lambda: not alive([proxy]))
