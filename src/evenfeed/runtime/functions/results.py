"""Converts the results of user functions and generators to arrays, and checks them against their specs.

`converted` and `column_maker` follow TensorFlow's from_generator: everything that NumPy can cast is cast. Only an
integer that does not fit is an error here, while TensorFlow lets it wrap around. `Results` checks what a mapped
function returns for each element.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from operator import is_
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column, stacked
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import (
    NoneTensorSpec,
    Specified,
    TensorSpec,
    TypeSpec,
    type_spec_from_value,
)
from evenfeed.core.structure import DATA, assert_same, flatten
from evenfeed.plan.windows import ElementValue
from evenfeed.runtime.functions.calls import TraceArguments
from evenfeed.runtime.functions.reach.shared_findings import Finding
from evenfeed.runtime.functions.ready_parts import fits
from evenfeed.runtime.functions.ready_results import ReadyResults

# The column in a tuple (the column itself may be None), or None if the values must be converted one by one.
Made: TypeAlias = tuple[Column] | None
ColumnMaker: TypeAlias = Callable[[Sequence[Any]], Made]

# The structure of results that are compared part by part.
_NESTED: Final = object()

_TEXTS: Final[frozenset[type]] = frozenset({str, bytes})
# By the kind of a dtype: the Python numbers that NumPy converts to it without another dtype in between.
_PYTHON: Final[dict[str, type]] = {"i": int, "u": int, "f": float}


def converted(value: Any, spec: TypeSpec) -> Any:
    """Return one value as an array of `spec`, or a dataset or Optional unchanged; raise if it does not fit."""
    if not isinstance(spec, TensorSpec):
        if not _fits(value, spec):
            promised = "None" if isinstance(spec, NoneTensorSpec) else str(spec)
            raise InvalidArgumentError(f"expected {promised}, but got {shortened(value)}.")
        return value
    array = _array(value, spec.dtype)
    if not spec.shape.is_compatible_with(array.shape):
        raise InvalidArgumentError(f"expected shape {spec.shape}, but got shape {array.shape}.")
    return array


def column_maker(spec: TypeSpec) -> ColumnMaker:
    """Return a function that converts many values to one column, or returns None if that is not possible."""
    if isinstance(spec, NoneTensorSpec):
        return _all_none
    if not isinstance(spec, TensorSpec):
        return partial(_objects, spec=spec)
    if spec.shape.rank != 0:
        return partial(_arrays, spec=spec)
    if spec.dtype == dtypes.string:
        return _texts
    if spec.dtype.kind in "iuf":
        return partial(_fractions if spec.dtype.kind == "f" else _scalars, dtype=spec.dtype)
    return partial(_arrays, spec=spec)


def _array(value: Any, dtype: DType) -> Array:
    if dtype == dtypes.string:
        return to_array(value, dtype)
    if dtype.kind in "iu" and _are_plain(value):
        return np.array(value, dtype)  # NumPy rejects a Python int that does not fit
    return _cast(np.asarray(value), value, dtype)


def _cast(array: Array, value: Any, dtype: DType) -> Array:
    if array.dtype == dtype:
        return array
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        _check_fits(array, dtype)
    elif array.dtype.kind in "OSU":  # numeric text, None and huge ints: NumPy decides
        return np.asarray(value, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype)


def _check_fits(array: Array, dtype: DType) -> None:
    if array.size == 0 or np.can_cast(array.dtype, dtype):
        return
    limits = np.iinfo(dtype)
    for number in (int(array.min()), int(array.max())):
        if not limits.min <= number <= limits.max:
            raise InvalidArgumentError(
                f"{number} does not fit into {dtypes.name_of(dtype)}, "
                f"which holds {limits.min} to {limits.max}."
            )


def all_of(values: Sequence[Any], kind: type) -> bool:
    """Return True if all values are of exactly this type."""
    return list(map(type, values)).count(kind) == len(values)  # takes half the time of a set


def _all_none(values: Sequence[Any]) -> Made:
    return (None,) if all(value is None for value in values) else None


def _objects(values: Sequence[Any], spec: TypeSpec) -> Made:
    return (list(values),) if all(_fits(value, spec) for value in values) else None


def _fits(value: Any, spec: TypeSpec) -> bool:
    return (value is None or isinstance(value, Specified)) and spec.is_compatible_with(value)


def _scalars(values: Sequence[Any], dtype: DType) -> Made:
    """Return numbers as a column; NumPy rejects values that are not scalar or do not fit."""
    try:
        return (np.fromiter(values, dtype, len(values)),)
    except (TypeError, ValueError, OverflowError):
        return None


# Values that do not fit become infinite, as in TensorFlow.
_fractions: Final = np.errstate(over="ignore")(_scalars)


def _texts(values: Sequence[Any]) -> Made:
    found = set(map(type, values))
    if not found <= _TEXTS:
        return None
    column = np.empty(len(values), dtypes.string)
    if str in found:
        values = [value.encode() if type(value) is str else value for value in values]
    column[:] = values
    return (column,)


def _arrays(values: Sequence[Any], spec: TensorSpec) -> Made:
    """Return arrays, or lists of numbers, as a column; as a list of arrays if their shapes differ."""
    if spec.dtype == dtypes.string:
        return _each_converted(values, spec)
    if _are_ready(values, spec):
        return (stacked(values),)
    try:
        column = _vectors(values, spec) or _numbers(values, spec.dtype)
    except (TypeError, ValueError, OverflowError):
        column = None
    if isinstance(column, list):
        return (column,)
    if column is not None and spec.shape.is_compatible_with(column.shape[1:]):
        return (column,)
    return _each_converted(values, spec)


def _each_converted(values: Sequence[Any], spec: TensorSpec) -> Made:
    try:
        return (stacked([converted(value, spec) for value in values]),)
    except (TypeError, ValueError, OverflowError):
        return None


def _are_ready(values: Sequence[Any], spec: TensorSpec) -> bool:
    """Return True if all values are arrays of this spec."""
    if not all_of(values, np.ndarray) or {value.dtype for value in values} != {spec.dtype}:
        return False
    shape = _shape_of(spec)
    return all(fits(own, shape) for own in {value.shape for value in values})


def _vectors(values: Sequence[Any], spec: TensorSpec) -> list[Any] | None:
    """Return lists of numbers that differ in length as arrays; None if they are not, or not of one Python type."""
    kind = _PYTHON.get(spec.dtype.kind)
    if kind is None or spec.shape.rank != 1 or not _are_ragged(values):
        return None
    if not {kind}.issuperset(map(type, chain.from_iterable(values))):
        return None
    shape = _shape_of(spec)
    if not all(fits((length,), shape) for length in set(map(len, values))):
        return None
    with np.errstate(over="ignore"):  # as in TensorFlow, a fraction that does not fit is infinite
        return [np.array(value, spec.dtype) for value in values]


def _shape_of(spec: TensorSpec) -> tuple[int | None, ...] | None:
    return None if spec.shape.rank is None else tuple(spec.shape.as_list())


def _numbers(values: Sequence[Any], dtype: DType) -> Array | None:
    arrays = [value for value in values if type(value) is np.ndarray]
    if arrays and (len(arrays) < len(values) or len({array.dtype for array in arrays}) > 1):
        return None
    if len(set(map(np.shape, arrays))) > 1 or (not arrays and _are_ragged(values)):
        return None
    column = np.stack(arrays) if arrays else np.array(values)
    allowed = {"i": "iu", "u": "iu", "f": "iuf", "b": "b"}.get(dtype.kind, dtype.kind)
    # One row of another kind would change the dtype of all rows. Then each row is converted alone.
    return _cast(column, values, dtype) if column.dtype.kind in allowed else None


def _are_ragged(values: Sequence[Any]) -> bool:
    """Return True if lists differ in length. This is faster than letting NumPy find out."""
    return all_of(values, list) and len(set(map(len, values))) > 1


def _are_plain(value: Any) -> bool:
    return type(value) is list and value != [] and all_of(cast("list[Any]", value), int)


@final
class Results:
    """The spec of a function's results. The first result provides it if nothing else does.

    Attributes:
        spec: The output spec; None while it is unknown.
        casts: Whether results are cast to the spec, instead of compared with it.
        ready: Recognises results that need no conversion.
    """

    def __init__(self, asked: TraceArguments, finding: Finding) -> None:
        self.spec = finding.output_spec
        self.casts = finding.casts
        self._asked = asked
        self._name = finding.calling.name
        self._specs: list[TypeSpec] | None = None
        self._flat: Any = _NESTED
        self.ready = ReadyResults(None, casts=False)
        if self.spec is not None:
            self.learn(self.spec)
        # The dtypes and shapes of the last result, if it fitted.
        self._last_kinds: list[Any] | None = None

    def fitted(self, structure: Any, leaves: list[Any]) -> list[Any]:
        """Return the parts of a result as the spec requires."""
        specs = self._specs
        assert specs is not None
        if type(structure) is not type(self._flat) or structure != self._flat:
            assert_same(self.spec, structure, DATA, names=("spec", "result"))
        kinds = _kinds(leaves, self._any_lengths)
        if kinds != self._last_kinds:
            leaves = [self._fit(leaf, spec) for leaf, spec in zip(leaves, specs, strict=True)]
            self._last_kinds = kinds if kinds == _kinds(leaves, self._any_lengths) else None
        return leaves

    def learn(self, spec: Any) -> None:
        """Set the output spec."""
        self.spec, self._specs = spec, flatten(spec, DATA)
        self._any_lengths = [_has_any_lengths(part) for part in self._specs]
        self._flat = _flat_structure(spec, self._specs)
        self.ready = ReadyResults(spec, casts=self.casts)

    def _fit(self, leaf: Any, spec: TypeSpec) -> Any:
        if not isinstance(spec, TensorSpec) or leaf is None or isinstance(leaf, ElementValue):
            if not spec.is_compatible_with(leaf):
                raise self._mismatch(leaf, spec)
            return leaf
        if leaf.dtype != spec.dtype:
            text = dtypes.string in (leaf.dtype, spec.dtype)
            if text or not (self.casts or self._is_narrower_integer(leaf, spec)):
                raise self._mismatch(leaf, spec)
            leaf = leaf.astype(spec.dtype)
        if not spec.shape.is_compatible_with(leaf.shape):
            raise self._mismatch(leaf, spec)
        return leaf

    def _is_narrower_integer(self, leaf: Any, spec: TensorSpec) -> bool:
        is_integer = self._asked.returns is not None and leaf.dtype.kind in "iu"
        return is_integer and np.can_cast(leaf.dtype, spec.dtype)  # an integer with fewer bits

    def _mismatch(self, leaf: Any, spec: TypeSpec) -> InvalidArgumentError:
        spec_of_leaf = type_spec_from_value(leaf)
        got = str(spec_of_leaf)
        if isinstance(spec_of_leaf, TensorSpec):
            got = f"{dtypes.name_of(leaf.dtype)} of shape {leaf.shape}"
        return InvalidArgumentError(
            f"{self._name} returned {got} where {spec} was expected.",
            fix="return the same dtype and rank for all elements, or pass output_signature=.",
            origin=self._asked.origin,
        )


def _flat_structure(spec: Any, specs: list[TypeSpec]) -> Any:
    """Return the structure of results that need no closer look: of one part, or a tuple of such parts."""
    if specs and spec is specs[0]:
        return None
    parts = cast("tuple[Any, ...]", spec) if type(spec) is tuple else ()
    is_flat = len(parts) == len(specs) and all(map(is_, parts, specs))
    return tuple(range(len(specs))) if is_flat and parts else _NESTED


def _has_any_lengths(spec: TypeSpec) -> bool:
    """Return True if all tensors of one rank have a spec: no length of an axis is known."""
    return isinstance(spec, TensorSpec) and bool(spec.shape.rank) and set(spec.shape) == {None}


def _kinds(leaves: Sequence[Any], any_lengths: Sequence[bool]) -> list[Any]:
    """Return what decides whether results fit: their dtypes, and shapes or ranks."""
    return [
        (leaf.dtype, leaf.ndim if of_any else leaf.shape)
        if type(leaf) is np.ndarray
        else _kind_of_value(leaf)
        for leaf, of_any in zip(leaves, any_lengths, strict=True)
    ]


def _kind_of_value(leaf: Any) -> Any:
    return None if leaf is None else type_spec_from_value(leaf)
