"""Many steps in one compiled program: the same as one step after the other, whatever the loop does."""

import warnings
from functools import partial
from types import MethodType

import jax
import numpy as np
import pytest

import evenfeed as tf

ROWS, FEATURES, BATCH = 42, 3, 4  # ten full batches, and a short one
DATA = np.random.default_rng(0).normal(size=(ROWS, FEATURES + 1)).astype(np.float32)


@pytest.fixture(scope="module", params=[1, 2])
def strategy(request):
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(request.param)])


class Training:
    """A model, its data and its step. Counts how often Python runs the step."""

    def __init__(self, strategy, rows=DATA, batch=BATCH):
        self.strategy = strategy
        self.traces = 0
        with strategy.scope():
            first = tf.VariableAggregation.ONLY_FIRST_REPLICA
            self.weights = tf.Variable(np.zeros(FEATURES, np.float32), aggregation=first)
            self.count = tf.Variable(0, aggregation=first)
        data = tf.data.Dataset.from_tensor_slices(rows).shuffle(8, seed=1).batch(batch)
        self.dataset = strategy.experimental_distribute_dataset(data)

    def step(self, rows):
        self.traces += 1
        x, y = rows[:, :-1], rows[:, -1]
        loss, change = jax.value_and_grad(lambda w: ((x @ w - y) ** 2).sum())(self.weights.value())
        change = tf.distribute.get_replica_context().all_reduce("SUM", change)
        self.weights.assign_sub(0.01 * change)
        self.count.assign_add(1)
        return loss

    def found(self):
        return self.weights.numpy().tolist(), int(self.count)


def one_by_one(strategy, steps, **given):
    """Return what single steps give: the losses, the variables, and the position."""
    training = Training(strategy, **given)
    iterator = iter(training.dataset)
    run = tf.function(lambda rows: strategy.run(training.step, args=(rows,)))
    losses = [run(next(iterator)) for _ in range(steps)]
    return [parts(strategy, x) for x in losses], training.found(), iterator.get_state()


def parts(strategy, value):
    return [np.asarray(part).tolist() for part in strategy.experimental_local_results(value)]


def test_steps_in_one_program_give_the_results_of_single_steps(strategy):
    training = Training(strategy)
    iterator = iter(training.dataset)
    results = [*strategy.run_steps(training.step, iterator, steps=4)]
    assert training.traces == 1
    results += strategy.run_steps(training.step, iterator, steps=5)
    losses, found, state = one_by_one(strategy, 9)
    assert [parts(strategy, x) for x in results] == losses
    assert (training.found(), iterator.get_state()) == (found, state)


def test_the_last_steps_are_run_however_many_are_left(strategy):
    training = Training(strategy)
    iterator = iter(training.dataset)
    lengths = []
    while results := strategy.run_steps(training.step, iterator, steps=8):
        lengths.append(len(results))
    assert lengths == [8, 3]
    assert training.found() == one_by_one(strategy, 11)[1]
    assert repr(results) == "<StepResults of 0 steps>"


def test_results_can_be_sliced_and_counted_from_the_end(strategy):
    training = Training(strategy)
    results = strategy.run_steps(training.step, iter(training.dataset), steps=11)
    losses = [parts(strategy, x) for x in results]
    assert [parts(strategy, x) for x in results[-2:]] == losses[-2:]
    assert parts(strategy, results[-1]) == losses[10]
    with pytest.raises(IndexError, match="There are 11 results, but number 11 was asked for"):
        results[11]


def test_a_step_that_was_prefetched_comes_first(strategy):
    training = Training(strategy)
    iterator = iter(training.dataset)
    run = tf.function(lambda rows: strategy.run(training.step, args=(rows,)))
    run(next(iterator))
    traces = training.traces
    strategy.run_steps(training.step, iterator, steps=5)
    assert training.traces <= traces + 2  # the loop, and a step by itself if one was read alone
    run(next(iterator))
    strategy.run_steps(training.step, iterator, steps=2)
    assert (training.found(), iterator.get_state()) == one_by_one(strategy, 9)[1:]


def test_a_state_between_programs_resumes_exactly(strategy):
    training = Training(strategy)
    iterator = iter(training.dataset)
    strategy.run_steps(training.step, iterator, steps=3)
    state = iterator.get_state()
    again = iter(training.dataset)
    again.set_state(state)
    strategy.run_steps(training.step, again, steps=4)
    assert (training.found(), again.get_state()) == one_by_one(strategy, 7)[1:]


@pytest.mark.parametrize(("steps", "error"), [(0, "at least 1"), ("x", "must be a whole number")])
def test_the_number_of_steps_is_checked(strategy, steps, error):
    with pytest.raises((ValueError, TypeError), match=error):
        strategy.run_steps(lambda x: x, iter(Training(strategy).dataset), steps=steps)


