"""Nested structures (pytrees): flatten, pack, map, and report where two differ.

optree and jax.tree do not fit: both flatten every list (in tf.data a list is a tensor), treat attrs classes as leaves
until they are registered, and report a mismatch without its place. JAX must not be loaded for plain data, and `import
optree` alone takes about as long as all of evenfeed may (benchmarks/import_time.py).
"""

import dataclasses
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import (
    Callable,
    Mapping,
    MappingView,
    MutableMapping,
    Sequence,
)
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class Rules(NamedTuple):
    """What counts as a branch besides tuples, dicts, namedtuples and attrs classes."""

    lists: bool
    dataclasses: bool
    composites: bool = False


class Composite(ABC):
    """A value that consists of several tensors, such as one per replica."""

    __slots__ = ()

    @abstractmethod
    def _components(self) -> tuple[Any, ...]:
        """Return the tensors."""

    @abstractmethod
    def _with_components(self, components: Sequence[Any]) -> Any:
        """Return a value of the same type that consists of other tensors."""


NEST: Final = Rules(lists=True, dataclasses=False)  # tf.nest
EXPANDED: Final = NEST._replace(composites=True)  # tf.nest with expand_composites
_ALIKE: Final = "give both the same nesting, keys and container types."
_A_TENSOR: Final = "return an array for a tensor: numpy.array(values). A list is a structure of a fixed number of parts."
DATA: Final = Rules(lists=False, dataclasses=True)  # tf.data: a list becomes a tensor


@final
class Branch:
    """One level of a structure. The parts are in TensorFlow's order: dicts by sorted key."""

    __slots__ = ("labels", "named", "parts", "rebuild")

    def __init__(
        self,
        labels: tuple[str, ...],
        parts: tuple[Any, ...],
        rebuild: Callable[[Sequence[Any]], Any],
        *,
        named: bool = False,  # the parts are fields of a class
    ) -> None:
        self.labels = labels
        self.parts = parts
        self.rebuild = rebuild
        self.named = named


Opener: TypeAlias = Callable[[Any], Branch]


def opened(value: object, rules: Rules) -> Branch | None:
    """Return the top level of `value`; None if it is a leaf."""
    opener = _opener(type(value), rules)
    return None if opener is None else opener(value)


def is_branch(value: object, rules: Rules) -> bool:
    """Return True if `value` has parts, even if they cannot be sorted."""
    return _opener(type(value), rules) is not None


def flatten(value: object, rules: Rules) -> list[Any]:
    """Return the leaves of `value` in order."""
    branch = opened(value, rules)
    if branch is None:
        return [value]
    return [leaf for part in branch.parts for leaf in flatten(part, rules)]


def paths(value: object, rules: Rules) -> list[str]:
    """Return the path of each leaf in Python syntax: `['image'][0]`; '' for a lone leaf."""
    branch = opened(value, rules)
    if branch is None:
        return [""]
    parts = zip(branch.labels, branch.parts, strict=True)
    return [label + path for label, part in parts for path in paths(part, rules)]


def pack(structure: object, leaves: Sequence[Any], rules: Rules) -> Any:
    """Arrange `leaves` in the shape of `structure`."""
    expected = len(flatten(structure, rules))
    if expected != len(leaves):
        raise ValueError(
            described(
                f"The structure {outline(structure, rules)} holds {expected} values, "
                f"but got {len(leaves)}.",
                fix="pass as many values as nest.flatten(structure) returns.",
            )
        )
    return packer(structure, rules)(leaves)


def packer(structure: object, rules: Rules) -> Callable[[Sequence[Any]], Any]:
    """Return a function that packs leaves like `pack`, but inspects the structure only once."""
    branch = opened(structure, rules)
    if branch is None:
        return lambda leaves: leaves[0]
    if not any(is_branch(part, rules) for part in branch.parts):
        plain = cast("dict[Any, Any]", structure) if type(structure) is dict else None
        return branch.rebuild if plain is None else _dict_packer(plain)
    ends = list(accumulate(len(flatten(part, rules)) for part in branch.parts))
    slices = list(map(slice, [0, *ends], ends))
    parts = list(zip([packer(part, rules) for part in branch.parts], slices, strict=True))
    return lambda leaves: branch.rebuild([pack_part(leaves[own]) for pack_part, own in parts])


def _dict_packer(structure: dict[Any, Any]) -> Callable[[Sequence[Any]], Any]:
    keys = sorted(structure)
    places = [(key, keys.index(key)) for key in structure]
    return lambda leaves: {key: leaves[place] for key, place in places}


