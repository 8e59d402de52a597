"""Global arrays, and training with a MeshStrategy, on eight devices in two and four real processes."""

import functools

import numpy as np
import pytest
from jax.sharding import Mesh
from tests.strategy.programs.mesh_training import (
    OF_TWO_PROCESSES,
    ROWS,
    WIDTH,
    dataset_of,
    fitted,
    iter_from,
    meshes,
    trained,
)
from tests.strategy.starting import seen_by_workers

from evenfeed.distribute import MeshStrategy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=[2, 4])
def seen(request, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("mesh"))
    found = seen_by_workers("mesh_workers.py", request.param, 8 // request.param, folder)
    assert len(found) == request.param
    return found


def test_every_partition_spec_puts_each_row_where_it_belongs(seen):
    workers = len(seen)
    one = seen[0]
    assert all(own["state"] == one["state"] for own in seen.values())
    assert all(own["lanes"] == one["lanes"] for own in seen.values())
    assert (len(one["lanes"][0]), one["lanes"][1]) == (4, sum(range(20)))
    assert {own["total"] for own in seen.values()} == {sum(range(32))}
    assert [own["specs"] for own in seen.values()] == [[49, 11]] * workers
    for process, own in seen.items():
        total = workers * 6 + 4 * 100 * sum(range(workers))
        assert own["apart"] == [[[workers, process]], [4 * workers], total]
        assert own["alike"] == [[[1, 0]], [4], 6]
        (line,) = own["explained"]
        assert line.startswith(f"this process reads {8 // workers} of {8 // workers} shards")
        others = ", ".join(str(other) for other in sorted(seen) if other != process)
        assert line.endswith(others)


@functools.cache
def strategy_of_one_process():
    devices, names, data_axes, sharding = meshes()["fsdp"]
    return MeshStrategy(Mesh(devices, names), data_axes), sharding


def of_one_process(folder):
    return trained(*strategy_of_one_process(), folder)


def test_processes_train_as_one_does(seen, tmp_path):
    workers = len(seen)
    expected = of_one_process(str(tmp_path))
    assert expected["after"]["rows"] == expected["after"]["seen"] == ROWS
    strategy, _ = strategy_of_one_process()
    moved = iter_from(dataset_of(strategy), seen[0]["training"]["one replica"]["state"])
    assert [int(np.asarray(valid.array).sum()) for _, valid in moved] == [16, 12]
    ((x, valid),) = moved[1:]
    assert x.array[np.asarray(valid.array), 0].tolist() == expected["column"]
    held = {
        "data over processes": {(WIDTH, WIDTH // 2)},
        "tensor over processes": {(WIDTH // 4, WIDTH)},
        "fsdp": {(WIDTH // 2, WIDTH // 2)},
        "one replica": {(1, WIDTH)},
        "data alone": {(1, WIDTH)},
    }
    if workers != 2:
        held = {name: shapes for name, shapes in held.items() if name not in OF_TWO_PROCESSES}
    each = 8 // workers
    if workers == 2:
        losses, predictions = fitted(strategy)
        for every in seen.values():
            np.testing.assert_allclose(every["training"]["keras"][0], losses, rtol=1e-5)
            np.testing.assert_allclose(every["training"]["keras"][1], predictions, rtol=1e-4)
    for process, every in seen.items():
        own = every["training"]
        for name, shapes in held.items():
            found = own[name]
            np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-5)
            for point in ("after", "first"):
                np.testing.assert_allclose(found[point]["w"], expected[point]["w"], atol=1e-6)
                counted = {key: found[point][key] for key in ("rows", "seen")}
                assert counted == {key: expected[point][key] for key in ("rows", "seen")}
            np.testing.assert_allclose(found["added"], np.add(found["first"]["w"], 1), rtol=1e-6)
            assert found["bias"] == [0.5 / 2**3] * WIDTH
            assert {tuple(shape) for shape in found["shapes"]} == shapes
            assert found["column"] == expected["column"]
            assert found["again"]
            assert found["state"] == seen[0]["training"][name]["state"]
            assert found["length"] == 3
            assert found["chief"] == (process == 0)
            assert found["explained"].endswith(
                f"of 16 rows on 8 devices of {workers} processes: "
                + ", ".join(f"{axis}={size}" for axis, size in zip(*axes_of(name), strict=True))
            )
        first = process * each // 2
        assert own["data over processes"]["replicas"] == list(range(first, first + each // 2))
        assert own["tensor over processes"]["replicas"] == [0, 1]
        assert own["one replica"]["replicas"] == [0]
        assert own["tensor over processes"]["text"].startswith("<SharedVariable")
        # The replicas of a process take its batches of two rows in turn. Processes that share all replicas make one dataset.
        contexts, rows = own["data over processes"]["function"]
        assert contexts == [[workers, process]]
        assert rows[0] == [
            2 * (100 * worker + row) for worker in range(workers) for row in range(8 // workers)
        ]
        assert len(rows) == workers
        contexts, rows = own["tensor over processes"]["function"]
        assert (contexts, rows) == ([[1, 0]], [[2 * row for row in range(8)]])
        python, plain, uneven = own["refused"]
        assert "runs as plain Python, but the devices of a replica are in several" in python
        assert "belongs to no replica" in plain
        assert "7 rows" in uneven


def axes_of(name):
    devices, names, _, _ = meshes()[name]
    return names, devices.shape
