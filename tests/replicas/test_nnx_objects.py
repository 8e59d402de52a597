"""`flax.nnx` objects among the arguments: changes reach the caller's objects, or are an error."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from tests.mirroring import context, each, mirrored

import evenfeed as tf

ROWS = np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32)
TARGETS = ROWS.sum(1, keepdims=True)


class Model(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(3, 1, rngs=rngs)
        self.dropout = nnx.Dropout(0.0, rngs=rngs)
        self.calls = nnx.Variable(jnp.zeros((), jnp.int32))

    def __call__(self, x):
        self.calls[...] += 1
        return self.dropout(self.linear(x))


def made():
    model = Model(nnx.Rngs(0))
    return model, nnx.Optimizer(model, optax.adam(0.1), wrt=nnx.Param)


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).sum() / 8


def step(model, optimizer, x, y):
    loss, grads = nnx.value_and_grad(loss_of)(model, x, y)
    optimizer.update(model, context().all_reduce("SUM", grads))
    return context().all_reduce("SUM", loss)


def trained_by_nnx(steps, rows=8):
    """Return the weights and losses of nnx.jit on one device."""
    model, optimizer = made()
    x, y = ROWS[:rows], TARGETS[:rows]

    @nnx.jit
    def alone(model, optimizer):
        loss, grads = nnx.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, grads)
        return loss

    losses = [float(alone(model, optimizer)) for _ in range(steps)]
    return np.asarray(model.linear.kernel[...]), losses


def batch(strategy, rows=8):
    """Return some of the rows, split over the replicas."""
    dataset = tf.data.Dataset.from_tensor_slices((ROWS[:rows], TARGETS[:rows])).batch(rows)
    (given,) = strategy.experimental_distribute_dataset(dataset)
    return given


def eager(strategy):
    return lambda *given: strategy.run(step, args=given)


def compiled(strategy):
    return tf.function(lambda *given: strategy.run(step, args=given))


def of_a_function(strategy):
    inner = tf.function(step)
    return lambda *given: strategy.run(inner, args=given)


def captured(strategy):
    """Return a step in a compiled function that closes over the objects."""
    found = {}

    def train(model, optimizer, x, y):
        key = id(model), id(optimizer)
        if key not in found:
            found[key] = tf.function(lambda x, y: strategy.run(step, args=(model, optimizer, x, y)))
        return found[key](x, y)

    return train


def closed_over(strategy):
    """Return a step in which each replica's function closes over the objects."""

    def train(model, optimizer, x, y):
        @tf.function
        def own(x, y):
            return step(model, optimizer, x, y)

        return strategy.run(own, args=(x, y))

    return train


WAYS = [compiled, of_a_function, captured, closed_over]
CASES = [(eager, 2, 7), *((way, *size) for way in WAYS for size in [(2, 8), (2, 7), (4, 7)])]
driven = pytest.mark.filterwarnings("ignore:.*it changes nnx objects that it closes over")


@driven
@pytest.mark.parametrize(("way", "count", "rows"), CASES)
def test_a_module_is_trained_as_nnx_jit_trains_it(way, count, rows):
    strategy = mirrored(count)
    weights, losses = trained_by_nnx(3, rows)
    model, optimizer = made()
    x, y = batch(strategy, rows)
    train = way(strategy)
    found = [train(model, optimizer, x, y) for _ in range(3)]
    seen = [float(strategy.experimental_local_results(loss)[0]) for loss in found]
    np.testing.assert_allclose(seen, losses, rtol=1e-4)
    np.testing.assert_allclose(model.linear.kernel[...], weights, rtol=1e-4)
    assert int(optimizer.step[...]) == 3
    assert int(model.calls[...]) == 3