def map_structure(
    function: Callable[..., Any], first: Any, *others: Any, rules: Rules, types: bool = True
) -> Any:
    """Call `function` on the leaves at the same place in every structure."""
    for other in others:
        assert_same(first, other, rules, types=types)
    columns = [flatten(structure, rules) for structure in (first, *others)]
    return pack(first, [function(*row) for row in zip(*columns, strict=True)], rules)


def assert_same(
    first: Any,
    second: Any,
    rules: Rules,
    *,
    types: bool = True,
    names: tuple[str, str] = ("first", "second"),
) -> None:
    """Raise unless both have the same structure: ValueError if parts differ, TypeError if types differ.

    Args:
        first: A structure.
        second: The structure to compare with it.
        rules: What counts as a branch.
        types: Also compare the types of the branches, and the keys of dicts.
        names: What the error message calls the two.
    """
    found = _difference(first, second, rules, types=types, path="")
    if found is None:
        return
    path, kind, why = found
    place = f" at {path}" if path else ""
    width = max(map(len, names)) + 1
    raise kind(
        described(
            f"The structures of the {names[0]} and the {names[1]} differ{place}: {why}.\n"
            f"  {names[0] + ':':<{width}} {outline(first, rules)}\n"
            f"  {names[1] + ':':<{width}} {outline(second, rules)}",
            fix=_A_TENSOR if rules is DATA and why.count("tuple of") == 2 else _ALIKE,
        )
    )


def have_same_structure(first: Any, second: Any, rules: Rules) -> bool:
    """Return True if both have the same nesting, keys and container types."""
    return _difference(first, second, rules, types=True, path="") is None


def outline(value: object, rules: Rules) -> str:
    """Draw a structure with a dot for every leaf: `{'image': ., 'label': (., .)}`."""
    branch = opened(value, rules)
    if branch is None:
        return "."
    drawn = [_Drawn(outline(part, rules)) for part in branch.parts]
    if branch.named:  # not rebuilt: a class may reject text in its fields
        fields = (f"{label[1:]}={part}" for label, part in zip(branch.labels, drawn, strict=True))
        return f"{type(value).__name__}({', '.join(fields)})"
    return str(branch.rebuild(drawn))


class _Drawn(str):
    """Text that containers print without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


_Difference: TypeAlias = tuple[str, type[Exception], str]


def _difference(
    first: object, second: object, rules: Rules, *, types: bool, path: str
) -> _Difference | None:
    one, two = opened(first, rules), opened(second, rules)
    if one is None and two is None:
        return None
    kinds = f"{_kind(first, one)} against {_kind(second, two)}"
    if one is None or two is None:
        return path, ValueError, kinds
    if types and not _same_type(type(first), type(second)):
        composites = all(isinstance(value, Composite) for value in (first, second))
        return path, ValueError if composites else TypeError, kinds
    if types and one.labels != two.labels and issubclass(type(first), Mapping):
        return path, ValueError, _keys_that_differ(one, two)
    if len(one.parts) != len(two.parts):
        return path, ValueError, kinds
    inside = (
        _difference(a, b, rules, types=types, path=path + label)
        for label, a, b in zip(one.labels, one.parts, two.parts, strict=True)
    )
    return next((found for found in inside if found is not None), None)


def _same_type(first: type, second: type) -> bool:
    # TensorFlow treats namedtuples with the same name and fields as one type.
    fields = _fields_of_tuple(first)
    if fields is not None and fields == _fields_of_tuple(second):
        return first.__name__ == second.__name__
    kinds = (list, Mapping, *Composite.__subclasses__())
    return first is second or any(
        issubclass(first, kind) and issubclass(second, kind) for kind in kinds
    )


def _kind(value: object, branch: Branch | None) -> str:
    if branch is None:
        return f"a single value ({type(value).__name__})"
    count = len(branch.parts)
    return f"{type(value).__name__} of {count} part{'' if count == 1 else 's'}"


def _keys_that_differ(one: Branch, two: Branch) -> str:
    missing = [label for label in one.labels if label not in two.labels]
    extra = [label for label in two.labels if label not in one.labels]
    reasons = [
        f"only the {which} has {', '.join(keys)}"
        for which, keys in (("first", missing), ("second", extra))
        if keys
    ]
    return " and ".join(reasons)


@lru_cache(maxsize=4096)
def _opener(kind: type, rules: Rules) -> Opener | None:
    """Return the function that opens values of this type; None for a leaf type."""
    if rules.composites and issubclass(kind, Composite):
        return _open_composite
    if opens_itself(kind):
        return _open_by_protocol
    fields = _record_fields(kind, rules)
    if fields is not None:
        return partial(_open_record, fields=fields)
    if _fields_of_tuple(kind) is not None:
        return _open_namedtuple
    if issubclass(kind, tuple):
        return _open_sequence
    if issubclass(kind, Mapping):
        return _open_mapping
    if rules.lists and issubclass(kind, (Sequence, MappingView)):
        text = issubclass(kind, (str, bytes, bytearray, memoryview))
        return None if text else _open_sequence
    return None


def opens_itself(kind: type) -> bool:
    """Return True if a dataclass defines its parts by TensorFlow's protocol, `__tf_flatten__`."""
    methods = ("__tf_flatten__", "__tf_unflatten__")
    return dataclasses.is_dataclass(kind) and all(getattr(kind, name, None) for name in methods)


