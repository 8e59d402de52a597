"""Per-replica values: their parts, joining them into one array, printing and pickling."""

import copy
import pickle

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas.values import PerReplicaSpec

DEVICES = jax.local_devices(backend="cpu")
TWO = tf.TensorSpec([2], tf.int32)


def on(index, value):
    return jax.device_put(np.asarray(value), DEVICES[index])


def sharded(values, devices):
    return jax.device_put(
        np.asarray(values), NamedSharding(Mesh(np.array(devices), ("x",)), PartitionSpec("x"))
    )


def refuses(parts, why, fix):
    value = tf.distribute.PerReplica(parts)
    with error_saying(
        InvalidArgumentError, f"The replicas' parts cannot form one sharded array: {why}.", fix=fix
    ):
        value.array  # noqa: B018 - the access is the test


@pytest.mark.parametrize("count", range(1, 9))
def test_an_array_has_one_part_for_each_device(count):
    value = tf.distribute.PerReplica(array=sharded(np.arange(2 * count), DEVICES[:count]))
    assert len(value) == count
    assert [part.tolist() for part in value.values] == [[2 * i, 2 * i + 1] for i in range(count)]
    assert [part.devices() for part in value.values] == [{d} for d in DEVICES[:count]]
    assert value[count - 1] is value.values[count - 1]


def test_parts_come_by_row_however_jax_lists_its_shards():
    mesh = Mesh(np.array(DEVICES[:4]).reshape(2, 2), ("a", "b"))
    array = jax.device_put(np.arange(4), NamedSharding(mesh, PartitionSpec(("b", "a"))))
    listed = [shard.data.tolist() for shard in array.addressable_shards]
    assert listed != sorted(listed), "JAX lists them by row here: the test tests nothing"
    value = tf.distribute.PerReplica(array=array)
    assert [part.tolist() for part in value.values] == [[0], [1], [2], [3]]


def test_a_part_beyond_the_last_is_an_index_error():
    with pytest.raises(IndexError):
        tf.distribute.PerReplica([1, 2])[2]


@pytest.mark.parametrize("order", [(0,), (0, 1), (1, 0), (5, 2, 7)])
def test_equal_parts_on_their_own_devices_are_one_array(order):
    parts = [on(device, [place, place + 1]) for place, device in enumerate(order)]
    value = tf.distribute.PerReplica(parts)
    assert value.array.tolist() == [x for part in parts for x in part.tolist()]
    assert value.array is value.array
    assert value.array.sharding.spec == PartitionSpec("replica")
    assert list(value.array.sharding.mesh.devices) == [DEVICES[i] for i in order]
    assert all(mine is theirs for mine, theirs in zip(value.parts, parts, strict=True))


def test_that_array_lies_as_a_strategys_own_do():
    strategy = tf.distribute.MirroredStrategy(["CPU:1", "CPU:0"])
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    own = next(iter(dataset)).array
    made = tf.distribute.PerReplica([on(1, [0, 1]), on(0, [2, 3])]).array
    assert made.sharding == own.sharding
    assert (made + own).tolist() == [0, 2, 4, 6]


def test_empty_parts_are_one_empty_array():
    value = tf.distribute.PerReplica([on(1, np.zeros((0, 2))), on(0, np.zeros((0, 2)))])
    assert value.array.shape == (0, 2)


ON_THEIR_OWN = (
    "put each part on a different device with jax.device_put(part, device), or join them on one "
    "device with jax.numpy.concatenate(value.values)."
)


def test_parts_that_share_a_device_say_so():
    refuses([on(1, [1]), on(1, [2])], f"they are on {[str(DEVICES[1])] * 2}", ON_THEIR_OWN)


def test_parts_on_the_host_say_so():
    refuses([np.zeros(2), np.ones(2)], "they are on ['the host', 'the host']", ON_THEIR_OWN)


def test_a_part_that_is_sharded_itself_says_so():
    part = sharded([1, 2], DEVICES[:2])
    both = " and ".join(sorted(map(str, DEVICES[:2])))
    refuses([part, part], f"they are on {[both, both]}", ON_THEIR_OWN)


def test_parts_that_are_traced_say_so():
    def step(part):
        refuses([part, part], f"they are on {['no device yet (JAX is tracing)'] * 2}", ON_THEIR_OWN)
        return part

    jax.jit(step)(np.zeros(2, np.float32))


