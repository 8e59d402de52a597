"""Global arrays from a dataset and a sharding: who reads and holds which rows, compared with arrays made by hand."""

import json

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec
from tests.feeding.meshes import PADDED, feeds, host_steps, mesh_of, plain
from tests.feeding.workers import on_all

import evenfeed as tf
from evenfeed.core.batch_split import HeldRows
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.data import Dataset
from evenfeed.distribute import InputOptions, MeshStrategy, MirroredStrategy, global_batches
from evenfeed.feeding.meshes.mesh_feeds import LocalFeed
from evenfeed.replicas.array_layouts import layout_of


@pytest.fixture
def mesh():
    return mesh_of((4, 2), ("data", "model"))


@st.composite
def shardings(draw):
    """Draw a mesh of up to three axes over all devices in any order, and a spec that splits two dimensions by some."""
    shape = draw(st.sampled_from([(8,), (2, 4), (4, 2), (1, 8), (2, 2, 2), (2, 1, 4)]))
    names = tuple("abc"[: len(shape)])
    axes = draw(st.permutations(names))
    cuts = sorted(draw(st.integers(0, len(names))) for _ in range(2))
    dimensions = [tuple(axes[: cuts[0]]), tuple(axes[cuts[0] : cuts[1]])]
    entries = [part if len(part) > 1 else (part[0] if part else None) for part in dimensions]
    order = draw(st.permutations(range(8)))
    spec = PartitionSpec(*entries[: draw(st.sampled_from([2, 2, 1]))])
    return NamedSharding(mesh_of(shape, names, order), spec)


@settings(max_examples=40)
@given(
    sharding=shardings(),
    processes=st.sampled_from([1, 2, 4]),
    rows=st.sampled_from([8, 16, 20]),
    shuffled=st.booleans(),
)
def test_each_process_reads_exactly_the_rows_that_its_devices_hold(
    sharding, processes, rows, shuffled
):
    dataset = Dataset.from_tensor_slices(np.arange(rows * 8).reshape(rows, 8))
    if shuffled:
        dataset = dataset.shuffle(rows, seed=3, reshuffle_each_iteration=False)
    dataset = dataset.batch(8)
    expected = [np.asarray(batch) for batch in dataset]
    own = feeds([dataset] * processes, sharding, PADDED)
    each = on_all(processes, lambda process: host_steps(own[process]))
    for process, steps in enumerate(each):
        layout = own[process]._layout
        assert len(steps) == len(expected)
        for (length, column), batch in zip(steps, expected, strict=True):
            assert length == 8
            whole = np.zeros((8, 8), batch.dtype)
            whole[: len(batch)] = batch
            index = sharding.devices_indices_map((8, 8))
            mine = {d: at for d, at in index.items() if d.id // (8 // processes) == process}
            needed = {row for rows, _ in mine.values() for row in range(*rows.indices(8))}
            assert len(column) == len([row for row in needed if row < len(batch)])
            (part,) = layout.columns or [None]
            cut = [columns.indices(8)[:2] for _, columns in mine.values()]
            assert column.shape[1] == max(stop for _, stop in cut) - min(start for start, _ in cut)
            for rows_at, columns_at in mine.values():
                found = layout.block(column, 8, part, (rows_at, columns_at))
                np.testing.assert_array_equal(found, whole[rows_at, columns_at])


@settings(max_examples=25)
@given(sharding=shardings(), rows=st.sampled_from([8, 16]))
def test_arrays_are_those_that_jax_makes_of_the_whole_batch(sharding, rows):
    values = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8)
    steps = list(Dataset.from_tensor_slices(values).batch(8).distribute(sharding))
    for number, array in enumerate(steps):
        by_hand = jax.device_put(values[number * 8 : number * 8 + 8], sharding)
        assert array.sharding == sharding
        for one, other in zip(array.addressable_shards, by_hand.addressable_shards, strict=True):
            assert (one.device, one.index) == (other.device, other.index)
            np.testing.assert_array_equal(one.data, other.data)
    assert len(steps) == rows // 8