def test_a_dataset_is_not_an_iterator(strategy):
    with pytest.raises(
        TypeError, match=r"iterator must be .*fix: pass iter\(".replace(".*", r"[\s\S]*")
    ):
        strategy.run_steps(lambda x: x, Training(strategy).dataset, steps=2)


def loops(strategy, training):
    """Return functions with a loop over `tf.range`: each returns what it found."""

    @tf.function
    def plain(iterator, n):
        for _ in tf.range(n):
            loss = strategy.run(training.step, args=(next(iterator),))
        return loss

    @tf.function
    def reducing(iterator, n):
        total, steps = 0.0, 0
        for i in tf.range(n):
            losses = strategy.run(training.step, args=(next(iterator),))
            total += strategy.reduce("SUM", losses, axis=None)
            steps = i + 1
        return total, steps

    @tf.function
    def optional(iterator, n):
        for _ in tf.range(n):
            batch = iterator.get_next_as_optional()
            if not batch.has_value():
                break
            loss = strategy.run(training.step, args=(batch.get_value(),))
        return loss

    def helper(iterator):
        return strategy.run(training.step, args=(next(iterator),))

    @tf.function
    def helped(iterator, n):
        for _ in tf.range(n):
            loss = helper(iterator)
        return loss

    return {each.name: each for each in (plain, reducing, optional, helped)}


