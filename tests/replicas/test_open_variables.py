"""Variables of unknown shape in compiled functions and loops."""

import pytest

import evenfeed as tf
from evenfeed.errors import InvalidArgumentError

MEAN = tf.VariableAggregation.MEAN


@pytest.fixture
def growing():
    return tf.Variable([1.0, 2.0], shape=[None])


def test_a_function_computes_with_the_shape_that_a_variable_holds_now(growing):
    mean = tf.function(lambda: tf.reduce_mean(growing))
    size = tf.function(lambda x: x + tf.cast(tf.size(growing), tf.float32))
    assert [float(mean()), float(size(0.0))] == [1.5, 2]
    growing.assign([1.0, 2.0, 6.0])
    assert [float(mean()), float(size(0.0))] == [3, 3]
    growing.assign([3.0])
    assert [float(mean()), float(size(0.0))] == [3, 1]


def test_a_function_traces_once_for_each_shape(growing):
    mean = tf.function(lambda: tf.reduce_mean(growing))
    for values in [[1.0], [1.0, 3.0], [5.0], [2.0, 4.0]]:
        growing.assign(values)
        assert float(mean()) == sum(values) / len(values)
    assert mean.experimental_get_tracing_count() == 2


def test_a_function_may_read_another_such_variable_later(growing):
    other = tf.Variable([1.0, 2.0, 3.0], shape=[None])
    total = tf.function(lambda x, both: x + tf.reduce_mean(other if both else growing))
    assert [float(total(0.0, both)) for both in (False, True)] == [1.5, 2]
    growing.assign([4.0])
    other.assign([7.0])
    assert [float(total(0.0, both)) for both in (False, True)] == [4, 7]


@pytest.mark.filterwarnings("error")
def test_a_function_traces_once_for_each_variable_that_it_gets():
    total = tf.function(tf.reduce_sum)
    variables = [tf.Variable([float(n)], shape=[None]) for n in range(8)]
    for count in range(1, 9):
        assert [float(total(v)) for v in variables[:count]] == list(range(count))
    assert total.experimental_get_tracing_count() == 8


def test_a_new_shape_leaves_programs_that_do_not_read_the_variable(growing):
    total = tf.function(lambda x, reads: x + (tf.reduce_sum(growing) if reads else 0.0))
    for n in range(1, 5):
        growing.assign([1.0] * n)
        assert [float(total(0.0, reads)) for reads in (False, True)] == [0, n]
        assert [float(total(tf.constant(0.0), reads)) for reads in (False, True)] == [0, n]
    assert total.experimental_get_tracing_count() == 10


def test_a_shape_may_decide_which_variables_a_function_reads(growing):
    other = tf.Variable([1.0], shape=[None])
    chosen = tf.function(lambda: tf.reduce_sum(growing if len(growing) < 3 else other))
    for values, others, expected in [
        ([1.0, 1.0], [5.0], 2),
        ([1.0, 1.0], [5.0, 5.0], 2),
        ([1.0, 1.0, 1.0], [5.0, 5.0], 10),
        ([1.0, 1.0, 1.0], [5.0, 5.0, 5.0], 15),
        ([2.0, 2.0], [5.0], 4),
        ([1.0, 1.0, 1.0], [6.0, 6.0], 12),
    ]:
        growing.assign(values)
        other.assign(others)
        assert float(chosen()) == expected
    assert chosen.experimental_get_tracing_count() == 3


def test_a_function_keeps_only_programs_of_the_latest_shapes(growing):
    total = tf.function(lambda: tf.reduce_sum(growing))
    for n in [*range(1, 40), 39, 1]:
        growing.assign([1.0] * n)
        assert float(total()) == n
    assert total.experimental_get_tracing_count() == 40


def test_a_function_still_refuses_new_variables_after_one_of_unknown_shape_was_read(growing):
    made = []

    @tf.function
    def total(x, makes):
        if makes:
            made.append(tf.Variable(1.0))
        return x + tf.reduce_sum(growing)

    assert float(total(0.0, False)) == 3
    with pytest.raises(ValueError, match="only in its first call"):
        total(0.0, True)


@pytest.mark.parametrize("way", ["single steps", "loop", "run_steps"])
def test_steps_may_make_a_variable_longer(way):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        seen = tf.Variable(tf.zeros([0]), shape=[None], aggregation=MEAN)

    def step(x):
        seen.assign(tf.concat([seen.value(), [tf.reduce_sum(x)]], 0))
        return tf.reduce_mean(seen)

    run = tf.function(lambda x: strategy.run(step, args=(x,)))

    @tf.function
    def loop(iterator):
        for _ in tf.range(3):
            losses = strategy.run(step, args=(next(iterator),))
        return losses

    dataset = tf.data.Dataset.from_tensor_slices([2.0, 4.0] * 3).batch(2)
    steps = strategy.experimental_distribute_dataset(dataset)
    if way == "single steps":
        (*_, last) = [run(x) for x in steps]
    elif way == "loop":
        with pytest.warns(UserWarning, match="changes its shape"):
            last = loop(iter(steps))
    else:
        with pytest.warns(UserWarning, match="changes its shape"):
            last = strategy.run_steps(step, iter(steps), 3)[-1]
    assert seen.numpy().tolist() == [3, 3, 3]
    assert [float(x) for x in strategy.experimental_local_results(last)] == [3, 3]


def test_a_compiled_loop_reads_the_shape_that_a_variable_holds_now(growing):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = tf.data.Dataset.from_tensor_slices([0.0] * 8).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))

    def step(x):
        return tf.reduce_sum(x) + tf.reduce_mean(growing)

    def first():
        losses = strategy.run_steps(step, iterator, 2)[0]
        return float(strategy.reduce("MEAN", losses, axis=None))

    assert first() == 1.5
    growing.assign([1.0, 2.0, 6.0])
    assert first() == 3


def test_a_concrete_function_refuses_another_shape(growing):
    mean = tf.function(lambda: tf.reduce_mean(growing)).get_concrete_function()
    assert float(mean()) == 1.5
    growing.assign([1.0, 2.0, 6.0])
    with pytest.raises(InvalidArgumentError, match="another shape than when"):
        mean()