def test_components_have_shardings_of_their_own(mesh):
    values = {"x": np.arange(32.0).reshape(8, 4), "y": np.arange(8), "nothing": (None,)}
    dataset = Dataset.from_tensor_slices({k: v for k, v in values.items() if k != "nothing"})
    specs = {"x": PartitionSpec(("data", "model")), "y": PartitionSpec("data")}
    (step,) = dataset.batch(8).distribute(specs, mesh=mesh)
    assert step["x"].sharding.spec == PartitionSpec(("data", "model"))
    assert [s.data.shape for s in step["y"].addressable_shards] == [(2,)] * 8
    np.testing.assert_array_equal(step["x"], values["x"])
    np.testing.assert_array_equal(step["y"], values["y"])


def test_one_sharding_may_be_for_a_branch_of_the_structure(mesh):
    rows = NamedSharding(mesh, PartitionSpec("data"))
    dataset = Dataset.from_tensor_slices((({"a": [1, 2, 3, 4]}, [1, 2, 3, 4]), [5, 6, 7, 8]))
    shardings = (rows, NamedSharding(mesh, PartitionSpec("model")))
    (((inner, _), last),) = dataset.batch(4).distribute(shardings)
    assert inner["a"].sharding.spec == PartitionSpec("data")
    assert last.sharding.spec == PartitionSpec("model")


def test_the_mesh_may_be_the_current_one(mesh):
    with jax.set_mesh(mesh):
        (step,) = Dataset.range(4).batch(4).distribute(PartitionSpec("data"))
    assert step.sharding.mesh == mesh


def test_a_sharding_of_an_abstract_mesh_gets_its_devices_from_the_mesh(mesh):
    abstract = NamedSharding(mesh.abstract_mesh, PartitionSpec("data"))
    dataset = Dataset.range(4).batch(4)
    with pytest.raises(InvalidArgumentError, match="needs a mesh, which says on which devices"):
        dataset.distribute(abstract)
    (step,) = dataset.distribute(abstract, mesh=mesh)
    assert step.sharding == NamedSharding(mesh, PartitionSpec("data"))


def test_a_mesh_with_a_device_twice_is_refused():
    twice = mesh_of((4,), ("data",), [0, 1, 2, 1])
    for sharding in (NamedSharding(twice, PartitionSpec("data")), PartitionSpec("data")):
        with pytest.raises(InvalidArgumentError, match="has cpu:1 more than once"):
            Dataset.range(4).batch(4).distribute(sharding, mesh=twice)
    with pytest.raises(InvalidArgumentError, match="more than once"):
        MeshStrategy(twice, "data")


def test_it_feeds_a_program_with_in_shardings(mesh):
    sharding = NamedSharding(mesh, PartitionSpec("data", "model"))
    total = jax.jit(lambda x: x.sum(), in_shardings=sharding)
    dataset = Dataset.from_tensor_slices(np.ones((8, 2), np.float32)).batch(4).distribute(sharding)
    assert [float(total(x)) for x in dataset] == [8.0, 8.0]


def test_donated_arrays_that_several_devices_hold_stay_whole(mesh):
    rows = np.ones((64, 1024), np.float32)
    (step,) = Dataset.from_tensor_slices(rows).batch(64).distribute(PartitionSpec(), mesh=mesh)
    after = jax.jit(lambda x: x + 1, donate_argnums=0)(step)
    assert all((np.asarray(shard.data) == 2).all() for shard in after.addressable_shards)


def test_short_batches_are_padded_and_marked(mesh):
    dataset = (
        Dataset.range(1, 6).batch(3).distribute(PartitionSpec("data"), mesh=mesh, options=PADDED)
    )
    found = [(x.tolist(), valid.tolist()) for x, valid in dataset]
    assert found == [
        ([1, 2, 3, 0], [True, True, True, False]),
        ([4, 5, 0, 0], [True, True, False, False]),
    ]
    x, valid = dataset.element_spec
    assert (x.shape, valid.shape, valid.dtype) == ([4], [4], tf.bool)
    assert len(dataset) == 2


def test_a_batch_that_the_axes_do_not_divide_is_refused_with_the_nearest_sizes(mesh):
    with pytest.raises(
        InvalidArgumentError, match=r"6 rows .* 4 shards, over the mesh axis data=4"
    ) as error:
        Dataset.range(12).batch(6).distribute(PartitionSpec("data"), mesh=mesh)
    assert "batch(4) or batch(8)" in error.value.fix
    with pytest.raises(InvalidArgumentError, match="of 2 rows") as error:
        Dataset.range(6).batch(4).distribute(PartitionSpec("data"), mesh=mesh)
    assert "drop_remainder=True" in error.value.fix
    unknown = Dataset.range(6).filter(lambda x: x >= 0).batch(4)
    steps = iter(unknown.distribute(PartitionSpec("data"), mesh=mesh))
    next(steps)
    with pytest.raises(InvalidArgumentError, match="of 2 rows"):
        next(steps)


