import os
import pickle
import socket
import struct
import threading

import numpy as np
import pytest
from tests.resuming import plain

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.runtime.processes.shared_memory import Link, anonymous_memory, counter_in

BIG = 40_000  # elements, of one byte or more: they go through shared memory


@pytest.fixture
def ends():
    one, two = socket.socketpair()
    with one, two:
        yield Link(one), Link(two)


def carried(ends, value):
    """Send a value from one end to the other, in a thread because the buffer of a socket is limited."""
    sender = threading.Thread(target=ends[0].send, args=(value,))
    sender.start()
    received = ends[1].receive()
    sender.join()
    return received


ARRAYS = [
    np.arange(6, dtype=np.int64),
    np.arange(BIG, dtype=np.float32).reshape(2, -1),
    np.arange(BIG, dtype=np.int32).astype(dtypes.bfloat16),
    np.arange(6).astype(dtypes.bfloat16),
    np.arange(4).astype(dtypes.int4),
    np.arange(BIG).astype(dtypes.float8_e5m2),
    np.array(7.5),
    np.zeros((3, 0, 2)),
    np.ones(BIG, bool),
    np.ones(BIG, np.complex128),
    np.array([b"a", b"", b"\x00\xff" * BIG], object),
    np.arange(2 * BIG).reshape(2, -1).T,
    np.broadcast_to(np.int16(4), (3, 2)),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_an_array_arrives_as_it_was(ends, array):
    assert plain(carried(ends, array)) == plain(array)


def test_a_block_arrives_whole(ends):
    ragged = [np.arange(BIG), np.arange(2), np.arange(0)]
    block = Block((np.arange(3), ragged, None, np.ones((3, BIG))), 3)
    arrived = carried(ends, (block, 17))[0]
    assert arrived.length == 3
    for row in range(3):
        assert list(map(plain, arrived.row(row))) == list(map(plain, block.row(row)))


@pytest.mark.parametrize("size", [4, BIG])
@pytest.mark.parametrize("writeable", [True, False])
def test_who_may_write_here_may_write_there(ends, size, writeable):
    array = np.zeros(size)
    array.flags.writeable = writeable
    assert carried(ends, array).flags.writeable is writeable


def test_what_has_arrived_stays_when_more_comes(ends):
    sizes = [BIG, BIG, 10, 3 * BIG, BIG]
    arrived = [carried(ends, np.full(size, number)) for number, size in enumerate(sizes)]
    for number, (array, size) in enumerate(zip(arrived, sizes, strict=True)):
        assert plain(array) == plain(np.full(size, number))


def test_both_directions_have_memory_of_their_own(ends):
    for number in range(3):
        there = carried(ends, np.full(BIG, number))
        back = carried(ends[::-1], there + 1)
        assert (there == number).all()
        assert (back == number + 1).all()


def test_memory_that_is_too_small_is_given_back(ends):
    before = len(os.listdir("/proc/self/fd"))
    for size in (BIG, 2 * BIG, 4 * BIG, 8 * BIG):
        carried(ends, np.ones(size))
    assert len(os.listdir("/proc/self/fd")) == before + 2  # one at each end


def test_shared_memory_has_no_name(ends):
    before = set(os.listdir("/dev/shm"))
    kept = carried(ends, np.ones(BIG))
    assert set(os.listdir("/dev/shm")) <= before
    assert kept.all()


@pytest.mark.parametrize("sent", [b"", b"\x05", struct.pack("<QI", 100, 0) + b"only a part"])
def test_an_end_that_is_gone_is_an_error(ends, sent):
    ends[0].connection.sendall(sent)
    ends[0].connection.close()
    with pytest.raises(EOFError):
        ends[1].receive()


def test_a_value_may_be_read_in_a_way_of_ones_own(ends):
    seen = []

    class Curious(pickle.Unpickler):
        def find_class(self, module, name):
            seen.append(name)
            return super().find_class(module, name)

    ends[0].send(tf.TensorSpec([2], tf.float32))
    assert ends[1].receive(Curious) == tf.TensorSpec([2], tf.float32)
    assert "TensorSpec" in seen


def test_a_number_is_seen_by_all_who_have_its_memory():
    memory = anonymous_memory(8)
    one, two = counter_in(os.dup(memory)), counter_in(memory)
    one[0] = 17
    assert two[0] == 17