@pytest.mark.parametrize("name", ["plain", "reducing", "optional", "helped"])
def test_a_loop_over_a_range_is_one_program(strategy, name):
    training = Training(strategy)
    run = loops(strategy, training)[name]
    iterator = iter(training.dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(iterator, 5)
        # A carried Python number takes a second trace; with 64 bits, an int32 that becomes int64 a third.
        assert training.traces <= (3 if jax.config.read("jax_enable_x64") else 2)
        result = run(iterator, 5)
    losses, found, state = one_by_one(strategy, 10)
    assert (training.found(), iterator.get_state()) == (found, state)
    if name == "reducing":
        total, steps = result
        assert float(total) == pytest.approx(sum(sum(each) for each in losses[5:]), rel=1e-6)
        assert int(steps) == 5
    else:
        assert parts(strategy, result) == losses[9]
    again = iter(training.dataset)
    traces = training.traces
    run(again, 5)
    assert training.traces == traces  # another iterator needs no other program


def test_a_loop_meets_the_end_as_one_by_one(strategy):
    training = Training(strategy)
    found = loops(strategy, training)
    iterator = iter(training.dataset)
    found["optional"](iterator, 30)
    assert training.found() == one_by_one(strategy, 11)[1]
    with pytest.raises(tf.errors.OutOfRangeError, match="The data has ended") as error:
        found["plain"](iter(training.dataset), 30)
    assert error.value.__notes__ == ["in iteration 11 of 30 of the loop."]
    assert int(training.count) == 22


class Trainer:
    """Has its loop in a method, and keeps a counter in Python."""

    def __init__(self, strategy, training):
        self.strategy, self.training, self.steps = strategy, training, 0

    @tf.function
    def train(self, iterator, n):
        for _ in tf.range(n):
            self.strategy.run(self.training.step, args=(next(iterator),))

    @tf.function
    def counted(self, iterator, n):
        for _ in tf.range(n):
            self.strategy.run(self.training.step, args=(next(iterator),))
            self.steps += 1


@pytest.mark.parametrize("bind", [None, MethodType, partial])
def test_a_loop_in_a_method_is_one_program(strategy, bind):
    training = Training(strategy)
    trainer = Trainer(strategy, training)
    bound = (
        trainer.train if bind is None else tf.function(bind(Trainer.train.python_function, trainer))
    )
    bound(iter(training.dataset), 10)
    assert (training.traces, training.found()) == (1, one_by_one(strategy, 10)[1])


def test_a_loop_that_changes_python_objects_runs_step_by_step_and_says_so_once(strategy):
    training = Training(strategy)
    trainer = Trainer(strategy, training)
    iterator = iter(training.dataset)
    with pytest.warns(UserWarning, match="runs step by step: line [0-9]+ changes a Python object"):
        trainer.counted(iterator, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.counted(iterator, 4)
    assert trainer.steps == 7
    assert training.found() == one_by_one(strategy, 7)[1]


def test_python_code_that_looks_at_a_loss_runs_step_by_step(strategy):
    training = Training(strategy)
    seen = []

    @tf.function
    def appending(iterator):
        for _ in tf.range(4):
            loss = strategy.run(training.step, args=(next(iterator),))
            seen.append(loss)

    @tf.function
    def stopping(iterator):
        for _ in tf.range(4):
            loss = strategy.run(training.step, args=(next(iterator),))
            if strategy.reduce("SUM", loss, axis=None) > 0:
                break

    iterator = iter(training.dataset)
    with pytest.warns(UserWarning, match="it calls append, which Python must do"):
        appending(iterator)
    assert len(seen) == 4
    with pytest.warns(UserWarning, match="A loop in stopping runs step by step"):
        stopping(iterator)
    assert int(training.count) == 5


def test_constants_of_a_loop_are_not_stale(strategy):
    training = Training(strategy)

    @tf.function
    def scaled(iterator, factor):
        total = 0.0
        for _ in tf.range(3):
            losses = strategy.run(training.step, args=(next(iterator),))
            total += factor * strategy.reduce("SUM", losses, axis=None)
        return total

    found = [float(scaled(iter(training.dataset), 0.0)), float(scaled(iter(training.dataset), 2.0))]
    assert found[0] == 0.0
    assert found[1] > 0.0


def test_python_values_that_a_loop_reads_are_not_stale(strategy):
    training = Training(strategy)
    held = type("Held", (), {"factor": 0.0})()
    settings = {"more": 0.0}

    def helper(loss):
        return loss * held.factor

    @tf.function
    def scaled(iterator):
        total = 0.0
        for _ in tf.range(3):
            losses = strategy.run(training.step, args=(next(iterator),))
            total += helper(strategy.reduce("SUM", losses, axis=None)) + settings["more"]
        return total

    def found():
        return float(scaled(iter(training.dataset)))

    assert found() == 0.0
    held.factor = 2.0
    assert found() > 0.0
    held.factor, settings["more"] = 0.0, 1.5
    assert found() == 4.5


def test_a_dataset_that_reads_a_variable_is_read_one_by_one(strategy):
    offset = tf.Variable(np.int64(0))
    data = tf.data.Dataset.range(8).map(lambda x: x * 0 + offset.value()).batch(2)
    iterator = iter(strategy.experimental_distribute_dataset(data))
    options = iterator.peek_run(4)
    assert options is None


def test_metrics_and_prints_work_in_a_loop(strategy, capfd):
    with strategy.scope():
        total = tf.Variable(
            0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    @tf.function
    def train(iterator):
        for i in tf.range(3):
            strategy.run(lambda x: total.assign_add(tf.reduce_sum(x)), args=(next(iterator),))
            tf.print("step", i)

    data = tf.data.Dataset.range(12, output_type=tf.int32).batch(4)
    train(iter(strategy.experimental_distribute_dataset(data)))
    assert int(total.read_value()) == 66
    assert capfd.readouterr().err.split() == ["step", "0", "step", "1", "step", "2"]


@pytest.mark.parametrize("loop", [tf.range, range])
def test_each_replica_prints_a_text_without_tensors_at_each_step(strategy, loop, capfd):
    @tf.function
    def train(iterator):
        for _ in loop(3):
            strategy.run(lambda x: tf.print("shape", tf.shape(x)[1:]), args=(next(iterator),))

    data = tf.data.Dataset.from_tensor_slices(DATA).batch(4)
    train(iter(strategy.experimental_distribute_dataset(data)))
    jax.effects_barrier()
    prints = capfd.readouterr().err.splitlines()
    assert prints == [f"shape [{FEATURES + 1}]"] * 3 * strategy.num_replicas_in_sync


def test_steps_of_tensorflow_1_return_their_last_outputs(strategy):
    training = Training(strategy)
    iterator = iter(training.dataset)
    run = strategy.extended.experimental_run_steps_on_iterator

    def step(context, rows):
        losses = strategy.run(training.step, args=(rows,))
        context.set_last_step_output("loss", losses, tf.distribute.ReduceOp.SUM)
        context.set_last_step_output("each", losses)
        context.set_non_tensor_output("name", "sgd")

    done = run(step, iterator, iterations=6)
    losses, found, state = one_by_one(strategy, 6)
    assert (training.found(), iterator.get_state()) == (found, state)
    assert float(done.last_step_outputs["loss"]) == pytest.approx(sum(losses[5]), rel=1e-6)
    assert parts(strategy, done.last_step_outputs["each"]) == losses[5]
    assert (done.non_tensor_outputs, done.run_op) == ({"name": "sgd"}, None)
    with pytest.raises(tf.errors.OutOfRangeError, match="ended after 5 of 9 steps"):
        run(step, iterator, iterations=9)
    assert training.found() == one_by_one(strategy, 11)[1]


def test_a_replica_cannot_set_an_output_of_tensorflow_1(strategy):
    def step(context, x):
        strategy.run(lambda: context.set_last_step_output("x", x, "SUM"))

    iterator = iter(Training(strategy).dataset)
    with pytest.raises(ValueError, match="fix: return it from the function that is passed to run"):
        strategy.extended.experimental_run_steps_on_iterator(step, iterator, 3)
