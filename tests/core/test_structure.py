import dataclasses
import os
from collections import OrderedDict, defaultdict, deque, namedtuple
from types import MappingProxyType
from typing import NamedTuple

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.saying import error_saying

from evenfeed.core.conversion import shortened
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.core.structure import (
    DATA,
    NEST,
    assert_same,
    flatten,
    is_branch,
    map_structure,
    opened,
    outline,
    pack,
    packer,
    paths,
)

Pair = namedtuple("Pair", "y x")


class Typed(NamedTuple):
    first: object
    second: object = None


@attrs.define
class Open:
    b: object
    a: object


@attrs.frozen(kw_only=True)
class Private:
    _hidden: object
    shown: object


@dataclasses.dataclass(frozen=True)
class Plain:
    b: object
    a: object
    made: int = dataclasses.field(default=7, init=False)


class Words(str):
    __slots__ = ()


leaves = st.none() | st.integers() | st.text() | st.builds(lambda: np.array([1, 2]))
keys = st.text(max_size=3)


def branches(inner):
    pairs = st.tuples(inner, inner)
    mappings = st.dictionaries(keys, inner, max_size=3)
    return st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3),
        mappings,
        mappings.map(OrderedDict),
        mappings.map(lambda d: defaultdict(list, d)),
        mappings.map(lambda d: defaultdict(None, d)),
        pairs.map(Pair._make),
        pairs.map(lambda pair: Typed(*pair)),
        pairs.map(lambda pair: Open(*pair)),
        pairs.map(lambda pair: Private(hidden=pair[0], shown=pair[1])),
        pairs.map(lambda pair: Plain(*pair)),
    )


structures = st.recursive(leaves, branches, max_leaves=12)
both_rules = pytest.mark.parametrize("rules", [NEST, DATA], ids=["nest", "data"])


def same(one, two):
    """Compare values, types and key order, and arrays by identity."""
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray):
        return one is two
    if isinstance(one, dict):
        factory = getattr(one, "default_factory", None) is getattr(two, "default_factory", None)
        return factory and list(one) == list(two) and all(same(one[k], two[k]) for k in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, (Open, Private, Plain)):
        names = [
            f.name
            for f in (attrs.fields if attrs.has(type(one)) else dataclasses.fields)(type(one))
        ]
        return all(same(getattr(one, name), getattr(two, name)) for name in names)
    return one == two


@both_rules
@given(structure=structures)
def test_flatten_and_pack_are_inverses(rules, structure):
    parts = flatten(structure, rules)
    assert same(pack(structure, parts, rules), structure)
    assert same(packer(structure, rules)(parts), structure)
    assert same(map_structure(lambda leaf: leaf, structure, rules=rules), structure)


@both_rules
@given(structure=structures)
def test_every_leaf_has_one_path_and_paths_are_different(rules, structure):
    found = paths(structure, rules)
    assert len(found) == len(flatten(structure, rules)) == len(set(found))


@both_rules
@given(structure=structures)
def test_leaves_that_are_packed_come_out_again(rules, structure):
    numbers = list(range(len(flatten(structure, rules))))
    assert flatten(pack(structure, numbers, rules), rules) == numbers
    assert_same(structure, pack(structure, numbers, rules), rules)


@both_rules
@given(structure=structures)
def test_a_structure_can_be_drawn(rules, structure):
    assert outline(structure, rules).count(".") >= len(flatten(structure, rules))


@pytest.mark.parametrize(
    ("structure", "expected"),
    [
        ({"b": 1, "a": (2, [3])}, ["['a'][0]", "['a'][1][0]", "['b']"]),
        (Pair(1, Open(2, 3)), [".y", ".x.b", ".x.a"]),
        (Private(hidden=1, shown=2), ["._hidden", ".shown"]),
        (5, [""]),
        ((), []),
    ],
)
def test_a_path_is_what_one_would_type(structure, expected):
    assert paths(structure, NEST) == expected


def test_a_list_and_a_dataclass_are_branches_in_one_rule_only():
    structure = ([1, 2], Plain(3, 4))
    assert flatten(structure, NEST) == [1, 2, Plain(3, 4)]
    assert flatten(structure, DATA) == [[1, 2], 3, 4]