@pytest.mark.parametrize(
    ("dataset", "spec", "kind", "what"),
    [
        (Dataset.range(4), PartitionSpec("data"), InvalidArgumentError, "is a scalar"),
        (
            Dataset.range(4).batch(4),
            PartitionSpec("data", "model"),
            InvalidArgumentError,
            "at least 2",
        ),
        (Dataset.range(4).batch(4), "data", TypeError, "must be a NamedSharding"),
        (
            Dataset.range(4).batch(4),
            (PartitionSpec(),),
            InvalidArgumentError,
            "do not have the structure",
        ),
        (
            Dataset.range(4).batch(4),
            PartitionSpec("rows"),
            InvalidArgumentError,
            r"'rows'.* does not suit a mesh with the axes \['data', 'model'\]",
        ),
        (
            Dataset.range(4).batch(4),
            PartitionSpec(("data", "data")),
            InvalidArgumentError,
            "does not suit",
        ),
        (
            Dataset.range(4).batch(4),
            PartitionSpec(PartitionSpec.UNCONSTRAINED),
            InvalidArgumentError,
            "leaves a dimension unconstrained",
        ),
        (
            Dataset.range(4).batch(4),
            PartitionSpec("data", unreduced={"model"}),
            InvalidArgumentError,
            "no partial sums",
        ),
        (Dataset.from_tensor_slices(["a"] * 4).batch(4), PartitionSpec(), TypeError, "Strings"),
        (
            Dataset.from_tensor_slices(np.zeros((4, 3))).batch(4),
            PartitionSpec("data", "model"),
            InvalidArgumentError,
            "Dimension 1 of the element has size 3",
        ),
    ],
)
def test_shardings_that_do_not_suit_are_refused_at_once(mesh, dataset, spec, kind, what):
    with pytest.raises(kind, match=what):
        dataset.distribute(spec, mesh=mesh)


def test_ragged_rows_and_other_policies_and_missing_meshes_are_refused(mesh):
    ragged = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]])).batch(2)
    with pytest.raises(TypeError, match="Only dense tensors"):
        ragged.distribute(PartitionSpec(), mesh=mesh)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.FILE
    with pytest.raises(InvalidArgumentError, match=r"AutoShardPolicy\.FILE"):
        Dataset.range(4).batch(4).with_options(options).distribute(PartitionSpec(), mesh=mesh)
    with pytest.raises(InvalidArgumentError, match="needs a mesh"):
        Dataset.range(4).batch(4).distribute(PartitionSpec("data"))
    with pytest.raises(ValueError, match="experimental_fetch_to_device"):
        Dataset.range(4).batch(4).distribute(
            PartitionSpec(), mesh=mesh, options=InputOptions(experimental_fetch_to_device=False)
        )


@pytest.mark.parametrize("filtered", [False, True])
def test_a_state_moves_between_meshes_and_strategies(mesh, filtered):
    dataset = Dataset.range(32).shuffle(32, seed=1)
    if filtered:
        dataset = dataset.filter(lambda x: x >= 0)
    data = tf.data.Options()
    data.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    dataset = dataset.batch(8).with_options(data)
    steps = iter(dataset.distribute(PartitionSpec("data"), mesh=mesh))
    next(steps)
    state = json.loads(json.dumps(steps.get_state()))
    rest = plain(steps)
    assert len(rest) == 3
    other = iter(dataset.distribute(PartitionSpec(("b", "a")), mesh=mesh_of((2, 4), ("a", "b"))))
    other.set_state(state)
    assert plain(other) == rest
    replicas = iter(MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(dataset))
    replicas.set_state(state)
    assert [[step.array.tolist()] for step in replicas] == rest


def test_a_state_of_one_process_continues_on_several():
    sharding = NamedSharding(mesh_of((8,), ("a",)), PartitionSpec("a"))
    dataset = Dataset.range(40).shuffle(40, seed=5).batch(8)
    one = iter(dataset.distribute(sharding))
    next(one)
    state = one.get_state()
    rest = plain(one)
    many = feeds([dataset] * 4, sharding)

    def resumed(process):
        steps = many[process]._steps()
        steps.restore(many[process]._saving().part_of(state))
        return [steps.read()[1].tolist() for _ in rest]

    each = on_all(4, resumed)
    assert [[[*a, *b, *c, *d]] for a, b, c, d in zip(*each, strict=True)] == rest


