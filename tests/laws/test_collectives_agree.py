"""A collective, `reduce` and `gather` give the same results in every way to run them.

The collectives are found in `replicas/collectives`, so a new one is tested here without a further word.
"""

import importlib
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import context, each, mirrored, number, parts

import evenfeed as tf
from evenfeed.replicas import collectives
from evenfeed.replicas.collectives.collective import Collective

for module in pkgutil.iter_modules(collectives.__path__, f"{collectives.__name__}."):
    importlib.import_module(module.name)

FORMS = [form for kind in Collective.__subclasses__() for form in kind.every_form()]
WAYS = ("compiled", "uneven", "in a jit", "in a vmap")
COUNT = 2
STRATEGY = mirrored(COUNT)

DTYPES = ["bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64"]
DTYPES += ["int64", "float64"] if jax.config.jax_enable_x64 else []
SHAPES = [(), (0,), (2, 0), (2, 3)]
SAMPLES = [(d, (3,)) for d in DTYPES] + [
    (d, s) for d in ("bool", "int32", "float32") for s in SHAPES
]


def sample(dtype, shape, replica):
    """Return numbers that differ between replicas, so small that their sums are exact."""
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return jnp.asarray((numbers * (replica + 2) + replica) % 7, dtype)


def accepts(form, tensor):
    try:
        form.check(tensor)
    except ValueError:
        return False
    return True


def nest(form, replica, samples=SAMPLES):
    """Return all samples that a collective takes, in a nest."""
    made = {f"{d} {s}": sample(d, s, replica) for d, s in samples}
    taken = {name: x for name, x in made.items() if accepts(form, x)}
    return {"one": taken, "more": [{}, [(), (taken["float32 (2, 3)"],)]]}


def run(way, step, value):
    """Run a step on all replicas, and return what each gets."""
    if way in ("eager", "in a jit", "in a vmap"):
        inside = {"eager": step, "in a jit": jax.jit(step), "in a vmap": over_two(step)}[way]
        return parts(STRATEGY, STRATEGY.run(inside, args=(value,)))
    rows = each(STRATEGY, lambda r: jnp.zeros(1 + (way == "uneven") * r))
    calls = []

    def counted(value, rows):
        calls.append(rows.shape)
        return step(value)

    function = tf.function(lambda *given: STRATEGY.run(counted, args=given))
    function(value, rows)
    traced = len(calls)
    found = parts(STRATEGY, function(value, rows))
    return found, len(calls) == traced


def over_two(step):
    """Return a step on two equal copies of each tensor, which returns the results of the second."""

    def mapped(value):
        twice = jax.tree.map(lambda x: jnp.stack([x, x]), value)
        return jax.tree.map(lambda x: x[1], jax.vmap(step)(twice))

    return mapped


def agree(step, value, ways=WAYS, compiled=("compiled",)):
    """Compare what a step gives in all ways. In those of `compiled`, no Python code may run again."""
    expected = run("eager", step, value)
    for way in ways:
        found = run(way, step, value)
        if way in ("compiled", "uneven"):
            found, is_compiled = found
            assert is_compiled or way not in compiled, f"{way}: it runs as plain Python"
        jax.tree.map(same, found, expected)
    return expected


def same(one, other):
    """Compare dtype, shape and values. A division may be rounded otherwise where XLA fuses it."""
    assert one.dtype == other.dtype
    inexact = jnp.issubdtype(one.dtype, jnp.inexact)
    rtol = 2 * float(jnp.finfo(one.dtype).eps) if inexact else 0
    np.testing.assert_allclose(one.astype(complex), other.astype(complex), rtol, strict=True)


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_a_collective_gives_the_same_in_every_way_to_run_it(form):
    value = each(STRATEGY, lambda r: nest(form, r))
    ways = WAYS if form.has_gradient else WAYS[:2]
    compiled = WAYS[:2] if type(form).uneven is Collective.uneven else WAYS[:1]
    found = agree(lambda x: context()._perform(form, x), value, ways, compiled)
    jax.tree.map(same, found, [found[0]] * COUNT)
    assert len(found[0]["one"]) > 5, "it takes too few tensors to test anything"


