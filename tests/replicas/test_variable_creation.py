"""Creating variables: with user creators, and inside run."""

import contextlib

import pytest

import evenfeed as tf


@pytest.fixture
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_a_creator_sees_every_argument_by_name_and_its_default():
    seen = []

    def creator(next_creator, **kwargs):
        seen.append(kwargs)
        return next_creator(**kwargs)

    with tf.variable_creator_scope(creator):
        tf.Variable(1.0, False, name="w")
    assert seen[0]["initial_value"] == 1.0
    assert (seen[0]["trainable"], seen[0]["name"], seen[0]["dtype"]) == (False, "w", None)
    assert seen[0]["aggregation"] is tf.VariableAggregation.NONE


def test_an_unknown_argument_is_pythons_error():
    with pytest.raises(TypeError, match="colour"):
        tf.Variable(1.0, colour="red")


def test_a_sharding_which_tensorflow_lacks_is_given_by_name_only():
    lifting = True  # TensorFlow's argument after the shape
    arguments = (1.0, None, True, None, None, None, None, None, None, None, None, [])
    assert tf.Variable(*arguments).shape == []
    with pytest.raises(TypeError, match="too many positional arguments"):
        tf.Variable(*arguments, lifting)


def test_creators_end_with_their_block_also_after_an_error():
    def creator(next_creator, **kwargs):
        raise KeyError

    with pytest.raises(KeyError), tf.variable_creator_scope(creator):
        tf.Variable(1.0)
    assert tf.Variable(1.0).numpy() == 1.0


def test_creators_work_in_a_scope_and_in_run(strategy):
    """The innermost creator is called first, and all creators are called before the strategy."""
    asked = []

    def creator(name):
        def create(next_creator, **kwargs):
            asked.append(name)
            variable = next_creator(**{**kwargs, "trainable": False})
            asked.append(type(variable).__name__)
            return variable

        return create

    with (
        tf.variable_creator_scope(creator("outer")),
        strategy.scope(),
        tf.variable_creator_scope(creator("inner")),
    ):
        v = tf.Variable(1.0)
    assert asked == ["inner", "outer", "MirroredVariable", "MirroredVariable"]
    assert not v.trainable
    assert strategy.extended.variable_created_in_scope(v)
    assert len(strategy.experimental_local_results(v)) == 2


def test_the_synchronization_may_stand_by_place(strategy):
    on_read = tf.VariableSynchronization.ON_READ
    with strategy.scope():
        v = tf.Variable(1.0, None, True, None, None, None, None, None, None, on_read)
    assert repr(v).startswith("SyncOnReadVariable:")


def test_replicas_create_one_variable_together(strategy):
    made = []

    def fn():
        context = tf.distribute.get_replica_context()
        v = tf.Variable(5.0 + context.replica_id_in_sync_group, name="w")
        made.append(v)
        return v + context.replica_id_in_sync_group

    out = strategy.run(fn)
    assert [float(x) for x in strategy.experimental_local_results(out)] == [5.0, 6.0]
    assert made[0] is made[1]
    assert [float(x) for x in strategy.experimental_local_results(made[0])] == [5.0, 5.0]
    assert strategy.extended.variable_created_in_scope(made[0])


def test_an_error_in_the_first_value_reaches_the_caller(strategy):
    def fn():
        return tf.Variable(lambda: 1 // 0) + 1

    with pytest.raises(ZeroDivisionError):
        strategy.run(fn)
    assert strategy.run(lambda: 1) == 1


@pytest.mark.parametrize(
    ("made", "takes_none"),
    [
        (contextlib.nullcontext, True),
        (lambda: tf.distribute.OneDeviceStrategy("CPU:0").scope(), True),
        (lambda: tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope(), False),
    ],
    ids=["outside", "one device", "mirrored"],
)
def test_none_stands_for_the_defaults_of_aggregation_and_synchronization(made, takes_none):
    with made():
        assert tf.Variable(1.0, aggregation=None).aggregation is tf.VariableAggregation.NONE
        if takes_none:
            v = tf.Variable(1.0, aggregation=None, synchronization=None)
            assert v.synchronization is tf.VariableSynchronization.AUTO
        else:
            with pytest.raises(ValueError, match="synchronization must not be None"):
                tf.Variable(1.0, synchronization=None)