@both_rules
@pytest.mark.parametrize(
    "leaf",
    [
        None,
        1,
        "text",
        b"bytes",
        Words("x"),
        bytearray(b"x"),
        {1, 2},
        np.arange(2),
        TensorSpec([1]),
        NoneTensorSpec(),
        iter([1]),
    ],
)
def test_values_without_parts_are_leaves(rules, leaf):
    assert opened(leaf, rules) is None
    assert not is_branch(leaf, rules)
    assert flatten(leaf, rules)[0] is leaf


def test_dicts_open_by_sorted_key_and_close_in_their_own_order():
    structure = {"b": 1, "a": 2, "c": 3}
    assert flatten(structure, DATA) == [2, 1, 3]
    assert list(pack(structure, "xyz", DATA).items()) == [("b", "y"), ("a", "x"), ("c", "z")]


@pytest.mark.parametrize(
    ("structure", "expected"),
    [
        (range(3), [0, 1, 2]),
        ({"b": 1, "a": 2}.values(), [1, 2]),
        ({"b": 1}.keys(), ["b"]),
        (deque([1, 2]), deque([1, 2])),
        (MappingProxyType({"a": 1}), MappingProxyType({"a": 1})),
    ],
)
def test_other_sequences_and_mappings_are_opened_too(structure, expected):
    assert map_structure(lambda leaf: leaf, structure, rules=NEST) == expected


def test_deep_nesting_is_no_trouble():
    deep = 0
    for _ in range(200):
        deep = (deep,)
    assert flatten(deep, DATA) == [0]
    assert pack(deep, [0], DATA) == deep
    assert paths(deep, DATA) == ["[0]" * 200]


def test_a_fresh_packer_serves_any_number_of_times():
    close = packer({"b": 0, "a": (0, None)}, DATA)
    assert [close([i, i, i]) for i in range(2)] == [{"b": i, "a": (i, i)} for i in range(2)]
    assert packer(0, DATA)([5]) == 5


def test_keys_that_cannot_be_sorted_are_an_error():
    what = "A dict in a structure needs keys that can be sorted, but has [1, 'a']."
    with error_saying(TypeError, what, fix="use keys of one type, such as strings."):
        flatten({1: 1, "a": 2}, DATA)
    assert is_branch({1: 1, "a": 2}, DATA)


def test_too_few_or_too_many_leaves_are_an_error():
    with error_saying(
        ValueError,
        "The structure {'b': ., 'a': (., .)} holds 3 values, but got 1.",
        fix="pass as many values as nest.flatten(structure) returns.",
    ):
        pack({"b": 0, "a": (0, 0)}, [1], DATA)


@pytest.mark.parametrize(
    ("structure", "drawn"),
    [
        (1, "."),
        ((1,), "(.,)"),
        ({"b": [1], "a": ()}, "{'b': [.], 'a': ()}"),
        (Pair(1, (2, 3)), "Pair(y=., x=(., .))"),
        (Private(hidden=1, shown=2), "Private(_hidden=., shown=.)"),
    ],
)
def test_an_outline_shows_containers_and_dots(structure, drawn):
    assert outline(structure, NEST) == drawn


def test_a_class_that_rejects_other_values_can_be_drawn():
    @attrs.define
    class Strict:
        count: int = attrs.field(validator=attrs.validators.instance_of(int))

    assert outline(Strict(1), NEST) == "Strict(count=.)"
    with pytest.raises(ValueError, match=r"first:  \(Strict\(count=\.\),\)"):
        assert_same((Strict(1),), (1,), NEST)


