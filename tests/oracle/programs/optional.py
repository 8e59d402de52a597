"""Optional and OptionalSpec."""


def from_value(tf, ask):
    values = {
        "number": 3,
        "list": [1, 2],
        "tuple": (1, [2.5]),
        "dict": {"b": "x", "a": 1},
        "text": "a",
        "None": None,
        "None in a tuple": (1, None),
        "empty list": [],
        "empty tuple": (),
        "ragged list": [[1], [2, 3]],
        "object": object(),
    }
    return {
        f"{label} {fact}": answer
        for label, value in values.items()
        for fact, answer in _facts(tf, ask, value).items()
    }


def _facts(tf, ask, value):
    make = tf.experimental.Optional.from_value
    return {
        "has_value": ask(lambda: bool(make(value).has_value())),
        "get_value": ask(lambda: make(value).get_value()),
        "element_spec": ask(lambda: make(value).element_spec),
    }


def numpy(tf, ask):
    make = tf.experimental.Optional
    values = {"number": 3, "list": [1, 2], "text": "a", "texts": ["a"]}
    return {
        **{
            label: ask(lambda v=v: make.from_value(v).get_value().numpy())
            for label, v in values.items()
        },
        "has_value": ask(lambda: make.from_value(3).has_value().numpy()),
        "has no value": ask(lambda: make.empty(tf.TensorSpec([])).has_value().numpy()),
        "of an iterator": ask(
            lambda: iter(tf.data.Dataset.range(1)).get_next_as_optional().has_value().numpy()
        ),
    }


def empty(tf, ask):
    make = tf.experimental.Optional.empty
    return {
        "has_value": ask(lambda: bool(make(tf.TensorSpec([2])).has_value())),
        "get_value": ask(lambda: make(tf.TensorSpec([2])).get_value()),
        "element_spec": ask(lambda: make(tf.TensorSpec([2])).element_spec),
        "element_spec of a tuple": ask(
            lambda: make((tf.TensorSpec([]), {"a": tf.TensorSpec([None])})).element_spec
        ),
    }


def spec(tf, ask):
    make, tensor = tf.OptionalSpec, tf.TensorSpec
    here = tf.experimental.Optional.from_value([1, 2])
    return {
        "repr": ask(lambda: repr(make(tensor([2], tf.int32)))),
        "of a value": ask(lambda: tf.type_spec_from_value(here)),
        "repr of a tuple": ask(lambda: repr(make((tensor([2]), tensor([]))))),
        "equal": make(tensor([2])) == make(tensor([2])),
        "other shape": make(tensor([2])) == make(tensor([3])),
        "equal hashes": hash(make(tensor([2]))) == hash(make(tensor([2]))),
        "compatible with a wider one": make(tensor([2])).is_compatible_with(make(tensor([None]))),
        "compatible with another rank": make(tensor([2])).is_compatible_with(make(tensor([]))),
        "compatible with a TensorSpec": make(tensor([2])).is_compatible_with(tensor([2])),
        "compatible with its value": ask(
            lambda: make(tensor([2], tf.int32)).is_compatible_with(here)
        ),
        "subtype of a wider one": make(tensor([2])).is_subtype_of(make(tensor([None]))),
        "subtype of a narrower one": make(tensor([None])).is_subtype_of(make(tensor([2]))),
        "common supertype": ask(
            lambda: make(tensor([2])).most_specific_common_supertype([make(tensor([3]))])
        ),
        "no common supertype": ask(
            lambda: make(tensor([2])).most_specific_common_supertype([make(tensor([2], tf.int32))])
        ),
        "most specific type": ask(
            lambda: make(tensor([2])).most_specific_compatible_type(make(tensor([3])))
        ),
    }


def of_an_iterator(tf, ask):
    iterator = iter(tf.data.Dataset.range(2))
    first, second, third, fourth = (iterator.get_next_as_optional() for _ in range(4))
    return {
        "has_value": [bool(one.has_value()) for one in (first, second, third, fourth)],
        "first": ask(first.get_value),
        "second": ask(second.get_value),
        "third": ask(third.get_value),
        "spec of the third": third.element_spec,
        "get_next after the end": ask(iterator.get_next),
    }


def of_an_iterator_over_batches(tf, ask):
    iterator = iter(tf.data.Dataset.range(5).batch(2))
    specs = [iterator.get_next_as_optional().element_spec for _ in range(4)]
    return {f"spec {index}": spec for index, spec in enumerate(specs)}