@driven
@pytest.mark.parametrize("way", [compiled, of_a_function, captured])
def test_a_program_serves_all_later_steps(way):
    strategy, traced = mirrored(2), []

    class Counted(Model):
        def __call__(self, x):
            traced.append(x.shape)
            return super().__call__(x)

    model = Counted(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    train, given = way(strategy), batch(strategy)
    for _ in range(2):
        train(model, optimizer, *given)
    first = len(traced)
    for _ in range(3):
        train(model, optimizer, *given)
    assert len(traced) == first


def test_a_function_without_a_strategy_does_what_nnx_jit_does():
    model, optimizer = made()

    @tf.function
    def alone(model, optimizer):
        loss, grads = nnx.value_and_grad(loss_of)(model, ROWS, TARGETS)
        optimizer.update(model, grads)
        return loss

    weights, losses = trained_by_nnx(3)
    assert [float(alone(model, optimizer)) for _ in range(3)] == pytest.approx(losses, rel=1e-5)
    np.testing.assert_allclose(model.linear.kernel[...], weights, rtol=1e-5)
    assert alone.experimental_get_tracing_count() == 1


@driven
def test_a_function_that_closes_over_a_module_changes_it():
    model, _ = made()
    add = tf.function(lambda x: model(x) + 1)
    for count in range(1, 4):
        add(ROWS)
        assert int(model.calls[...]) == count


@pytest.mark.parametrize("way", [eager, compiled])
def test_a_module_in_a_nest_is_changed_too(way):
    strategy = mirrored(2)
    model, optimizer = made()

    def nested(state, x, y):
        return step(state["model"], state["more"][0], x, y)

    run = strategy.run if way is eager else tf.function(strategy.run)
    run(nested, args=({"model": model, "more": [optimizer]}, *batch(strategy)))
    assert int(model.calls[...]) == 1
    assert int(optimizer.step[...]) == 1


@pytest.mark.parametrize("way", [eager, compiled])
def test_what_two_arguments_share_stays_shared(way):
    strategy = mirrored(2)
    model = Model(nnx.Rngs(0))
    both = nnx.ModelAndOptimizer(model, optax.sgd(0.1))

    def shared(model, both, x, y):
        grads = nnx.grad(loss_of)(model, x, y)
        both.update(context().all_reduce("SUM", grads))
        return model.linear.kernel[...] - both.model.linear.kernel[...]

    before = np.asarray(model.linear.kernel[...])
    run = strategy.run if way is eager else tf.function(strategy.run)
    apart = run(shared, args=(model, both, *batch(strategy)))
    for part in strategy.experimental_local_results(apart):
        np.testing.assert_array_equal(part, 0)
    assert both.model is model
    assert not np.allclose(before, model.linear.kernel[...])


@pytest.mark.parametrize("way", [eager, compiled])
def test_a_single_variable_and_a_generator_are_changed_too(way):
    strategy = mirrored(2)
    variable, rngs = nnx.Variable(jnp.zeros(2)), nnx.Rngs(3)

    def add(variable, rngs, x):
        variable[...] += 1
        return jax.random.normal(rngs.default(), ()) + x.sum()

    x = each(strategy, lambda r: jnp.zeros(2))
    run = strategy.run if way is eager else tf.function(strategy.run)
    drawn = [run(add, args=(variable, rngs, x)) for _ in range(2)]
    first, second = (float(strategy.experimental_local_results(value)[0]) for value in drawn)
    own = nnx.Rngs(3)
    assert [first, second] == [float(jax.random.normal(own.default(), ())) for _ in range(2)]
    np.testing.assert_array_equal(variable[...], [2.0, 2.0])


@pytest.mark.parametrize("way", [eager, compiled])
def test_a_method_of_a_module_changes_it(way):
    strategy = mirrored(2)

    class Counter(nnx.Module):
        def __init__(self):
            self.total = nnx.Variable(jnp.zeros(()))

        def add(self, x):
            self.total[...] += context().all_reduce("SUM", x.sum())

    counter = Counter()
    x = each(strategy, lambda r: jnp.ones(2) * (r + 1))
    run = strategy.run if way is eager else lambda fn, args: strategy.run(tf.function(fn), args)
    for count in (1, 2):
        run(counter.add, args=(x,))
        assert float(counter.total[...]) == 6.0 * count


@pytest.mark.parametrize("way", [eager, compiled])
def test_a_returned_module_is_the_callers(way):
    strategy = mirrored(2)
    model, _ = made()

    def call(model, x):
        model(x)
        return model, x.sum()

    run = strategy.run if way is eager else tf.function(strategy.run)
    found, _ = run(call, args=(model, batch(strategy)[0]))
    assert found is model


@pytest.mark.parametrize("way", [eager, compiled])
def test_settings_of_a_module_are_changed_too(way):
    strategy = mirrored(2)
    model, _ = made()

    def evaluate(model, x):
        model.eval()
        return context().all_reduce("SUM", model(x).sum())

    run = strategy.run if way is eager else tf.function(strategy.run)
    for _ in range(2):
        run(evaluate, args=(model, batch(strategy)[0]))
        assert model.dropout.deterministic
        model.train()


def test_a_module_is_usable_outside_and_in_other_ways_afterwards():
    strategy = mirrored(2)
    model, optimizer = made()
    given = batch(strategy)
    for way in (compiled, eager, of_a_function):
        way(strategy)(model, optimizer, *given)
        assert model(ROWS).shape == (8, 1)
    restored = nnx.merge(*nnx.split(model))
    np.testing.assert_array_equal(restored.linear.kernel[...], model.linear.kernel[...])


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [eager, compiled])
def test_replicas_that_disagree_are_an_error_that_names_the_variable(way):
    strategy = mirrored(2)

    class Normed(nnx.Module):
        def __init__(self):
            self.norm = nnx.BatchNorm(3, rngs=nnx.Rngs(0))

    def call(model, x):
        return model.norm(x).sum()

    run = strategy.run if way is eager else tf.function(strategy.run)
    with pytest.raises(
        ValueError, match=r"have set norm\.mean of an nnx object to different values"
    ):
        run(call, args=(Normed(), batch(strategy, 7)[0]))


