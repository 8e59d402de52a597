"""Lanes: who reads what, what a step looks like, and what the errors say."""

import gzip
import json
import os

import numpy as np
import pytest
from tests.feeding.distribution import distributed, parts_of, strategy_of, with_lanes, with_policy
from tests.feeding.workers import Cluster, on_all
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import AbortedError, InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.feeding.cluster_state import ClusterState
from evenfeed.rewrite.worker_plan import sharded

Dataset = tf.data.Dataset


def lanes_of(dataset, lanes, workers=1):
    return sharded(plan_of(with_lanes(dataset, lanes)), Share(0, workers)).lanes


def files(folder, count, rows=3):
    paths = [str(folder / f"{number}.txt") for number in range(count)]
    for number, path in enumerate(paths):
        with open(path, "w") as file:
            file.writelines(f"{10 * number + row}\n" for row in range(rows))
    return paths


def number_of(line):
    return tf.strings.to_number(line, tf.int64)


def test_every_global_batch_has_as_many_rows_of_each_lane_in_order():
    dataset = with_lanes(Dataset.range(16).batch(4), 2)
    expected = [[0, 1, 8, 9], [2, 3, 10, 11], [4, 5, 12, 13], [6, 7, 14, 15]]
    for replicas in (1, 2, 4):
        steps = [
            [row for part in parts_of(step) for row in part]
            for step in distributed(dataset, replicas)
        ]
        assert steps == expected


def test_no_worker_reads_a_file_of_another(tmp_path):
    paths = files(tmp_path, 4)

    def seen(worker):
        plan = plan_of(with_lanes(tf.data.TextLineDataset(paths).batch(4), 4))
        own = sharded(plan, Share(worker, 2)).lanes[2 * worker : 2 * worker + 2]
        return [
            file.path
            for lane in own
            for node in lane.plan.walk()
            for file in getattr(node, "files", ())
        ]

    assert [seen(0), seen(1)] == [paths[:2], paths[2:]]


def test_each_lane_shuffles_in_its_own_order_and_differently_in_each_pass():
    dataset = with_lanes(Dataset.range(64).shuffle(64, seed=5).batch(64), 2)
    data = distributed(dataset, 1)
    first, second = ([int(x) for x in next(iter(data))] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(64))
    assert first != second
    assert [x - 32 for x in first[32:]] != first[:32]


def test_a_lane_that_runs_dry_makes_uneven_steps(tmp_path):
    paths = files(tmp_path, 2, rows=2)
    (tmp_path / "1.txt").write_text("".join(f"{row}\n" for row in range(90, 95)))
    plan = plan_of(with_lanes(tf.data.TextLineDataset(paths).map(number_of).batch(4), 2))
    whole = [[(0,), (1,), (90,), (91,)], [(92,), (93,)], [(94,)]]
    for cluster in ((1, 1), (1, 3), (2, 1), (2, 2)):
        assert Cluster(lambda: plan, *cluster, in_turn=False).read() == whole


def test_padded_steps_have_one_shape(tmp_path):
    dataset = with_lanes(Dataset.range(10).batch(8), 4)
    steps = list(distributed(dataset, 2, pad_partial_batches=True))
    assert [x.array.shape for x, _ in steps] == [(8,), (8,)]
    kept = [x.array[np.asarray(valid.array)].tolist() for x, valid in steps]
    assert sorted(kept[0] + kept[1]) == list(range(10))


def test_the_number_of_steps_and_the_spec_are_those_of_lanes():
    data = distributed(with_lanes(Dataset.range(9).batch(4, drop_remainder=True), 2), 2)
    assert len(data) == len(list(data)) == 2
    assert str(data.element_spec).count("shape=(None,)") == 2  # a lane may have run out
    endless = distributed(with_lanes(Dataset.range(9).repeat().batch(4), 2), 2)
    assert endless.cardinality == tf.data.INFINITE_CARDINALITY


def test_explain_shows_lanes_and_owners():
    text = str(distributed(with_lanes(Dataset.range(10).batch(4), 2), 2).explain())
    assert "batches: 4 rows over all replicas, the same number of each of 2 lanes" in text
    assert "lane 0  worker 0  rows 0-4 of range" in text
    assert "lane 1  worker 0  rows 5-9 of range" in text
    assert "state: one cursor per lane, gathered from all workers" in text


