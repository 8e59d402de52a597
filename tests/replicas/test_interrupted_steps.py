"""Ctrl-C in loops of many steps: variables and the iterator stand at the same step."""

import gc

import pytest
from tests.interrupting import interrupted

import evenfeed as tf
from evenfeed.feeding.ahead import shared_steps
from evenfeed.replicas.function import programs
from evenfeed.replicas.function.loops import step_loops
from evenfeed.replicas.run import loops_of_steps, many_steps

FILES = {each.__file__ for each in (shared_steps, programs, step_loops, many_steps, loops_of_steps)}
ROWS, BATCH = 24, 2
SAMPLE = 60


class Counting:
    """Steps that add up their rows, and the rows that an iterator gave."""

    def __init__(self):
        self.strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        with self.strategy.scope():
            adds = tf.VariableAggregation.SUM
            self.totals = [tf.Variable(0, aggregation=adds) for _ in range(3)]
        dataset = tf.data.Dataset.range(ROWS, output_type=tf.int32).batch(BATCH)
        self._dataset = self.strategy.experimental_distribute_dataset(dataset)
        self.loop = tf.function(self._loop)
        self.iterator = None
        self.restart()

    def restart(self):
        if self.iterator is not None:
            self.iterator.close()
        self.iterator = iter(self._dataset)
        for total in self.totals:
            total.assign(0)

    def step(self, x):
        for total in self.totals:
            total.assign_add(tf.reduce_sum(x))

    def _loop(self, iterator):
        for _ in tf.range(4):
            self.strategy.run(self.step, args=(next(iterator),))

    def one_by_one(self):
        for x in self.iterator:
            self.strategy.run(self.step, args=(x,))


@pytest.fixture(scope="module")
def counting():
    found = Counting()
    found.loop(found.iterator)
    found.strategy.run_steps(found.step, found.iterator, 4)
    gc.disable()  # Python prints and ignores Ctrl-C in a finalizer
    yield found
    gc.enable()
    found.iterator.close()


@pytest.mark.parametrize("way", ["loop", "run_steps"])
def test_ctrl_c_in_a_loop_of_steps_trains_on_each_row_once(counting, way):
    def run():
        if way == "loop":
            counting.loop(counting.iterator)
        else:
            counting.strategy.run_steps(counting.step, counting.iterator, 4)

    counting.restart()
    run()
    with interrupted(files=FILES) as counted:
        run()
    places = range(1, counted.count + 1, max(1, counted.count // SAMPLE))
    for at in places:
        counting.restart()
        run()
        try:
            with interrupted(at, FILES):
                run()
        except KeyboardInterrupt:
            pass
        seen = {int(total) for total in counting.totals}
        position = counting.iterator.get_state()["at"][0]["at"]
        assert seen == {sum(range(position * BATCH))}, f"at instruction {at} of {counted.count}"
        run()
        counting.one_by_one()
        assert {int(total) for total in counting.totals} == {sum(range(ROWS))}
