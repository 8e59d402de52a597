"""The steps of every worker, compared with TensorFlow's rules in plain Python."""

import os
import tempfile
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feeding import model
from tests.feeding.distribution import numbers, with_policy
from tests.feeding.workers import InMemory, fed, fed_from_function, on_all, reading, worker_of

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import (
    AbortedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from evenfeed.dataset import plan_of
from evenfeed.feeding.reading import ElementReading

Dataset = tf.data.Dataset
HINT = tf.data.experimental.SHARD_HINT

rows = st.integers(0, 30)
sizes = st.integers(1, 12)
workers = st.integers(2, 4)
replicas = st.integers(1, 3)
epochs = st.integers(1, 3)
clusters = st.tuples(workers, replicas)


def hidden(x):
    return x


def of_numbers(count, size, times, policy, way):
    """Return a dataset of batches whose rows have positions, have none, or are made one by one."""
    data = numbers(range(count))
    if way == "read":
        data = data.filter(lambda x: x >= 0)
    if way == "made":
        data = data.map(hidden, vectorize=False)
    return with_policy(data.batch(size).repeat(times), policy)


@given(rows, sizes, clusters, epochs, st.sampled_from(["placed", "read", "made"]))
def test_each_worker_takes_its_pieces_of_every_batch(count, size, cluster, times, way):
    many, each = cluster
    found = fed(lambda _: of_numbers(count, size, times, "DATA", way), many, each)
    batches = model.batched(count, size) * times
    assert found == [model.by_data(batches, many, each, worker) for worker in range(many)]


@given(rows, sizes, clusters, epochs, st.booleans())
def test_each_worker_reads_all_in_sizes_that_take_turns(count, size, cluster, times, known):
    many, each = cluster
    way = "placed" if known else "read"
    found = fed(lambda _: of_numbers(count, size, times, "OFF", way), many, each)
    batches = model.batched(count, size) * times
    assert found == model.each_flowing([batches] * many, size, each)


@given(st.lists(rows, min_size=2, max_size=4), sizes, replicas, st.booleans())
def test_workers_with_unlike_amounts_take_as_many_steps(counts, size, each, known):
    way = "placed" if known else "read"
    found = fed(lambda w: of_numbers(counts[w], size, 1, "OFF", way), len(counts), each)
    batches = [model.batched(count, size) for count in counts]
    assert found == model.each_flowing(batches, size, each)


@given(rows, sizes, workers, replicas)
def test_batches_of_a_size_that_is_not_known_are_cut_by_themselves(count, size, many, each):
    found = fed(
        lambda _: with_policy(numbers(range(count)).batch(size).map(lambda x: x), "OFF"), many, each
    )
    pieces = model.pieces_of(model.batched(count, size), many * each)
    assert found == [model.in_steps(pieces, each)] * many


@given(st.lists(rows, min_size=2, max_size=4), sizes, replicas, st.booleans())
def test_batches_of_a_function_are_taken_as_they_are(counts, size, each, static):
    found = fed_from_function(
        lambda w: numbers(range(counts[w])).batch(size, drop_remainder=static), len(counts), each
    )
    own = [model.in_steps(model.batched(count, size), each) for count in counts]
    if static:
        whole = [[b for b in model.batched(count, size) if len(b) == size] for count in counts]
        own = [model.in_steps(batches, each) for batches in whole]
    assert found == model.as_long(own, each)


def table_of_files(tmp_path, counts, batch, many, each=1, **how):
    paths = text_files(tmp_path, counts)
    found = fed(
        lambda _: with_policy(tf.data.TextLineDataset(paths).batch(batch), "AUTO"),
        many,
        each,
        **how,
    )
    return [[[[x.decode() for x in piece] for piece in step] for step in own] for own in found]


def text_files(tmp_path, counts):
    paths = []
    for letter, count in zip("abcdefgh", counts, strict=False):
        paths.append(os.path.join(tmp_path, letter + ".txt"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            file.write("".join(f"{letter}{i}\n" for i in range(count)))
    return paths


def words(text):
    """Return steps of one worker: `a0 a1 | a2` are the pieces of its replicas, `;` ends a step."""
    return [[piece.split() for piece in step.split("|")] for step in text.split(";")]


def test_files_of_seven_over_two_workers_of_two_replicas(tmp_path):
    assert table_of_files(tmp_path, [7, 8], 7, 2, 2) == [
        words("a0 a1 | a2 a3; a4 a5 | a6; |"),
        words("b0 b1 | b2; b3 b4 | b5 b6; b7 |"),
    ]


@given(st.lists(st.integers(0, 9), min_size=2, max_size=5), sizes, replicas)
def test_each_worker_reads_its_files(counts, size, each):
    many = 2
    lines = [[100 * file + i for i in range(count)] for file, count in enumerate(counts)]
    files = [b"".join(b"%d\n" % line for line in own) for own in lines]
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{i}.txt") for i in range(len(files))]
        for path, content in zip(paths, files, strict=True):
            with open(path, "wb") as file:
                file.write(content)
        found = fed(lambda _: tf.data.TextLineDataset(paths).batch(size), many, each)
    own = [list(chain(*lines[w::many])) for w in range(many)]
    batches = [[o[i : i + size] for i in range(0, len(o), size)] for o in own]
    plain = [[[[int(x) for x in p] for p in step] for step in steps] for steps in found]
    assert plain == model.each_flowing(batches, size, each)


def test_the_table_of_the_rules():
    def of(count, size, policy, times=1):
        return lambda _: with_policy(Dataset.range(count).batch(size).repeat(times), policy)

    assert fed(of(10, 5, "DATA"), 2) == [[[[0, 1, 2]], [[5, 6, 7]]], [[[3, 4]], [[8, 9]]]]
    assert fed(of(10, 5, "OFF"), 2) == [
        [[[0, 1, 2]], [[3, 4]], [[5, 6, 7]], [[8, 9]]],
        [[[0, 1]], [[2, 3, 4]], [[5, 6]], [[7, 8, 9]]],
    ]
    assert fed(of(8, 4, "DATA"), 3) == [[[[0, 1]], [[4, 5]]], [[[2, 3]], [[6, 7]]], [[[]], [[]]]]
    assert [own[0] for own in fed(of(16, 8, "DATA"), 2, 2)] == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert fed(of(5, 4, "OFF", 2), 2)[0] == [[[0, 1]], [[2, 3]], [[4, 0]], [[1, 2]], [[3, 4]]]
    assert fed(of(5, 4, "DATA", 2), 2) == [
        [[[0, 1]], [[4]], [[0, 1]], [[4]]],
        [[[2, 3]], [[]], [[2, 3]], [[]]],
    ]


def test_endless_data_needs_one_message_and_no_more():
    memory = InMemory(2)
    found = fed(
        lambda _: with_policy(Dataset.range(6).repeat().batch(4), "OFF"), 2, memory=memory, many=30
    )
    assert found[0][:3] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    assert [len(own) for own in found] == [30, 30]
    assert len(memory.said) == 1


def test_rows_that_are_shared_out_need_no_message():
    memory = InMemory(2)
    fed(lambda _: Dataset.range(60).filter(lambda x: x > 5).batch(4), 2, memory=memory)
    assert memory.said == {}


def test_rows_that_are_not_counted_are_agreed_on_many_steps_at_a_time():
    memory = InMemory(2)
    data = with_policy(Dataset.range(1000).filter(lambda x: x >= 0).batch(4), "OFF")
    found = fed(lambda _: data, 2, memory=memory, many=600)
    assert [len(own) for own in found] == [500, 500]
    assert len(memory.said) <= 1 + 7 + 500 // 64 + 1  # windows of 1, 2, 4, … 64 steps


def test_an_endless_worker_and_one_that_ends_go_on_together():
    found = fed_from_function(
        lambda w: Dataset.range(3).batch(2) if w else Dataset.range(4).repeat().batch(2), 2, many=9
    )
    assert found[0] == [[[0, 1]], [[2, 3]]] * 4 + [[[0, 1]]]
    assert found[1] == [[[0, 1]], [[2]]] + [[[]]] * 7


def test_all_workers_shuffle_as_the_chief_does():
    found = fed(lambda _: Dataset.range(40).shuffle(40).batch(8), 4)
    seen = [row for own in found for step in own for piece in step for row in piece]
    assert sorted(seen) == list(range(40))
    assert seen != list(range(40))


def test_workers_that_shuffle_unlike_datasets_are_told():
    def make(worker):
        data = Dataset.range(8).shuffle(8)
        return (data.shuffle(3) if worker else data).batch(4)

    with pytest.raises(InvalidArgumentError, match=r"they have \[1, 2\] random transformations"):
        fed(make, 2)


def test_a_worker_that_fails_is_an_error_on_all_and_the_next_step_follows():
    def make(worker):
        def picky(x):
            if x == 3 and worker == 1:
                raise KeyError(3)
            return x

        data = Dataset.range(6).map(picky, vectorize=False)
        return with_policy(data.filter(lambda x: x >= 0).batch(2), "OFF")

    memory = InMemory(2)

    def run(worker):
        steps = reading(make, Share(worker, 2, 1), memory).steps()
        found = []
        while True:
            try:
                found.append(steps.read()[0][0].tolist())
            except StopIteration:
                return found
            except (KeyError, AbortedError) as error:
                found.append(type(error).__name__)

    first, second = on_all(2, run)
    assert "AbortedError" in first
    assert first.index("AbortedError") == second.index("KeyError")
    assert len(first) == len(second)


def test_fewer_rows_than_promised_is_an_error_and_no_step_of_another_shape():
    def picky(x):
        if x == 4:
            raise KeyError(4)
        return x

    data = with_policy(Dataset.range(16).map(picky, vectorize=False).batch(4), "OFF")
    memory = InMemory(2)

    def run(worker):
        steps, found = reading(lambda _: data, Share(worker, 2, 1), memory).steps(), []
        for _ in range(9):
            try:
                found.append(len(steps.read()[0]))
            except StopIteration:
                break
            except (KeyError, AbortedError) as error:
                found.append(str(error))
        return found

    for found in on_all(2, run):
        assert any("should get [2] rows" in str(step) for step in found)
        assert all(step == 2 for step in found if isinstance(step, int))


def test_too_few_files_is_one_error_everywhere(tmp_path):
    paths = text_files(tmp_path, [6])
    data = with_policy(tf.data.TextLineDataset(paths).batch(4), "FILE")
    for worker in range(2):
        with pytest.raises(InvalidArgumentError, match="there is 1 file for 2 workers"):
            reading(lambda _: data, Share(worker, 2, 1), InMemory(2))


def test_too_few_files_are_shared_out_by_row_under_auto(tmp_path, caplog):
    caplog.set_level("INFO", "evenfeed")
    assert table_of_files(tmp_path, [5], 4, 2) == [words("a0 a1; a4"), words("a2 a3; ")]
    said = {record.message for record in caplog.records if record.levelname == "INFO"}
    assert said == {
        "sharding by row, not by file: Sharding by file needs at least one file per worker, "
        "but there is 1 file for 2 workers."
    }


def test_lines_and_their_numbers_stay_together(tmp_path):
    paths = text_files(tmp_path, [3, 4])

    def run(worker):
        data = Dataset.zip((tf.data.TextLineDataset(paths), Dataset.range(100))).batch(4)
        steps = reading(lambda _: data, Share(worker, 2, 1), memory).steps()
        found = []
        while True:
            try:
                lines, places = steps.read()
            except StopIteration:
                return found
            found += zip(np.concatenate(lines).tolist(), np.ravel(places).tolist(), strict=True)

    memory = InMemory(2)
    pairs = chain(*on_all(2, run))
    lines = [b"a0", b"a1", b"a2", b"b0", b"b1", b"b2", b"b3"]
    assert sorted(pairs, key=lambda pair: pair[1]) == list(zip(lines, range(7), strict=True))


def test_rows_without_files_are_refused_by_file():
    data = with_policy(Dataset.range(8).batch(4), "FILE")
    with pytest.raises(NotFoundError, match="it does not read files here"):
        reading(lambda _: data, Share(1, 2, 1), InMemory(2))


def test_a_hint_becomes_the_shard_of_the_worker():
    def make(policy):
        return lambda _: with_policy(Dataset.range(12).shard(HINT, HINT).batch(4), policy)

    assert fed(make("HINT"), 2) == [
        [[[0, 2]], [[4, 6]], [[8, 10]]],
        [[[1, 3]], [[5, 7]], [[9, 11]]],
    ]
    assert (
        fed(lambda _: with_policy(Dataset.range(4).batch(2), "HINT"), 2)
        == [[[[0]], [[1]], [[2]], [[3]]]] * 2
    )
    for policy in ("AUTO", "OFF", "DATA"):
        with pytest.raises(FailedPreconditionError, match="the dataset was not distributed"):
            fed(make(policy), 2)


def test_the_last_part_of_a_hinted_shard_is_not_dropped():
    data = with_policy(Dataset.range(7).shard(HINT, HINT).batch(4), "HINT")
    assert data.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert fed(lambda _: data, 2) == [[[[0, 2]], [[4, 6]]], [[[1, 3]], [[5]]]]


def test_no_step_is_without_rows_where_batches_are_smaller_than_the_cluster():
    found = fed(lambda w: of_numbers([5, 0, 1][w], 1, 1, "OFF", "read"), 3)
    steps = list(zip(*found, strict=True))
    assert all(any(piece for own in step for piece in own) for step in steps)
    seen = [row for step in steps for own in step for piece in own for row in piece]
    assert sorted(seen) == [0, 0, 1, 2, 3, 4]


def test_workers_know_the_shapes_of_rows_that_differ_too():
    """Separately padded batches have different row shapes on different workers."""

    def run(worker):
        lengths = ([1, 3, 2], [2, 4])[worker]
        data = Dataset.from_generator(
            lambda: (np.ones(length) for length in lengths),
            output_signature=tf.TensorSpec([None], tf.float32),
        ).padded_batch(2)
        steps = ElementReading([plan_of(data)], worker_of(Share(worker, 2, 1), memory)).steps()
        return [steps.read()[0].shapes for _ in range(2)]

    memory = InMemory(2)
    assert on_all(2, run) == [[((2, 3), (2, 4)), ((1, 2), (0, 2))]] * 2


@pytest.mark.parametrize("policy", ["DATA", "OFF"])
@pytest.mark.parametrize("way", ["placed", "read", "made"])
def test_a_position_is_exact_on_every_worker(policy, way):
    def make(_):
        return of_numbers(23, 6, 2, policy, way)

    whole = fed(make, 2, 2)
    for taken in range(0, len(whole[0]), 3):
        memory, again = InMemory(2), InMemory(2)

        def run(worker, taken=taken, memory=memory, again=again):
            share = Share(worker, 2, 2)
            steps = reading(make, share, memory).steps()
            for _ in range(taken):
                steps.read()
            fresh = reading(make, share, again).steps()
            fresh.restore(steps.state())
            left = []
            while True:
                try:
                    column = fresh.read()[0]
                except StopIteration:
                    return left
                left.append(
                    np.concatenate(column).tolist() if isinstance(column, list) else column.tolist()
                )

        expected = [[list(chain(*step)) for step in own[taken:]] for own in whole]
        assert on_all(2, run) == expected
