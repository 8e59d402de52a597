"""Nested structures of tuples, lists, dicts, namedtuples and attrs classes: TensorFlow's `tf.nest`."""

from collections.abc import Callable, Sequence
from typing import Any

from evenfeed.core import structure as _structure
from evenfeed.core.errors import described
from evenfeed.core.publish import publish
from evenfeed.core.structure import EXPANDED, NEST, Rules

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def is_nested(structure: object) -> bool:
    """Return True if a value is a container: a list, tuple, dict, namedtuple or attrs object.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nest.is_nested([1]), tf.nest.is_nested("text"), tf.nest.is_nested(None)
        (True, False, False)
    """
    return _structure.is_branch(structure, NEST)


def flatten(structure: object, expand_composites: bool = False) -> list[Any]:
    """Return the leaves of a structure as a list. Dicts are ordered by sorted key.

    Args:
        structure: A nested structure, or a single leaf.
        expand_composites: Also flatten values that consist of several tensors: per-replica values and
            their specs, and sparse tensors.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nest.flatten({"b": 1, "a": (2, [3])})
        [2, 3, 1]
    """
    return _structure.flatten(structure, _rules(expand_composites))


def pack_sequence_as(
    structure: object, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """Pack the values of a flat list into the given structure.

    Args:
        structure: The structure of the result; its leaves are ignored.
        flat_sequence: A list or tuple of the leaves.
        expand_composites: As for `flatten`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nest.pack_sequence_as({"b": 0, "a": (0, 0)}, [1, 2, 3])
        {'b': 3, 'a': (1, 2)}
    """
    if not is_nested(flat_sequence) or not isinstance(flat_sequence, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            described(
                f"flat_sequence must be a list or a tuple, but got a {type(flat_sequence).__name__}.",
                fix="pass list(values).",
            )
        )
    return _structure.pack(structure, list(flat_sequence), _rules(expand_composites))


def map_structure(
    func: Callable[..., Any],
    *structure: Any,
    check_types: bool = True,
    expand_composites: bool = False,
) -> Any:
    """Apply a function to the corresponding leaves of one or more structures.

    Args:
        func: Receives one leaf of each structure.
        structure: Structures with the same nesting.
        check_types: Raise TypeError if container types differ.
        expand_composites: As for `flatten`.

    Returns:
        The results, in the structure of the first argument.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nest.map_structure(lambda x, y: x + y, (1, {"a": 2}), (10, {"a": 20}))
        (11, {'a': 22})
    """
    if not callable(func):
        raise TypeError(described(f"func must be callable, but got {func!r}."))
    if not structure:
        raise ValueError(described("map_structure needs at least one structure after func."))
    rules = _rules(expand_composites)
    return _structure.map_structure(func, *structure, rules=rules, types=check_types)


def assert_same_structure(
    nest1: object, nest2: object, check_types: bool = True, expand_composites: bool = False
) -> None:
    """Raise unless two structures have the same nesting. The error names the first difference.

    Args:
        nest1: A nested structure.
        nest2: Another one.
        check_types: Raise TypeError if container types differ.
        expand_composites: As for `flatten`.

    Raises:
        ValueError: The structures differ in nesting, length or keys.
        TypeError: The types of two containers differ.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nest.assert_same_structure({"a": (1, 2)}, {"a": (3, 4)})
        >>> tf.nest.assert_same_structure({"a": (1, 2)}, {"a": (3,)})  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: ... differ at ['a']: tuple of 2 parts against tuple of 1 part...
    """
    _structure.assert_same(nest1, nest2, _rules(expand_composites), types=check_types)


def _rules(expand_composites: bool) -> Rules:
    return EXPANDED if expand_composites else NEST


publish(__name__, __all__, globals())