@pytest.mark.parametrize(
    ("one", "two", "kind", "why"),
    [
        ((1, 2), [1, 2], TypeError, ": tuple of 2 parts against list of 2 parts."),
        ((1, 2), (1,), ValueError, ": tuple of 2 parts against tuple of 1 part."),
        (
            {"a": (1, 2)},
            {"a": (1,)},
            ValueError,
            " at ['a']: tuple of 2 parts against tuple of 1 part.",
        ),
        (
            {"a": 1},
            {"b": 1},
            ValueError,
            ": only the first has ['a'] and only the second has ['b'].",
        ),
        ({"a": 1}, {"a": 1, "b": 2}, ValueError, ": only the second has ['b']."),
        ((1, (2,)), (1, 2), ValueError, " at [1]: tuple of 1 part against a single value (int)."),
        (None, (1,), ValueError, ": a single value (NoneType) against tuple of 1 part."),
        (Pair(1, 2), (1, 2), TypeError, ": Pair of 2 parts against tuple of 2 parts."),
        (Pair((1,), 2), Pair([1], 2), TypeError, " at .y: tuple of 1 part against list of 1 part."),
        (
            Pair(1, 2),
            namedtuple("Other", "y x")(1, 2),
            TypeError,
            ": Pair of 2 parts against Other of 2 parts.",
        ),
    ],
)
def test_a_difference_is_named_with_its_place(one, two, kind, why):
    with error_saying(
        kind,
        f"The structures of the first and the second differ{why}\n"
        f"  first:  {outline(one, NEST)}\n"
        f"  second: {outline(two, NEST)}",
        fix="give both the same nesting, keys and container types.",
    ):
        assert_same(one, two, NEST)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ((1, 2), (None, "x")),
        ({"a": 1, "b": 2}, OrderedDict(b=1, a=2)),
        ({"a": 1}, defaultdict(int, a=1)),
        (Pair(1, 2), namedtuple("Pair", "y x")(1, 2)),
    ],
)
def test_the_same_structures_do_not_differ(one, two):
    assert_same(one, two, NEST)


def test_types_and_keys_need_not_be_compared():
    assert_same([1, (2,)], (1, [2]), NEST, types=False)
    assert_same({"a": 1}, {"b": 1}, NEST, types=False)
    with pytest.raises(ValueError, match="differ: list of 1 part against tuple of 2 parts"):
        assert_same([1], (1, 2), NEST, types=False)


def test_the_error_uses_the_names_of_the_caller():
    with pytest.raises(
        ValueError, match=r"of the element and the spec differ.*\n  element: \.\n  spec:    \(\.,\)"
    ):
        assert_same(1, (1,), DATA, names=("element", "spec"))


def test_several_structures_are_mapped_side_by_side():
    assert map_structure(
        lambda *row: row, (1, {"a": 2}), (3, {"a": 4}), (5, {"a": 6}), rules=DATA
    ) == ((1, 3, 5), {"a": (2, 4, 6)})
    with pytest.raises(ValueError, match="differ"):
        map_structure(lambda *row: row, (1,), (1,), (1, 2), rules=DATA)


def test_an_error_of_the_function_passes_through():
    with pytest.raises(ZeroDivisionError):
        map_structure(lambda leaf: 1 // leaf, (0,), rules=DATA)


def test_attrs_fields_are_passed_by_their_alias_and_only_where_init_takes_them():
    @attrs.define
    class Renamed:
        x: int = attrs.field(alias="y")
        _hidden: int = 0
        total: int = attrs.field(init=False, default=9)

    value = Renamed(y=1, hidden=2)
    assert paths(value, DATA) == [".x", "._hidden"]
    assert map_structure(lambda x: x + 1, value, rules=DATA) == Renamed(y=2, hidden=3)


class Rows(list):
    pass


def test_lists_are_alike_whatever_their_class_and_tuples_are_not():
    assert_same([1], Rows([1]), NEST)
    assert_same(Rows([1]), [1], NEST)
    with pytest.raises(TypeError, match="list of 1 part against tuple of 1 part"):
        assert_same([1], (1,), NEST)


class Fixed(dict):
    def __init__(self):
        super().__init__()


class Scaled(dict):
    def __init__(self, scale):
        super().__init__(a=scale, b=scale)


class Preset(dict):
    def __init__(self):
        super().__init__(a=1, b=2)


def test_a_dict_of_a_user_class_is_created_empty_and_filled():
    value = Fixed()
    value["a"] = 1
    mapped = map_structure(lambda x: x + 1, value, rules=NEST)
    assert (type(mapped), mapped) == (Fixed, {"a": 2})


def test_a_dict_class_that_cannot_be_empty_is_an_error():
    shrunk = Preset()
    del shrunk["b"]
    for value, keys in ((Scaled(3), ["a", "b"]), (shrunk, ["a"]), (os.environ, list(os.environ))):
        name = type(value).__name__
        what = f"Cannot create a new {name} with the keys {shortened(keys)}: {name}() does not …"
        with error_saying(TypeError, what, fix="pass dict(value), or …"):
            map_structure(str, value, rules=NEST)


def test_lists_of_different_lengths_are_told_to_be_arrays():
    with pytest.raises(
        ValueError, match=r"tuple of 2 parts against tuple of 3 parts(.|\n)*numpy\.array"
    ):
        assert_same((1, 2), (1, 2, 3), DATA)