@pytest.mark.parametrize(
    "parts",
    [["a", "b"], [b"a", b"b"], [np.array([b"a"], object)] * 2, [np.array(["a"])] * 2],
    ids=["str", "bytes", "objects", "unicode"],
)
def test_text_says_that_it_stays_on_the_host(parts):
    refuses(parts, "they are strings, which stay on the host", "use value.values.")


@pytest.mark.parametrize(
    ("parts", "names"), [([None, None], "NoneType, NoneType"), ([on(0, [1]), 2], "int")]
)
def test_what_is_no_array_says_so(parts, names):
    refuses(parts, f"they are not arrays but {names}", "use value.values.")


def test_no_parts_at_all_say_so():
    refuses([], "there are no parts", "pass one part for each replica.")


def test_parts_of_several_shapes_say_so():
    refuses(
        [on(0, [1, 2]), on(1, [3])],
        "their shapes are [(2,), (1,)]",
        "use a batch size that is a multiple of the number of replicas, and drop_remainder=True.",
    )


def test_parts_of_several_dtypes_say_so():
    refuses(
        [on(0, np.int32([1])), on(1, np.float32([1]))],
        "their dtypes are ['int32', 'float32']",
        "cast the parts to one dtype.",
    )


def test_scalars_become_rows_of_one_array():
    value = tf.distribute.PerReplica([on(0, 1), on(1, 2)])
    assert (value.array.shape, value.array.tolist(), value.is_lifted) == ((2,), [1, 2], True)
    again = jax.tree.map(lambda array: array * 10, value)
    assert [(part.shape, int(part)) for part in again.values] == [((), 10), ((), 20)]


def test_a_value_shows_its_parts_by_replica():
    value = tf.distribute.PerReplica([on(0, np.int32([1, 2])), np.array([b"a"], object)])
    assert str(value) == (
        "PerReplica:{\n"
        "  0: tf.Tensor([1 2], shape=(2,), dtype=int32),\n"
        "  1: tf.Tensor([b'a'], shape=(1,), dtype=string)\n"
        "}"
    )
    assert repr(value) == (
        "PerReplica:{\n"
        "  0: <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>,\n"
        "  1: <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a'], dtype=object)>\n"
        "}"
    )


def test_a_value_knows_its_spec():
    value = tf.distribute.PerReplica([on(0, np.int32([1, 2])), None])
    spec = tf.type_spec_from_value(value)
    assert spec.value_specs == (TWO, tf.type_spec_from_value(None))
    assert spec.is_compatible_with(value)
    assert spec.value_type is tf.distribute.PerReplica


def test_specs_are_compared_part_by_part():
    spec = PerReplicaSpec(TWO, TWO)
    longer = PerReplicaSpec(TWO, tf.TensorSpec([3], tf.int32))
    open_one = PerReplicaSpec(TWO, tf.TensorSpec([None], tf.int32))
    assert spec == PerReplicaSpec(TWO, TWO)
    assert hash(spec) == hash(PerReplicaSpec(TWO, TWO))
    assert spec not in (PerReplicaSpec(TWO), longer, TWO)
    assert spec.is_subtype_of(open_one)
    assert not open_one.is_subtype_of(spec)
    assert spec.most_specific_compatible_type(longer) == open_one
    assert spec.most_specific_common_supertype([PerReplicaSpec(TWO)]) is None
    assert repr(PerReplicaSpec(TWO)) == f"PerReplicaSpec({TWO!r})"
    assert pickle.loads(pickle.dumps(spec)) == spec


@pytest.mark.parametrize("look_first", [False, True])
def test_a_pickled_value_keeps_all_its_parts(look_first):
    value = tf.distribute.PerReplica(array=sharded([1, 2, 3, 4], DEVICES[:2]))
    if look_first:
        assert len(value) == 2
    again = pickle.loads(pickle.dumps(value))
    assert [part.tolist() for part in again.values] == [[1, 2], [3, 4]]


def test_a_pickled_value_keeps_text_and_none():
    again = pickle.loads(pickle.dumps(tf.distribute.PerReplica([np.array([b"a"], object), None])))
    assert (again[0].tolist(), again[1]) == ([b"a"], None)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_lies_on_the_same_devices(copied):
    value = tf.distribute.PerReplica(array=sharded([1, 2, 3, 4], DEVICES[1::-1]))
    again = copied(value)
    assert again.array.tolist() == [1, 2, 3, 4]
    assert [part.devices() for part in again.values] == [{DEVICES[1]}, {DEVICES[0]}]


def test_values_of_pythons_numbers_are_printed():
    assert str(tf.distribute.PerReplica((0, 1.5))) == "PerReplica:{\n  0: 0,\n  1: 1.5\n}"
