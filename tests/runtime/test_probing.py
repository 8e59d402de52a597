"""Variables and iterators in user functions: probing leaves them unchanged, and when they are read."""

import functools
import os
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.sendable import counted, counts_two, reads

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.side_effects import Effect
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime import live_state
from evenfeed.runtime.elements import ElementIterator


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def effects_of(dataset):
    return list(plan_of(dataset).function.effects)


def test_an_assignment_is_not_made_before_an_element_is_read():
    v = tf.Variable(0)
    dataset = Dataset.range(5).map(lambda _: v.assign_add(1))
    assert dataset.element_spec == tf.TensorSpec([], tf.int32)
    assert int(v.numpy()) == 0
    assert numbers(dataset) == [1, 2, 3, 4, 5]


def test_a_function_sees_what_it_has_assigned_itself():
    v = tf.Variable(1)

    def doubled(x):
        v.assign(v * 2)
        return tf.cast(x, tf.int32) + v

    assert numbers(Dataset.range(3).map(doubled)) == [2, 5, 10]


def test_an_error_behind_an_assignment_is_the_users_and_nothing_is_assigned_for_it():
    v = tf.Variable(0)

    def wrong(x):
        v.assign_add(1)
        return x + jnp.zeros(3)[jnp.zeros(2)]

    with pytest.raises(TypeError):
        Dataset.range(3).map(wrong)
    assert int(v.numpy()) == 0


def test_an_assignment_inside_a_transformation_of_jaxs_names_the_variable():
    v = tf.Variable(0.0)

    def inside(x):
        return jax.lax.cond(x > 1, lambda: v.assign_add(1.0).value(), lambda: 0.0)

    with pytest.raises(ValueError, match="'Variable:0' is assigned inside"):
        numbers(Dataset.range(3).map(inside))


def test_elements_are_not_read_before_they_are_asked_for():
    v = tf.Variable(0)
    seen = [
        int(v.numpy()) for _ in Dataset.range(40).map(lambda x: (v.assign_add(1), x)[1]).batch(4)
    ]
    assert seen == list(range(4, 41, 4))


def test_a_variable_made_in_the_function_is_nobody_elses():
    def made(x):
        own = tf.Variable(3)
        own.assign_add(1)
        return tf.cast(x, tf.int32) + own

    dataset = Dataset.range(3).map(made)
    assert numbers(dataset) == [4, 5, 6]
    assert effects_of(dataset) == []


@pytest.mark.parametrize("read", [lambda v: v, lambda v: v.numpy(), int])
def test_text_and_values_find_what_a_variable_holds(read):
    v, found = tf.Variable(1), []
    dataset = Dataset.from_tensor_slices(["a", "bb", "ccc"]).map(lambda t: len(t) * read(v))
    for x in dataset:
        found.append(int(x))
        v.assign_add(1)
    assert found == [1, 4, 9]


def test_a_function_that_reads_variables_runs_on_whole_blocks():
    v = tf.Variable(2.0)
    dataset = Dataset.range(9).map(lambda x: jnp.sin(x * 1.0) * v)
    assert plan_of(dataset).function.way == "vectorised"
    assert effects_of(dataset) == [Effect.READS]
    assert "reads the variable 'Variable'" in str(dataset.explain())


def test_a_variable_whose_shape_changes_is_compiled_again():
    v = tf.Variable([1.0, 2.0], shape=[None])
    dataset = Dataset.range(3).map(lambda x: x * 1.0 + jnp.sum(jnp.exp(v.value())) * 0)
    assert numbers(dataset) == [0, 1, 2]
    v.assign([1.0, 2.0, 3.0])
    assert numbers(dataset) == [0, 1, 2]


def test_an_index_that_a_variable_holds_is_checked():
    table, place = tf.Variable(np.arange(3.0)), tf.Variable(1)
    dataset = Dataset.range(2).map(lambda x: x + table.value()[place.value()])
    assert numbers(dataset) == [1, 2]
    place.assign(7)
    with pytest.raises(InvalidArgumentError, match="An index is out of range"):
        numbers(dataset)


@pytest.mark.parametrize("places", [["CPU:0"], ["CPU:0", "CPU:1"]])
def test_variables_of_a_strategy_are_read_and_assigned(places):
    strategy = tf.distribute.MirroredStrategy(places)
    with strategy.scope():
        v = tf.Variable(0)
        total = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )  # fmt: skip

    @tf.function
    def plus(x):
        return tf.cast(x, tf.int32) + v

    for read in (lambda x: tf.cast(x, tf.int32) + v, plus, lambda x: plus(x) + v.values[0] * 0):
        v.assign(0)
        found = []
        for x in Dataset.range(4).map(read):
            found.append(int(x))
            v.assign_add(10)
        assert found == [0, 11, 22, 33]
    v.assign(0)
    counted = Dataset.range(3).map(lambda _: (v.assign_add(1), v.read_value())[1])
    assert numbers(counted) == [1, 2, 3]
    assert [int(copy) for copy in v.values] == [3] * len(places)
    assert numbers(Dataset.range(2).map(lambda x: tf.cast(x, tf.float32) + total)) == [0, 1]


def test_a_concrete_function_is_only_looked_at():
    v = tf.Variable(0)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def count(x):
        return v.assign_add(1) + x

    concrete = count.get_concrete_function()
    dataset = Dataset.range(4, output_type=tf.int32).map(lambda x: concrete(x))  # noqa: PLW0108 - as users write it
    assert int(v.numpy()) == 0
    assert numbers(dataset) == [1, 3, 5, 7]