def test_explain_shows_the_cursors_of_a_state():
    rows = Dataset.range(20).filter(lambda x: x > 1)
    steps = distributed(with_lanes(rows.batch(4), 2), 1, experimental_fetch_to_device=False)
    iterator = iter(steps)
    next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    lines = [line.strip() for line in str(steps.explain(state)).splitlines()]
    for lane, at in enumerate(state["at"]):
        place = f"rows {10 * lane}-{10 * lane + 9} of range"
        assert f"lane {lane}  worker 0  {place}  at {json.dumps(at['at'])}" in lines
    assert json.dumps(state["at"][0]["at"]) != json.dumps(state["at"][1]["at"])
    whole = distributed(Dataset.range(20).batch(4), 1, experimental_fetch_to_device=False)
    with pytest.raises(InvalidArgumentError, match=r"saved with AutoShardPolicy\.LANES"):
        whole.explain(state)
    one = iter(whole)
    next(one)
    assert "  at: 1\n" in str(whole.explain(one.get_state()))


def test_a_failed_element_takes_the_place_of_the_step_on_every_number_of_workers():
    def made():
        rows = Dataset.range(16).map(picky, vectorize=False)
        return plan_of(with_lanes(rows.batch(4), 2))

    def found(workers):
        cluster = Cluster(made, workers, 1, in_turn=False)

        def steps(worker):
            return [outcome(cluster._steps[worker]) for _ in range(4)]

        each = on_all(workers, steps)
        return [[row for part in parts for row in part] for parts in zip(*each, strict=True)]

    assert found(1)[1] == ["KeyError"]
    assert found(2)[1] == ["KeyError", "AbortedError"]
    assert found(1)[:1] + found(1)[2:] == found(2)[:1] + found(2)[2:]


def picky(x):
    if x == 3:
        raise KeyError(int(x))
    return x


