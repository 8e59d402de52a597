import re
from operator import attrgetter

import pytest

import evenfeed as tf
from evenfeed.core.names.use_instead import USE_INSTEAD
from evenfeed.core.publish import publish, refusal

NAMESPACES = [tf, tf.data, tf.distribute, tf.errors, tf.experimental, tf.nest, tf.random, tf.config]


def made_in(module):
    return type("Thing", (), {"__module__": module})


@pytest.mark.parametrize(
    "inner", ["evenfeed.core.specs", "evenfeed.plan.options", "evenfeed.a.b.c"]
)
def test_an_object_of_an_internal_file_reports_its_public_module(inner):
    thing = made_in(inner)
    publish("evenfeed.data", ["Thing"], {"Thing": thing})
    assert thing.__module__ == "evenfeed.data"


@pytest.mark.parametrize("home", ["evenfeed.data", "evenfeed", "numpy", "jax.numpy"])
def test_what_is_public_already_or_not_ours_keeps_its_module(home):
    thing = made_in(home)
    publish("evenfeed.other", ["Thing"], {"Thing": thing})
    assert thing.__module__ == home


def test_names_that_are_not_callable_are_left_alone():
    publish("evenfeed.data", ["COUNT"], {"COUNT": 3})


def test_only_the_names_given_are_published():
    thing = made_in("evenfeed.core.specs")
    publish("evenfeed.data", [], {"Thing": thing})
    assert thing.__module__ == "evenfeed.core.specs"


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda module: module.__name__)
def test_every_public_class_and_function_can_be_found_where_it_says_it_is(namespace):
    for name in namespace.__all__:
        home = getattr(getattr(namespace, name), "__module__", None)
        if home is not None and home.startswith("evenfeed"):
            assert home.count(".") < 2
            assert home != "evenfeed.plan.options"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Datasets", "Did you mean evenfeed.data.Dataset? "), ("xyz", "")],
)
def test_a_missing_name_says_what_to_use(name, hint):
    missing = refusal("evenfeed.data", ["Dataset"], "Write jax.numpy.")
    with pytest.raises(AttributeError) as caught:
        missing(name)
    assert str(caught.value) == f"evenfeed.data has no {name!r}. {hint}Write jax.numpy."
    assert caught.value.name == name


def test_a_missing_function_of_the_package_points_to_jax():
    with pytest.raises(
        AttributeError, match=r"evenfeed has no 'reduce_summ'\. Did you mean evenfeed\.reduce_sum"
    ):
        _ = tf.reduce_summ
    assert not hasattr(tf, "raw_ops")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("compat.v1.keras", "Use evenfeed.keras"),
        ("gradients", "evenfeed.GradientTape()"),
        ("saved_model", "model.save(path)"),
        ("distribute.CentralStorageStrategy", "MirroredStrategy"),
        ("compat.v1.Session", "evenfeed.function"),
        ("train.Saver", "train.Checkpoint"),
    ],
)
def test_a_known_name_gets_its_advice_and_no_suggestion(name, said):
    with pytest.raises(AttributeError, match=re.escape(said)) as caught:
        attrgetter(name)(tf)
    assert "Did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", USE_INSTEAD)
def test_every_name_that_is_left_out_is_missing_and_says_what_to_write(name):
    with pytest.raises(AttributeError, match=re.escape(USE_INSTEAD[name])):
        attrgetter(name)(tf)


def test_an_unrelated_name_is_not_suggested():
    with pytest.raises(AttributeError) as caught:
        tf.kerases  # noqa: B018
    assert "Did you mean" not in str(caught.value)
