"""Mirrored values: used as tensors, and as pytrees."""

import copy
import operator
import pickle

import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint
import pytest
from tests.mirroring import each, mirrored

import evenfeed as tf


@pytest.fixture
def strategy():
    return mirrored(2)


def assigned(strategy, value=(3.0, 4.0)):
    with strategy.scope():
        v = tf.Variable(np.zeros_like(value, "f4"))
    return v.assign(value)


@pytest.mark.parametrize(
    "sign", [operator.add, operator.mul, operator.sub, operator.truediv, operator.lt, operator.pow]
)
@pytest.mark.parametrize("other", [2.0, np.float32(2), jnp.array([2.0, 1.0]), [1.0, 2.0]], ids=str)
def test_it_is_computed_with_as_its_tensor_is(strategy, sign, other):
    m, plain = assigned(strategy), jnp.array([3.0, 4.0], "f4")
    like = jnp.asarray(other)
    assert sign(m, other).tolist() == pytest.approx(sign(plain, like).tolist())
    assert np.asarray(sign(other, m)).tolist() == pytest.approx(sign(like, plain).tolist())
    assert sign(m, m).tolist() == sign(plain, plain).tolist()


def test_it_has_what_its_tensor_has(strategy):
    m = assigned(strategy)
    assert (m.shape, m.dtype, m.ndim, m.size) == ((2,), tf.float32, 1, 2)
    assert m.numpy().tolist() == m.tolist() == [3.0, 4.0]
    assert (float(m[1]), float(m.sum()), len(m), [float(x) for x in m]) == (4, 7, 2, [3, 4])
    assert (-m).tolist() == [-3.0, -4.0]
    assert tf.stack([m, m]).shape == (2, 2)
    with pytest.raises(AttributeError, match="assign_add"):
        m.assign_add(1.0)


def test_a_scalar_is_a_number_of_pythons_too(strategy):
    m = assigned(strategy, 2.0)
    assert (float(m), int(m), bool(m), complex(m)) == (2.0, 2, True, 2 + 0j)
    m += 1
    assert float(m) == 3.0


def test_it_is_equal_to_itself_alone_and_can_be_a_key(strategy):
    m = assigned(strategy)
    assert m == m  # noqa: PLR0124 - that is what is tested
    assert m != assigned(strategy)
    assert {m: 1}[m] == 1


@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_what_assigning_returns_is_a_tensor(strategy, method, compiled):
    with strategy.scope():
        v = tf.Variable(5.0)
    change = lambda: getattr(v, method)(2.0)  # noqa: E731
    result = tf.function(change)() if compiled else change()
    assert float(result) == v.numpy() == result.numpy()
    assert float(result + 1) == v.numpy() + 1


def test_beside_uneven_parts_what_assigning_returns_is_a_tensor_too(strategy):
    with strategy.scope():
        v = tf.Variable(5.0)
    x = each(strategy, lambda r: jnp.arange(r + 1.0))

    @tf.function
    def step(x):
        total = strategy.reduce("SUM", strategy.run(lambda own: own.sum(), args=(x,)), axis=None)
        result = v.assign_add(2.0)
        again = strategy.run(lambda own, r: own.sum() + r, args=(x, result))
        return result, result + total, again

    result, total, again = step(x)
    assert (float(result), float(total)) == (7.0, 8.0)
    assert [float(part) for part in again.values] == [7.0, 8.0]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_it_can_be_copied(strategy, copied):
    assert copied(assigned(strategy)).tolist() == [3.0, 4.0]


# --- as trees -------------------------------------------------------------------------------


KINDS = {
    "mirrored": assigned,
    "even": lambda s: each(s, lambda r: jnp.arange(2.0) + r),
    "scalars": lambda s: each(s, jnp.float32),
    "uneven": lambda s: each(s, lambda r: jnp.arange(r + 1.0)),
    "a result": lambda s: s.run(tf.function(lambda x: x * 2), args=(KINDS["even"](s),)),
}
of_all_kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def parts(value):
    return [np.asarray(part).tolist() for part in value.values]


MOVES = {
    "np.asarray": lambda tree: jax.tree.map(np.asarray, tree),
    "device_get": jax.device_get,
    "there and back": lambda tree: jax.device_put(jax.device_get(tree)),
    "flax": lambda tree: flax.serialization.from_bytes(tree, flax.serialization.to_bytes(tree)),
    "flax's dict": lambda tree: flax.serialization.from_state_dict(
        tree, flax.serialization.to_state_dict(tree)
    ),
}


@of_all_kinds
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_it_survives_where_libraries_move_its_arrays(strategy, kind, move):
    value = kind(strategy)
    moved = move({"a": [value]})["a"][0]
    assert type(moved) is type(value)
    assert parts(moved) == parts(value)
    assert jax.tree.structure(moved) == jax.tree.structure(value)
    assert repr(moved)


@of_all_kinds
@pytest.mark.parametrize(
    "move", [MOVES["device_get"], MOVES["there and back"]], ids=["host", "back"]
)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_it_goes_on_in_run_and_reduce_where_it_came_back(strategy, kind, move, compiled):
    value = kind(strategy)
    moved = move(value)
    double = tf.function(lambda x: x * 2) if compiled else lambda x: x * 2
    expected = [(np.asarray(part) * 2).tolist() for part in value.values]
    assert parts(strategy.run(double, args=(moved,))) == expected
    summed = tf.function(strategy.reduce) if compiled else strategy.reduce
    axis = 0 if value.values[0].ndim else None
    assert (
        float(np.sum(summed("SUM", moved, axis)))
        == np.concatenate([np.ravel(part) for part in value.values]).sum()
    )


@of_all_kinds
def test_it_is_saved_by_orbax(strategy, kind, tmp_path):
    value = {"v": kind(strategy)}
    with orbax.checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "saved", value)
        checkpointer.wait_until_finished()
        found = checkpointer.restore(tmp_path / "saved", value)
    assert parts(found["v"]) == parts(value["v"])


@of_all_kinds
@pytest.mark.parametrize(
    "stand_in",
    [None, "text", object(), jax.ShapeDtypeStruct((), "f4")],
    ids=["None", "text", "object", "spec"],
)
def test_it_opens_as_it_was_closed_whatever_stands_in_for_its_arrays(strategy, kind, stand_in):
    value = kind(strategy)
    leaves, tree = jax.tree.flatten(value)
    found = jax.tree.unflatten(tree, [stand_in] * len(leaves))
    again = jax.tree.flatten(found, is_leaf=lambda leaf: leaf is None)[0]
    assert again == [stand_in] * len(leaves)
    assert repr(found)