def _fields_of_tuple(kind: type) -> tuple[str, ...] | None:
    if not issubclass(kind, tuple):
        return None
    fields: tuple[str, ...] | None = getattr(cast("Any", kind), "_fields", None)
    return fields


def _record_fields(kind: type, rules: Rules) -> dict[str, str] | None:
    """Return the constructor fields of an attrs class or dataclass: field name to argument name."""
    attributes = getattr(kind, "__attrs_attrs__", None)
    if attributes is not None:
        return {attribute.name: attribute.alias for attribute in attributes if attribute.init}
    ours = kind.__module__.partition(".")[0] == "evenfeed"  # our specs and values are leaves
    if rules.dataclasses and dataclasses.is_dataclass(kind) and not ours:
        return {field.name: field.name for field in dataclasses.fields(kind) if field.init}
    return None


def _open_sequence(value: Sequence[Any]) -> Branch:
    # A range or a dict view cannot be rebuilt from other values.
    kind: Callable[[Any], Any] = list if isinstance(value, (range, MappingView)) else type(value)
    parts = tuple(value)
    return Branch(tuple(f"[{index}]" for index in range(len(parts))), parts, kind)


def _open_composite(value: Composite) -> Branch:
    parts = value._components()  # pyright: ignore[reportPrivateUsage] - for this module
    labels = tuple(f"[{index}]" for index in range(len(parts)))
    return Branch(labels, parts, value._with_components, named=True)  # pyright: ignore[reportPrivateUsage]


def _open_namedtuple(value: Any) -> Branch:
    kind = cast("Any", type(value))
    return Branch(tuple(f".{name}" for name in kind._fields), tuple(value), kind._make, named=True)


def _open_record(value: object, fields: dict[str, str]) -> Branch:
    kind = type(value)
    return Branch(
        tuple(f".{name}" for name in fields),
        tuple(getattr(value, name) for name in fields),
        lambda parts: kind(**dict(zip(fields.values(), parts, strict=True))),
        named=True,
    )


def _open_by_protocol(value: Any) -> Branch:
    metadata, parts = value.__tf_flatten__()
    unflatten = cast("Any", type(value)).__tf_unflatten__
    return Branch(
        tuple(f".{index}" for index in range(len(parts))),
        tuple(parts),
        lambda new: unflatten(metadata, tuple(new)),
        named=True,
    )


def _open_mapping(value: Mapping[Any, Any]) -> Branch:
    try:
        keys = sorted(value)
    except TypeError:
        raise TypeError(
            described(
                f"A dict in a structure needs keys that can be sorted, but has {list(value)!r}.",
                fix="use keys of one type, such as strings.",
            )
        ) from None
    return Branch(
        tuple(f"[{key!r}]" for key in keys),
        tuple(value[key] for key in keys),
        lambda parts: mapping_like(value, dict(zip(keys, parts, strict=True))),
    )


def mapping_like(value: Mapping[Any, Any], parts: dict[Any, Any]) -> Any:
    """Return a mapping of the same type, with keys in the order of `value`."""
    ordered = {key: parts[key] for key in value}
    if type(value) is dict:
        return ordered
    made = _filled_mapping(value, ordered)
    if len(made) != len(ordered):
        raise _cannot_be_rebuilt(value)
    return made


def _filled_mapping(value: Mapping[Any, Any], parts: dict[Any, Any]) -> Any:
    """Create an empty mapping and fill it, as TensorFlow does. An immutable mapping is built from a dict."""
    kind = cast("Any", type(value))
    fillable = isinstance(value, MutableMapping)
    first = (value.default_factory,) if isinstance(value, defaultdict) else ()
    try:
        made = kind(*first) if fillable else kind(parts)
    except TypeError as error:
        raise _cannot_be_rebuilt(value) from error
    for key in parts if fillable else ():
        made[key] = parts[key]
    return made


def _cannot_be_rebuilt(value: Mapping[Any, Any]) -> TypeError:
    name = type(value).__name__
    return TypeError(
        described(
            f"Cannot create a new {name} with the keys {shortened(list(value))}: "
            f"{name}() does not return an empty mapping to fill.",
            fix="pass dict(value), or define __init__ without required arguments.",
        )
    )