def outcome(steps):
    try:
        (column,) = steps.read()
    except (KeyError, AbortedError) as error:
        return [type(error).__name__]
    return [
        row for part in (column if isinstance(column, list) else [column]) for row in part.tolist()
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_bad_records_keep_lanes_in_step(workers):
    def made():
        rows = Dataset.range(16).map(picky, vectorize=False).ignore_errors()
        return plan_of(with_lanes(rows.batch(4), 2))

    assert Cluster(made, workers, 1, in_turn=False).read() == [
        [(0,), (1,), (8,), (9,)],
        [(2,), (4,), (10,), (11,)],
        [(5,), (6,), (12,), (13,)],
        [(7,), (14,), (15,)],
    ]


def test_lanes_cache_in_files_of_their_own(tmp_path):
    dataset = with_lanes(Dataset.range(8).cache(str(tmp_path / "kept")).batch(4).repeat(2), 2)
    whole = [[int(x) for x in step] for step in distributed(dataset, 1)]
    assert whole == 2 * [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert {path.name.split(".")[0] for path in tmp_path.iterdir()} == {
        "kept-lane-0-of-2",
        "kept-lane-1-of-2",
    }


def test_take_and_zip_count_all_rows():
    pairs = Dataset.zip(Dataset.range(20), Dataset.range(100, 140)).take(8)
    steps = distributed(with_lanes(pairs.batch(4), 2), 1)
    assert [[part.tolist() for part in step] for step in steps] == [
        [[0, 1, 4, 5], [100, 101, 104, 105]],
        [[2, 3, 6, 7], [102, 103, 106, 107]],
    ]


def test_the_state_has_one_small_cursor_per_lane_and_moves_to_another_strategy():
    dataset = with_lanes(Dataset.range(64).shuffle(8, seed=1).batch(8), 4)
    iterator = iter(strategy_of(2).experimental_distribute_dataset(dataset))
    next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    rest = [step.array.tolist() for step in iterator]
    assert len(state["at"]) == 4
    assert len(json.dumps(state)) < 4 * 200
    again = iter(strategy_of(4).experimental_distribute_dataset(dataset))
    again.set_state(state)
    assert [step.array.tolist() for step in again] == rest


def test_a_batch_that_lanes_do_not_divide_is_refused():
    with error_saying(
        InvalidArgumentError,
        "A global batch of 10 rows cannot take the same number of rows from each of 4 lanes.",
        fix="use batch(8) or batch(12), or another num_lanes.",
    ):
        lanes_of(Dataset.range(100).batch(10), 4)


def test_workers_that_do_not_divide_the_lanes_are_refused():
    with pytest.raises(
        InvalidArgumentError, match="6 lanes cannot be dealt evenly to 4 workers"
    ) as caught:
        lanes_of(Dataset.range(100).batch(12), 6, workers=4)
    assert "use 1, 2, 3 or 6 workers" in str(caught.value)


@pytest.mark.parametrize(
    ("lanes", "words"), [(None, "LANES needs the number of lanes"), (0, "needs lanes, but got 0")]
)
def test_the_number_of_lanes_is_needed(lanes, words):
    with pytest.raises(InvalidArgumentError, match=words):
        lanes_of(Dataset.range(100).batch(12), lanes)


@pytest.mark.parametrize(
    ("dataset", "words"),
    [
        (Dataset.range(9), "The dataset has no batches"),
        (Dataset.range(9).batch(4).unique(), "through unique"),
        (Dataset.range(9).batch(4).unbatch(), "through unbatch"),
        (
            Dataset.range(9).filter(lambda x: x > 2).take(3).batch(4),
            "take cannot be dealt to 2 lanes: it counts the rows of all lanes",
        ),
        (
            Dataset.range(9).unique().batch(4),
            "unique cannot be dealt to 2 lanes: a row that two lanes have would come twice",
        ),
        (
            Dataset.range(9).take_while(lambda x: x < 7).batch(4),
            "take_while cannot be dealt to 2 lanes: a lane does not know where the others stop",
        ),
        (
            Dataset.range(9).filter(lambda x: x > 2).enumerate().batch(4),
            "enumerate cannot be dealt to 2 lanes: a lane does not know how many rows",
        ),
        (
            Dataset.zip(Dataset.range(9).filter(lambda x: x > 2), Dataset.range(9)).batch(4),
            "zip cannot be dealt to 2 lanes: its datasets may have different numbers of rows",
        ),
        (Dataset.counter().batch(4), "counter cannot be dealt"),
        (Dataset.range(9).repeat().take(4).batch(4).map(lambda x: x), None),
        (
            Dataset.range(9).batch(4, drop_remainder=True).map(lambda x: x),
            "map expects global batches of a fixed size",
        ),
    ],
)
def test_what_lanes_cannot_read_is_refused(dataset, words):
    if words is None:
        assert len(lanes_of(dataset, 2)) == 2
    else:
        with pytest.raises(InvalidArgumentError, match=words):
            lanes_of(dataset, 2)


def test_too_few_files_are_dealt_by_rows_if_they_can_be_counted(tmp_path):
    path = str(tmp_path / "rows.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for row in range(8):
            writer.write(str(row).encode())
    lanes = lanes_of(tf.data.TFRecordDataset([path]).batch(4), 2)
    assert [lane.reads for lane in lanes] == [
        ("rows 0-3 of TFRecordDataset",),
        ("rows 4-7 of TFRecordDataset",),
    ]
    rows = Dataset.from_generator(lambda: range(8), output_signature=tf.TensorSpec([], tf.int64))
    with pytest.raises(InvalidArgumentError, match="its rows have no positions"):
        lanes_of(rows.batch(4), 2)
    names = Dataset.from_tensor_slices([path]).interleave(tf.data.TextLineDataset)
    with pytest.raises(InvalidArgumentError, match="names of files are fewer than the lanes"):
        lanes_of(names.batch(4), 2)


def test_too_few_files_of_lines_are_dealt_by_bytes(tmp_path):
    (text,) = files(tmp_path, 1)
    (length, lines) = os.path.getsize(text), tf.data.TextLineDataset([text])
    lanes = lanes_of(lines.batch(4), 2)
    assert [lane.reads for lane in lanes] == [
        (f"bytes 0-{length // 2 - 1} of {text}",),
        (f"bytes {length // 2}-{length - 1} of {text}",),
    ]
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(b"1\n2\n"))
    for rows in (
        tf.data.TextLineDataset([str(packed)], "GZIP"),
        tf.data.experimental.CsvDataset([text], [tf.int64]),
    ):
        with pytest.raises(InvalidArgumentError, match="are found only from their start"):
            lanes_of(rows.batch(4), 2)


def test_states_of_other_lanes_or_policies_are_refused():
    iterator = iter(distributed(with_lanes(Dataset.range(16).batch(8), 4), 1))
    state = iterator.get_state()
    other = iter(distributed(with_lanes(Dataset.range(16).batch(8), 2), 1))
    with pytest.raises(InvalidArgumentError, match="positions of 4 lanes, but the dataset has 2"):
        other.set_state(state)
    with pytest.raises(
        InvalidArgumentError, match=r"saved with AutoShardPolicy.LANES, .* AutoShardPolicy.DATA"
    ):
        ClusterState("DATA", Share()).part_of(state)
    plain = iter(distributed(with_policy(Dataset.range(16).batch(8), "DATA"), 1)).get_state()
    with pytest.raises(InvalidArgumentError, match=r"saved with AutoShardPolicy.DATA, .*LANES"):
        iterator.set_state(plain)
