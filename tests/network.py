"""Machines for tests: network namespaces of Linux, on one switch whose links can be cut.

They need root and `ip` (Debian's iproute2). Where one is missing, `machines` says so loudly and gives
addresses of this machine instead: programs then run, and no link can be cut.
"""

import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Machine:
    """A place to run programs at.

    Attributes:
        address: Its IP address.
        prefix: What a command line begins with that runs there.
        switch: Where its link is plugged in; "" where it has none.
        port: Its link's name there.
    """

    address: str
    prefix: list[str] = field(default_factory=list)
    switch: str = ""
    port: str = ""

    @property
    def can_be_cut(self) -> bool:
        return bool(self.switch)

    def cut(self) -> None:
        """Unplug the link: nothing comes through, and nobody is told."""
        _ip("-n", self.switch, "link", "set", self.port, "nomaster")


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """Return machines that reach each other."""
    missing = _missing()
    if missing:
        warnings.warn(
            f"No network namespaces ({missing}): the workers share the loopback device, and no link is cut.",
            RuntimeWarning,
            stacklevel=3,
        )
        yield [Machine("127.0.0.1") for _ in range(count)]
        return
    name = f"evenfeed-{os.getpid()}"
    made = [
        Machine(f"10.213.0.{i + 1}", _inside(f"{name}-{i}"), name, f"p{i}") for i in range(count)
    ]
    try:
        _plug(name, made)
        yield made
    finally:
        for each in (name, *(f"{name}-{i}" for i in range(count))):
            subprocess.run(["ip", "netns", "del", each], check=False, capture_output=True)


def _plug(name: str, made: list[Machine]) -> None:
    _ip("netns", "add", name)
    _ip("-n", name, "link", "add", "switch", "type", "bridge")
    _ip("-n", name, "link", "set", "switch", "up")
    for i, machine in enumerate(made):
        own = f"{name}-{i}"
        _ip("netns", "add", own)
        _ip(
            "-n", own, "link", "add", "eth0", "type", "veth", "peer", "name", f"p{i}", "netns", name
        )
        _ip("-n", name, "link", "set", f"p{i}", "master", "switch", "up")
        _ip("-n", own, "addr", "add", f"{machine.address}/24", "dev", "eth0")
        _ip("-n", own, "link", "set", "eth0", "up")
        _ip("-n", own, "link", "set", "lo", "up")


def _inside(namespace: str) -> list[str]:
    return ["ip", "netns", "exec", namespace]


def _missing() -> str:
    if shutil.which("ip") is None:
        return "there is no `ip`: install iproute2"
    if os.geteuid() != 0:
        return "not root"
    probe = f"evenfeed-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", probe], check=False, capture_output=True)
    subprocess.run(["ip", "netns", "del", probe], check=False, capture_output=True)
    return "" if made.returncode == 0 else made.stderr.decode().strip()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
