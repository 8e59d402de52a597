"""Global arrays that are read by lane: who reads which lanes, and where their rows are in a batch."""

import json

import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec
from tests.feeding.distribution import with_lanes
from tests.feeding.meshes import PADDED, feeds, host_steps, mesh_of, plain
from tests.feeding.workers import on_all

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.data import Dataset
from evenfeed.distribute import MirroredStrategy
from evenfeed.feeding.meshes.mesh_feeds import LaneFeed

P_ROWS = PartitionSpec("data")


@pytest.fixture
def mesh():
    return mesh_of((4, 2), ("data", "model"))


@pytest.mark.parametrize("spec", [P_ROWS, PartitionSpec("model"), PartitionSpec(("model", "data"))])
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_lanes_have_fixed_places_in_a_batch(mesh, spec, processes):
    dataset = with_lanes(Dataset.range(19).batch(8), 4)  # lanes of 4, 5, 5 and 5 rows
    own = feeds([dataset] * processes, NamedSharding(mesh, spec), PADDED, LaneFeed)
    each = on_all(processes, lambda process: host_steps(own[process]))
    lanes = [range(4), range(4, 9), range(9, 14), range(14, 19)]
    steps = [[lane[2 * step : 2 * step + 2] for lane in lanes] for step in range(3)]
    whole = [[[*rows, 0, 0][:2] for rows in step] for step in steps]
    there = [[[number < len(rows) for number in range(2)] for rows in step] for step in steps]
    for process, found in enumerate(each):
        layout = own[process]._layout
        index = layout.valid.addressable_devices_indices_map((8,))
        mine = [at for d, at in index.items() if d.id // (8 // processes) == process]
        assert len(found) == 3
        for (length, valid, column), rows, marks in zip(found, whole, there, strict=True):
            assert length == 8
            for at in mine:
                block = layout.block(column, 8, None, at), layout.block(valid, 8, None, at)
                np.testing.assert_array_equal(block[0], np.array(rows).ravel()[at])
                np.testing.assert_array_equal(block[1], np.array(marks).ravel()[at])


def test_a_process_reads_only_the_lanes_of_its_rows(mesh):
    dataset = with_lanes(Dataset.range(16).batch(8), 4)
    first, second = feeds([dataset] * 2, NamedSharding(mesh, P_ROWS), PADDED, LaneFeed)
    assert first._owners == second._owners == ((0, 1), (2, 3))
    model = NamedSharding(mesh, PartitionSpec("model"))
    assert feeds([dataset] * 2, model, PADDED, LaneFeed)[0]._owners == ((0, 1, 2, 3),) * 2
    text = str(first.explain(None))
    assert "lane 1  process 0  rows 4-7 of" in text
    assert "lane 2  process 1" in text


def test_a_state_of_lanes_moves_between_meshes_and_strategies(mesh):
    dataset = with_lanes(Dataset.range(32).shuffle(32, seed=1).filter(lambda x: x >= 0).batch(8), 4)
    steps = iter(dataset.distribute(P_ROWS, mesh=mesh, options=PADDED))
    next(steps)
    state = json.loads(json.dumps(steps.get_state()))
    rest = plain(steps)
    assert len(rest) == 3
    other = dataset.distribute(PartitionSpec("b"), mesh=mesh_of((2, 4), ("a", "b")), options=PADDED)
    again = iter(other)
    again.set_state(state)
    assert plain(again) == rest
    assert "lane 3  process 0" in str(other.explain(state))
    replicas = iter(MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(dataset))
    replicas.set_state(state)
    assert [step.array.tolist() for step in replicas] == [rows for rows, _ in rest]
    own = feeds([dataset] * 4, NamedSharding(mesh, P_ROWS), PADDED, LaneFeed)

    def resumed(process):
        feed = own[process]
        read = feed._steps()
        read.restore(feed._saving().part_of(state))
        found = [read.read()[2].tolist() for _ in rest]
        return found, feed._saving().joined(read.state())

    each = on_all(4, resumed)
    rows = [found for found, _ in each]
    assert [[*a, *b, *c, *d] for a, b, c, d in zip(*rows, strict=True)] == [x for x, _ in rest]
    assert all(joined == each[0][1] for _, joined in each)
    assert len(each[0][1]["at"]) == 4


def test_lanes_without_padding_must_stay_full(mesh):
    with pytest.raises(InvalidArgumentError, match="end at different steps"):
        with_lanes(Dataset.range(19).batch(8), 4).distribute(P_ROWS, mesh=mesh)
    endless = with_lanes(Dataset.range(16).repeat().batch(8, drop_remainder=True), 4)
    found = iter(endless.distribute(P_ROWS, mesh=mesh))
    assert next(found).tolist() == [0, 1, 4, 5, 8, 9, 12, 13]
