import threading

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.images.geometry import Crop
from evenfeed.runtime.functions.blockwise import in_threads
from evenfeed.runtime.functions.sharing_work import RowTime


def block(length):
    return Block((np.arange(length), list(range(length)), None), length)


def doubled(piece):
    part = piece.block
    numbers, rows, _ = part.columns
    return Block((2 * numbers, [np.zeros(row) for row in rows], None), part.length), numbers > 5


@pytest.mark.parametrize("length", [1, 2, 3, 8, 17, 100])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_their_order(length, threads):
    whole, failed = in_threads(doubled, block(length), threads)
    numbers, rows, nothing = whole.columns
    assert numbers.tolist() == list(range(0, 2 * length, 2))
    assert [len(row) for row in rows] == list(range(length))
    assert nothing is None
    assert failed.tolist() == [row > 5 for row in range(length)]


def test_parts_that_differ_in_shape_become_a_list():
    def shaped(piece):
        part = piece.block
        rows = part.columns[0].tolist()
        return Block((np.zeros((part.length, 1 + (rows[0] > 3))),), part.length), None

    whole, failed = in_threads(shaped, block(8), 2)
    assert failed is None
    assert {row.shape for row in whole.columns[0]} == {(1,), (2,)}


def test_results_are_written_to_their_places_or_brought_there():
    places = []

    def direct(piece):
        numbers = piece.block.columns[0]
        place = piece.place(0, (2,), np.dtype(np.float32))
        place[...] = numbers[:, None]
        places.append(place)
        return Block((place, -numbers, None), piece.block.length), None

    whole, _ = in_threads(direct, block(100), 3)
    assert all(place.base is whole.columns[0] for place in places)
    assert whole.columns[0].tolist() == [[number, number] for number in range(100)]
    assert whole.columns[1].tolist() == [-number for number in range(100)]


def test_one_part_without_results_means_none():
    assert (
        in_threads(lambda p: None if 7 in p.block.columns[0] else doubled(p), block(16), 2) is None
    )


def test_several_threads_work():
    together = threading.Barrier(3, timeout=20)

    def meet(part):
        together.wait()
        return doubled(part)

    in_threads(meet, block(3), 3)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_in_any_thread_is_raised(error):
    def fail(part):
        if 11 in part.block.columns[0]:
            raise error("no")
        return doubled(part)

    with pytest.raises(error, match="no"):
        in_threads(fail, block(12), 4)


def test_only_work_that_takes_long_is_shared():
    time = RowTime()
    assert time.is_worth_sharing(1)  # nobody knows yet
    time.add(4.0, rows=2)
    assert time.is_worth_sharing(1)
    time.add(0.0002, rows=2)
    assert not time.is_worth_sharing(4)
    assert time.is_worth_sharing(5)


def test_one_slow_call_does_not_make_short_work_shared():
    time = RowTime()
    time.add(0.0001, rows=1)
    time.add(2.0, rows=1)
    assert not time.is_worth_sharing(2)


def chosen(alone, shared, blocks):
    """Return whether threads share each of some Blocks, which then takes so long."""
    time, found = RowTime(), []
    for _ in range(blocks):
        found.append(time.is_faster_shared)
        time.note(shared if found[-1] else alone, 1, shared=found[-1])
    return found


def test_both_ways_are_tried_and_the_faster_one_is_kept():
    assert chosen(alone=1.0, shared=0.6, blocks=8).count(True) == 4
    assert all(chosen(alone=1.0, shared=0.6, blocks=60)[8:])
    assert not any(chosen(alone=1.0, shared=4.0, blocks=60)[8:])


def test_a_small_gain_is_not_worth_a_second_thread():
    assert not any(chosen(alone=1.0, shared=0.9, blocks=60)[8:])


def test_the_other_way_is_tried_again_from_time_to_time():
    assert chosen(alone=1.0, shared=4.0, blocks=200)[8:].count(True) == 3
    time = RowTime()
    for number in range(1000):
        shared = time.is_faster_shared
        time.note(0.5 if shared and number > 100 else 1.0, 1, shared=shared)
    assert time.is_faster_shared


@pytest.mark.parametrize("waits", [False, True])
def test_short_work_stays_in_the_thread_that_reads_unless_it_waits(waits, monkeypatch):
    ran, crop = [], Crop.one

    def noted(self, *parts):
        ran.append(threading.get_ident())
        return crop(self, *parts)

    monkeypatch.setattr(Crop, "one", noted)
    monkeypatch.setattr(Crop, "waits", waits)
    monkeypatch.setattr(RowTime, "is_worth_sharing", lambda time, rows: False)
    counts = []
    monkeypatch.setattr(
        "evenfeed.runtime.functions.blockwise.done_by_threads",
        lambda compute, starts, threads: counts.append(threads) or list(map(compute, starts)),
    )
    images = tf.data.Dataset.from_tensor_slices(np.zeros((200, 4, 4, 3), np.uint8))
    cropped = images.map(lambda x: tf.image.crop_to_bounding_box(x, 1, 1, 2, 2), 2)
    assert len([*cropped]) == 200
    assert len(set(ran)) == 1
    assert set(counts) == ({2} if waits else set())