@pytest.mark.parametrize("form", FORMS, ids=repr)
def test_equal_arrays_give_what_the_collective_says_of_equal_arrays(form):
    value = nest(form, 1)
    found = run("eager", lambda x: context()._perform(form, x), value)[0]
    leaves, tree = jax.tree.flatten(value)
    jax.tree.map(same, found, tree.unflatten(map(np.asarray, form.if_equal(leaves, COUNT))))


@pytest.mark.parametrize("form", [form for form in FORMS if form.has_gradient], ids=repr)
def test_gradients_are_the_same_in_every_way_to_run_a_collective(form):
    def loss(x):
        results = jax.tree.leaves(context()._perform(form, x))
        return sum(jnp.sum(y**2 * (k + 1)) for k, y in enumerate(results)) * (number() + 1)

    value = each(STRATEGY, lambda r: nest(form, r, [s for s in SAMPLES if s[0] == "float32"]))
    found = agree(jax.grad(loss), value, ("compiled", "uneven", "in a jit"))
    assert any(np.any(part != 0) for part in jax.tree.leaves(found)), "the gradients are all zero"


# --- across replicas --------------------------------------------------------------------------

VALUES = {
    "even": lambda dtype: [sample(dtype, (2, 3), r) for r in range(COUNT)],
    "uneven": lambda dtype: [sample(dtype, (r, 3), r) for r in range(COUNT)],
    "scalars": lambda dtype: [sample(dtype, (), r) for r in range(COUNT)],
    "empty": lambda dtype: [sample(dtype, (0, 3), r) for r in range(COUNT)],
}
NUMBERS = ("int8", "int32", "bfloat16", "float32")


def across(calls, values):
    """Make calls of the strategy: plainly, compiled, and compiled beside uneven parts."""
    rows = [each(STRATEGY, lambda r, k=k: jnp.zeros(1 + r * k)) for k in (0, 1)]
    function = tf.function(lambda values, rows: calls(values))
    expected, *others = calls(values), *(function(values, each_row) for each_row in rows)
    for found in others:
        jax.tree.map(lambda a, b: same(np.asarray(a), np.asarray(b)), found, expected)
    return expected


@pytest.mark.parametrize(
    ("kind", "axis"),
    [("even", None), ("even", 0), ("uneven", 0), ("uneven", (1, 0)), ("scalars", None), ("empty", 0)],
)  # fmt: skip
def test_reduce_gives_the_same_in_every_way(kind, axis):
    made = {dtype: VALUES[kind](dtype) for dtype in NUMBERS}
    values = {d: each(STRATEGY, lambda r, xs=xs: xs[r]) for d, xs in made.items()}

    def calls(values):
        return {
            f"{op} {dtype}": STRATEGY.reduce(op, value, axis)
            for dtype, value in values.items()
            for op in ("SUM", "MEAN")
        }

    found = across(calls, values)
    rows = [np.asarray(x, "float32") for x in made["float32"]]
    stacked = np.stack(rows) if axis is None else np.concatenate(rows)
    total = stacked.sum(0 if axis is None else axis)
    np.testing.assert_array_equal(found["SUM float32"], total)


@pytest.mark.parametrize(("kind", "axis"), [("even", -1), ("uneven", 0), ("empty", 1)])
def test_gather_gives_the_same_in_every_way(kind, axis):
    made = {dtype: VALUES[kind](dtype) for dtype in ("bool", *NUMBERS)}
    values = {d: each(STRATEGY, lambda r, xs=xs: xs[r]) for d, xs in made.items()}

    def calls(values):
        return {dtype: STRATEGY.gather(value, axis) for dtype, value in values.items()}

    found = across(calls, values)
    for dtype, xs in made.items():
        same(np.asarray(found[dtype]), np.concatenate([np.asarray(x) for x in xs], axis))