def test_an_iterator_of_a_distributed_dataset_is_pulled_once_for_each_element():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = iter(strategy.experimental_distribute_dataset(Dataset.range(16).batch(2)))
    first = Dataset.range(3).map(lambda _: strategy.experimental_local_results(next(steps))[0])
    assert numbers(first) == [[0], [2], [4]]
    assert [int(part[0]) for part in strategy.experimental_local_results(next(steps))] == [6, 7]


def test_an_iterator_that_the_function_makes_is_no_state():
    dataset = Dataset.range(3).map(lambda x: next(iter(Dataset.range(9).skip(x))))
    assert numbers(dataset) == [0, 1, 2]
    assert effects_of(dataset) == []


def test_a_loop_over_an_iterator_ends():
    source = iter(Dataset.range(200))
    dataset = Dataset.range(2).map(lambda _: sum(int(x) for x in source))
    assert numbers(dataset) == [19900, 0]


def test_an_iterator_of_numpy_values_survives_a_look():
    texts = Dataset.from_tensor_slices(["a", "b"]).as_numpy_iterator()
    assert numbers(Dataset.range(2).map(lambda _: next(texts))) == [b"a", b"b"]


def test_threads_keep_the_order_of_what_is_assigned_unless_it_does_not_matter():
    v = tf.Variable(0)
    in_order = Dataset.range(200).map(lambda _: v.assign_add(1), num_parallel_calls=4)
    assert numbers(in_order) == list(range(1, 201))
    any_order = Dataset.range(200).map(
        lambda x: (v.assign_add(1), x)[1], num_parallel_calls=4, deterministic=False
    )
    assert sorted(numbers(any_order)) == list(range(200))
    assert int(v.numpy()) == 400


def test_threads_that_add_to_a_variable_lose_nothing():
    v = tf.Variable(0)
    threads = [
        threading.Thread(target=lambda: [v.assign_add(1) for _ in range(100)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert int(v.numpy()) == 400


@pytest.mark.skipif(os.name != "posix", reason="processes=True needs Linux")
@pytest.mark.parametrize("function", [counted, reads])
def test_what_processes_would_not_share_is_refused(function):
    function = functools.partial(function, tf.Variable(0))
    with pytest.raises(
        InvalidArgumentError, match="runs in processes, which have their own copies"
    ):
        Dataset.range(3).map(function, processes=True)


@pytest.mark.skipif(os.name != "posix", reason="processes=True needs Linux")
def test_what_shows_only_in_a_process_is_refused_there():
    signature = tf.TensorSpec([], tf.int64)
    function = functools.partial(counts_two, tf.Variable(0))
    dataset = Dataset.range(3).map(function, 1, processes=True, output_signature=signature)
    iterator = iter(dataset)
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    with pytest.raises(InvalidArgumentError, match="counts_two assigns the variable 'Variable'"):
        next(iterator)


def test_a_print_of_each_element_comes_once(capfd):
    assert numbers(Dataset.range(3).map(lambda x: (tf.print("saw", x), x)[1])) == [0, 1, 2]
    jax.effects_barrier()
    assert sorted(capfd.readouterr().err.split("\n")) == ["", "saw 0", "saw 1", "saw 2"]


def test_a_compiled_function_is_counted_as_traced_once():
    double = tf.function(lambda x: x * 2)
    assert numbers(Dataset.range(3).map(double)) == [0, 2, 4]
    assert double.experimental_get_tracing_count() == 1


def test_a_generator_that_uses_variables_is_pulled_one_by_one():
    v = tf.Variable(0)

    def generate():
        for _ in range(6):
            yield int(v.numpy())

    dataset = Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))
    found = []
    for x in dataset:
        found.append(int(x))
        v.assign_add(1)
    assert found == [0, 1, 2, 3, 4, 5]


def test_a_generator_over_a_dataset_of_its_own_is_read_ahead():
    def generate():
        yield from Dataset.range(40)

    dataset = Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))
    iterator = ElementIterator(plan_of(dataset))
    assert numbers(iterator) == list(range(40))
    assert not live_state.effects_of(plan_of(dataset))


def test_files_that_elements_name_are_not_looked_for_by_a_stand_in(tmp_path):
    for name, lines in (("a", "1\n2\n"), ("b", "3\n")):
        (tmp_path / name).write_text(lines)
    names = Dataset.from_tensor_slices([str(tmp_path / name) for name in "ab"])
    lines = names.flat_map(lambda f: tf.data.TextLineDataset(f).map(lambda t: np.int64(int(t))))
    assert lines.element_spec == tf.TensorSpec([], tf.int64)
    assert numbers(lines) == [1, 2, 3]


@pytest.mark.parametrize(
    "named",
    [
        lambda n: f"{n}.png",
        lambda n: str(n) + ".png",
        lambda n: "{}{}".format(n, ".png"),
        lambda n: "%s.png" % n,  # noqa: UP031
        lambda n: f"{n:d}.png",
    ],
)
def test_text_that_is_made_of_an_element_has_its_value(named):
    dataset = Dataset.range(3).map(named)
    assert list(dataset.as_numpy_iterator()) == [b"0.png", b"1.png", b"2.png"]


def test_a_function_that_makes_text_of_an_element_is_not_traced_and_explain_says_why():
    kept = Dataset.range(3).filter(lambda n: str(n) != "1")
    assert "per element: it turns an element into text" in str(kept.explain())
    assert numbers(kept) == [0, 2]


def test_errors_of_jax_show_the_tracer_and_give_their_own_reason():
    branches = Dataset.range(3).map(lambda n: n if n > 1 else 0)
    assert "it needs the values of its arguments" in str(branches.explain())
