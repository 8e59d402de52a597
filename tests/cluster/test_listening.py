"""Where the service listens."""

import socket

import pytest

from evenfeed.cluster import listening
from evenfeed.cluster.listening import listeners


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def where(host, port, **given):
    sockets, is_everywhere = listeners(host, port, **given)
    found = {one.getsockname()[0] for one in sockets}
    for one in sockets:
        one.close()
    return found, is_everywhere


@pytest.fixture
def named(monkeypatch):
    """Make a host name resolve to some addresses."""
    real = socket.getaddrinfo

    def give(*addresses):
        def found(host, port, **given):
            hosts = addresses if host == "node0" else (host,)
            return [info for one in hosts for info in real(one, port, **given)]

        monkeypatch.setattr(listening.socket, "getaddrinfo", found)

    return give


@pytest.mark.parametrize("is_one_machine", [True, False])
def test_an_address_of_this_machine_is_the_only_one(is_one_machine):
    found = where("127.0.0.1", free_port(), is_one_machine=is_one_machine)
    assert found == ({"127.0.0.1"}, False)


def test_a_name_is_all_of_its_addresses_that_are_here(named):
    named("127.0.0.1", "127.0.0.2", "192.0.2.1")
    found = where("node0", free_port(), is_one_machine=True)
    assert found == ({"127.0.0.1", "127.0.0.2"}, False)


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_elsewhere_is_all_interfaces(host):
    found, is_everywhere = where(host, free_port(), is_one_machine=False)
    assert (found <= {"::", "0.0.0.0"}, is_everywhere) == (True, True)


def test_a_name_that_is_only_known_as_loopback_here_is_all_interfaces_to_others(named):
    named("127.0.1.1")
    assert where("node0", free_port(), is_one_machine=False)[1]
    assert where("node0", free_port(), is_one_machine=True) == ({"127.0.1.1"}, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1"])
def test_a_port_that_is_taken_is_an_error(host):
    with socket.create_server(("0.0.0.0", 0)) as taken, pytest.raises(OSError, match="in use"):
        listeners(host, taken.getsockname()[1], is_one_machine=False)