def test_processes_that_hold_the_same_rows_form_a_group():
    sharding = NamedSharding(mesh_of((4, 2), ("model", "data")), PartitionSpec("data"))
    held = layout_of(
        Dataset.range(2).batch(2).element_spec, sharding, process_of=lambda d: d.id % 4, here=2
    ).rows
    assert held == HeldRows(2, ((0,), (1,), (0,), (1,)), 2)
    assert held.groups == [(0, 2), (1, 3)]


def test_batches_of_a_function_are_the_rows_of_a_process():
    sharding = NamedSharding(mesh_of((4, 2), ("data", "model")), PartitionSpec("data"))
    plans = [Dataset.range(3).batch(2), Dataset.range(10, 12).batch(2)]
    own = feeds(plans, sharding, PADDED, LocalFeed)
    each = on_all(2, lambda process: host_steps(own[process]))
    found = [[(int(length), column.tolist()) for length, column in steps] for steps in each]
    assert found == [[(4, [0, 1]), (4, [2])], [(4, [10, 11]), (4, [])]]


def test_a_function_gets_the_number_of_its_group(mesh):
    seen = []

    def make(context):
        seen.append((context.num_input_pipelines, context.input_pipeline_id))
        return Dataset.range(8).batch(4)

    dataset = global_batches(make, PartitionSpec("data"), mesh=mesh)
    assert [x.tolist() for x in dataset] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert (seen, dataset.element_spec.shape.as_list()) == ([(1, 0)], [None])


def test_uneven_batches_of_processes_are_refused_unless_they_are_padded():
    sharding = NamedSharding(mesh_of((4, 2), ("data", "model")), PartitionSpec("data"))
    plans = [Dataset.range(4).batch(2), Dataset.range(2).batch(2)]
    own = feeds(plans, sharding, None, LocalFeed)

    def refused(process):
        steps = own[process]._steps()
        steps.read()
        with pytest.raises(InvalidArgumentError, match="different lengths"):
            steps.read()

    on_all(2, refused)


def test_explain_draws_who_holds_which_rows(mesh):
    dataset = Dataset.from_tensor_slices({"x": np.zeros((8, 4), np.float32)}).batch(8)
    text = str(dataset.distribute(PartitionSpec("data", "model"), mesh=mesh).explain())
    assert text.splitlines()[:6] == [
        "GlobalBatches: 1 step of 8 rows on 8 devices: data=4, model=2",
        "  rows 0-1  CPU:0 CPU:1",
        "  rows 2-3  CPU:2 CPU:3",
        "  rows 4-5  CPU:4 CPU:5",
        "  rows 6-7  CPU:6 CPU:7",
        "  ['x']: (None, 4) float32 by P('data', 'model'), (2, 2) on each device",
    ]
    sharding = NamedSharding(mesh_of((2, 4), ("model", "data")), PartitionSpec("data"))
    feed = feeds([dataset] * 2, sharding)[1]
    text = str(feed.explain(None))
    assert "8 devices of 2 processes" in text
    assert "rows 2-3  process 0: CPU:1, process 1: CPU:5" in text
    assert "this process reads 4 of 4 shards of rows, as does process 0" in text


def test_it_is_no_dataset_of_a_strategy(mesh):
    dataset = Dataset.range(4).batch(4).distribute(PartitionSpec("data"), mesh=mesh)
    with pytest.raises(AttributeError, match="A GlobalBatches has no attribute 'map'"):
        dataset.map(lambda x: x)
    with pytest.raises(TypeError, match="already distributed"):
        global_batches(dataset, PartitionSpec("data"), mesh=mesh)
    assert [x.tolist() for x in dataset.as_array_iterator()] == [[0, 1, 2, 3]]


def test_a_scalar_beside_batches_is_refused_and_says_where_to_add_it(mesh):
    batches = Dataset.range(8).batch(4).map(lambda x: {"rows": x, "scale": np.float32(2)})
    sharding = {"rows": PartitionSpec("data"), "scale": PartitionSpec()}
    with pytest.raises(
        InvalidArgumentError, match=r"The element's component \['scale'\] is a scalar"
    ) as raised:
        batches.distribute(sharding, mesh=mesh)
    assert "before batch" in str(raised.value)
