"""Steps and values whose parts differ in length from worker to worker, in real processes."""

import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow


def seen():
    return seen_by_workers("uneven_workers.py")


def pieces_by_data(rows, size):
    """Return the pieces of the four replicas at each step: each batch is split, and workers take turns."""
    for first in range(0, rows, size):
        batch = list(range(first, min(rows, first + size)))
        length = -(-len(batch) // 4)
        cut = [batch[i * length : (i + 1) * length] for i in range(4)]
        yield [cut[0], cut[2], cut[1], cut[3]]


def pieces_of_all(rows, size):
    """Return the pieces if both workers read all the data."""
    each = size // 4
    for first in range(0, rows, 2 * each):
        own = [list(range(a, min(rows, a + each))) for a in (first, first + each)]
        yield [*own, *own]


def steps_of(pieces, worker):
    """Return what the step returns on the two replicas of a worker."""
    total, count = sum(map(sum, pieces)), sum(map(len, pieces))
    own = pieces[2 * worker : 2 * worker + 2]
    return [[total] * 2, [[2 * x for x in piece] for piece in own], [count / 4] * 2]


@pytest.mark.parametrize(
    ("policy", "pieces"), [("DATA", pieces_by_data(18, 8)), ("OFF", pieces_of_all(18, 8))]
)
def test_compiled_steps_are_right_however_the_rows_fall(policy, pieces):
    every = list(pieces)
    for worker in (0, 1):
        expected = [steps_of(each, worker) for each in every]
        assert seen()[worker][f"steps, {policy}"] == expected


def test_a_function_of_the_whole_step_runs_where_parts_differ():
    expected = []
    for pieces in pieces_by_data(18, 8):
        rows = [2.0 * x for piece in pieces for x in piece]
        expected.append([sum(rows) / 2, sum(rows), rows, len(rows) / 4])
    assert [seen()[worker]["whole functions"] for worker in (0, 1)] == [expected] * 2


def own_rows(pieces, worker):
    """Return what a worker sees of each step: numbers, and the ragged and the sparse row of each number."""
    own = [piece[2 * worker : 2 * worker + 2] for piece in pieces]
    rows = [[[list(range(x)) for x in part] for part in step] for step in own]
    return [
        [[part, lists, lists] for part, lists in zip(*step, strict=True)]
        for step in zip(own, rows, strict=True)
    ]


@pytest.mark.parametrize(
    ("name", "pieces"),
    [
        ("DATA, False", list(pieces_by_data(7, 4))),
        ("OFF, False", list(pieces_of_all(7, 4))),
        ("DATA, True", [[[1], [3], [2], [4]], [[5], [], [6], []]]),
        ("OFF, True", [[[x], [x + 1]] * 2 for x in (1, 3, 5)]),
    ],
)
def test_each_replica_gets_its_ragged_and_sparse_rows(name, pieces):
    assert [seen()[worker][f"rows, {name}"] for worker in (0, 1)] == [
        own_rows(pieces, worker) for worker in (0, 1)
    ]


# Results that are the same on both workers.
SAME = {
    "variables": [66.0, 18 + 36, 16.0 + 17, 153.0 + 2 * 153],
    "sums of rows": [[4, 4], [31, 31]],
    "spec of rows": "RaggedTensorSpec(TensorShape([None, None]), tf.int64, 1, tf.int64)",
    "traced again": 0,
    "messages of steps": 0,
    "messages of values": 1,
    "joined inside": [[0, 0, 1, 0, 1, 2, 0, 1, 2, 3]] * 2,
    "plain": [8.0, 8.0],
    "messages of one plain array": 1,
    "mean of a plain value in a function": [1.0, 2.5],
    "texts": ["\xff0", "\xff1", "\xff2", "\xff3"],
    "sum of lengths": "InvalidArgumentError: SUM over the replicas needs parts of one shape, but got the "
    "shapes [(1,), (2,), (3,), (4,)].",
    "other axes": "InvalidArgumentError: A part of shape (2,) has no axis 1.",
    "eager sum": "InvalidArgumentError: The workers are not at the same point of the program: worker 0 at all_reduce of "
    "float32[2]; worker 1 at all_reduce of float32[3].",
    "compiled sum": "InvalidArgumentError: The workers are not at the same point of the program: worker 0 at all_reduce of "
    "float32[2]; worker 1 at all_reduce of float32[3].",
    "in a jit": "UnimplementedError: A collective was called in code that JAX compiles (jit, scan, cond), inside a "
    "function that runs as plain Python. There it cannot reach the replicas of other workers.",
    "one array": "InvalidArgumentError: The replicas' parts cannot form one sharded array: their shapes are "
    "[(1,), (2,), (3,), (4,)].",
    "variable": "InvalidArgumentError: The initial value of the variable 'v:0' differs between workers: "
    "float32[2], float32[3].",
    "scalars": "InvalidArgumentError:   fix: call batch(global_batch_size) on the dataset before you distribute it.",
    "first on read": [5.0, 5.0],
    "warned": [["The variable 'alone:0'"], []],
}
EACH = {
    "made by a function": [[[[1], [1, 2]], [10, 10]], [[[1, 2, 3], [1, 2, 3, 4]], [10, 10]]],
    "again": [[[[1], [1, 2]], [10, 10]], [[[1, 2, 3], [1, 2, 3, 4]], [10, 10]]],
    "gradient of all_gather": [[[0.0], [4.0, 8.0]], [[12.0, 16.0, 20.0], [24.0, 28.0, 32.0, 36.0]]],
    "alone": [[[1.0, 2.0]] * 2, [[3.0, 4.0]] * 2],
    "copies": [[5.0, 6.0], [7.0, 8.0]],
}


@pytest.mark.parametrize("what", SAME)
def test_every_worker_sees_the_same(what):
    assert [seen()[worker][what] for worker in (0, 1)] == [SAME[what]] * 2


@pytest.mark.parametrize("what", EACH)
def test_each_worker_sees_its_own(what):
    assert [seen()[worker][what] for worker in (0, 1)] == EACH[what]
