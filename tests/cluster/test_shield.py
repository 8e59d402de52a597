"""What a client hears of a service through the shield, and what it does not."""

import socket
import subprocess
import sys
import textwrap

from tests.processes import alive, children_of, wait_until

from evenfeed.cluster import joining

STARTS = textwrap.dedent("""
    import sys
    from evenfeed.cluster import joining
    print(joining._shielded(sys.argv[1]), flush=True)
    sys.stdin.read()
""")


def test_the_end_of_the_service_is_not_passed_on_and_the_shield_ends_with_its_worker():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        worker = subprocess.Popen(
            [sys.executable, "-c", STARTS, f"127.0.0.1:{port}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with worker:
            address = worker.stdout.readline().strip()
            (shield,) = children_of(worker.pid)
            client = socket.create_connection((joining._host(address), int(address.split(":")[1])))
            service, _ = server.accept()
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
            worker.stdin.close()
        client.settimeout(20)
        assert client.recv(1) == b""  # the shield has ended
        client.close()
        wait_until(lambda: not alive([shield]))