def test_statistics_that_replicas_average_are_changed():
    strategy = mirrored(2)
    norm = nnx.BatchNorm(3, axis_name="replica", rngs=nnx.Rngs(0))
    x, _ = batch(strategy)
    tf.function(lambda norm, x: strategy.run(lambda n, x: n(x).sum(), args=(norm, x)))(norm, x)
    whole = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    whole(ROWS)
    np.testing.assert_allclose(norm.mean[...], whole.mean[...], rtol=1e-5)


def test_new_objects_in_a_module_are_an_error():
    strategy = mirrored(2)
    model, _ = made()

    def grow(model, x):
        model.more = Model(nnx.Rngs(1))
        return x.sum()

    with pytest.raises(ValueError, match="added objects to an nnx object"):
        tf.function(strategy.run)(grow, args=(model, batch(strategy)[0]))


def test_a_concrete_function_of_nnx_objects_is_refused():
    model, _ = made()
    with pytest.raises(ValueError, match="nnx objects"):
        tf.function(lambda model, x: model(x)).get_concrete_function(model, ROWS)


def weights(model):
    return model.linear.kernel[...], model.linear.bias[...]


@pytest.mark.parametrize("way", ["loop", "run_steps"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_many_steps_train_the_objects_that_a_step_closes_over(way, replicas):
    strategy = mirrored(replicas)
    model, optimizer = made()
    expected_model, expected_optimizer = made()
    data = tf.data.Dataset.from_tensor_slices((ROWS, TARGETS)).batch(4).repeat(3)
    batches = strategy.experimental_distribute_dataset(data)

    def closing(batch):
        return step(model, optimizer, *batch)

    @tf.function
    def train(iterator):
        for _ in tf.range(6):
            strategy.run(closing, args=(next(iterator),))

    def many():
        if way == "loop":
            train(iter(batches))
        else:
            strategy.run_steps(closing, iter(batches), 6)

    with pytest.warns(UserWarning, match="changes nnx objects that it closes over"):
        many()
    for batch in batches:
        strategy.run(step, args=(expected_model, expected_optimizer, *batch))
    assert int(model.calls[...]) == 6
    for found, expected in zip(weights(model), weights(expected_model), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_many_steps_that_only_call_a_model_run_in_one_program(recwarn):
    strategy = mirrored(2)
    model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
    data = tf.data.Dataset.from_tensor_slices(ROWS).batch(4)
    iterator = iter(strategy.experimental_distribute_dataset(data))
    results = strategy.run_steps(model, iterator, 2)
    found = [part for each in results for part in strategy.experimental_local_results(each)]
    np.testing.assert_allclose(np.concatenate(found), model(ROWS), rtol=1e-5)
    assert not recwarn
