"""Calls a user function on one element: packs its arguments, takes its result apart, explains its errors."""

import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.callsite import Origin, where_raised
from evenfeed.core.conversion import shortened, to_component
from evenfeed.core.errors import InvalidArgumentError, OutOfRangeError, described
from evenfeed.core.handles import Handle
from evenfeed.core.names.tensor_facts import explain_missing_member
from evenfeed.core.promised_shapes import Promise, promise_of, promises_kept
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, is_branch, pack, packer
from evenfeed.core.tensor_types import (
    HostTensor,
    HostText,
    TextTensor,
    asked_width,
)
from evenfeed.plan.windows import ElementValue
from evenfeed.runtime.functions.private_copies import unshared
from evenfeed.runtime.functions.reach.captured_tensors import with_tensors
from evenfeed.runtime.functions.ready_parts import NATIVE, PLAIN, SMALL
from evenfeed.runtime.functions.vectorise import on_host
from evenfeed.runtime.run import FirstElements
from evenfeed.tensors.creation import convert_to_tensor, holds_device_arrays


@final
@dataclass(frozen=True, slots=True)
class TraceArguments:
    """The arguments of `trace`, kept to trace the function again in another process."""

    function: Callable[..., Any]
    input_spec: Any
    origin: Origin | None
    vectorize: bool | None
    output_signature: Any
    num_parallel_calls: int | None
    returns: Any
    spread: bool
    returns_values: bool
    first_elements: FirstElements | None
    doing: str
    untraced: str | None
    may_draw: bool


_SCALARS: Final[frozenset[type]] = frozenset(dtype.type for dtype in NATIVE)
# Results of these types have no parts, and are never stand-ins.
_LONE: Final[frozenset[type]] = frozenset(
    {*PLAIN, *_SCALARS, np.ndarray, HostTensor, PromotingTensor}
)
# Longer text is not used as the name of an element.
_LONGEST_NAME: Final = 200


@final
class Calling:
    """A user function, and how an element becomes its arguments.

    Args:
        function: The user function.
        input_spec: The structure of an element.
        spread: Whether a tuple is passed as separate arguments.

    Attributes:
        specs: The specs of the parts of an element.
        is_single: Whether an element is its only part, and the only argument.
    """

    def __init__(self, function: Callable[..., Any], input_spec: Any, *, spread: bool) -> None:
        self.function = function
        self.name = name_of(function)
        self.specs: list[TypeSpec] = flatten(input_spec, DATA)
        self._pack = packer(input_spec, DATA)
        self._input_spec: Any = input_spec
        self._spread = spread and type(input_spec) is tuple
        self.is_single = len(self.specs) == 1 and input_spec is self.specs[0]

    def hint(self, error: Exception) -> str | None:
        """Return what to look at in the elements after an error; None if nothing about them explains it."""
        is_tuple = isinstance(self._input_spec, tuple)
        found = cast("tuple[Any, ...]", self._input_spec if is_tuple else (self._input_spec,))
        dicts = [cast("Mapping[Any, Any]", part) for part in found if isinstance(part, Mapping)]
        keys = [key for part in dicts for key in part]
        if isinstance(error, KeyError) and keys and error.args[:1] and error.args[0] not in keys:
            return f"The elements have the keys {', '.join(map(repr, keys))}."
        has_text = any(isinstance(s, TensorSpec) and s.dtype == dtypes.string for s in self.specs)
        wants_str = re.search("str|text", str(error), re.IGNORECASE)
        if has_text and isinstance(error, TypeError | ValueError) and wants_str:
            return "Text in a dataset is bytes, as in TensorFlow: text.decode() is a str."
        return None

    def plain(self, parts: Sequence[Any]) -> Any:
        """Call the function and return its result unchanged."""
        if self.is_single:
            return self.function(parts[0])
        element = self._pack(parts)
        return self.function(*element) if self._spread else self.function(element)

    def capturing(self, tensors: Sequence[Any]) -> "Calling":
        """Return the same call of the function with other values for the tensors that it captures."""
        made = copy(self)
        made.function = with_tensors(cast("FunctionType", self.function), tensors)
        return made

    def __call__(self, parts: list[Any]) -> tuple[Any, list[Any]]:
        """Return the structure of the result, and its parts: arrays, None or handles."""
        return self.taken_apart([self.plain(parts)])

    @staticmethod
    def taken_apart(held: list[Any]) -> tuple[Any, list[Any]]:
        """Return the structure of a result and its parts. It is taken out of `held`, so that nothing else refers to it."""
        structure, leaves = _flattened(held.pop())
        return structure, [_tensor(unshared(leaf)) for leaf in leaves]

    def promising(
        self, parts: list[Any], *, stand_ins: bool = False
    ) -> tuple[Any, list[Any], list[Promise]]:
        """Call the function; also return what it promises about the shapes of the parts.

        Args:
            parts: The parts of an element.
            stand_ins: Whether tensors in the function may be stand-ins for tensors of unknown shape.
        """
        pairs = zip(parts, self.specs, strict=True)
        known = [(part, spec.shape) for part, spec in pairs if isinstance(spec, TensorSpec)]
        with promises_kept(() if stand_ins else known, stand_ins=stand_ins):
            structure, leaves = _flattened(self.plain(parts))
            promises = [promise_of(leaf) for leaf in leaves]
        return structure, [_tensor(unshared(leaf)) for leaf in leaves], promises


def _flattened(value: Any) -> tuple[Any, list[Any]]:
    if type(value) in _LONE:
        return None, [value]
    kind: type[Any] = value.__class__
    if kind is tuple and _LONE.issuperset(map(type, value)):
        leaves = list(value)
        return tuple(range(len(leaves))), leaves
    if isinstance(value, (list, range)):
        value = tuple(cast("Sequence[Any]", value))
    if not is_branch(value, DATA):
        return None, [value]
    leaves = flatten(value, DATA)
    return pack(value, list(range(len(leaves))), DATA), leaves


def bound(call: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `call` with the user function bound as its first argument, under that function's name.

    The result is a partial, because a partial can be pickled and inspected for what the function uses.
    """
    made: Any = partial(call, function)
    made.__name__ = name_of(function)
    return made


def as_argument(part: Any) -> Any:
    """Return one part of an element as an untraced function gets it: a host tensor, or text as bytes."""
    if type(part) is not np.ndarray:
        return part
    if part.dtype != dtypes.string:
        return part.view(PromotingTensor)
    return part.view(TextTensor) if part.ndim else HostText(part.item())


def in_one_tensor(value: Any) -> Any:
    """Return a list that contains traced values as one tensor; any other value unchanged."""
    if type(value) is list and holds_device_arrays(cast("list[Any]", value)):
        return convert_to_tensor(cast("list[Any]", value))
    return cast("Any", value)


def argument_types(input_spec: Any, *, casts: bool) -> list[type[HostTensor] | None]:
    """Return the tensor class of each part that a function gets; None for parts that are not numeric.

    If results are cast to a known spec, NumPy may compute in its own dtypes, which is faster.
    """
    tensor = HostTensor if casts else PromotingTensor
    specs: list[TypeSpec] = flatten(input_spec, DATA)
    numbers = (isinstance(spec, TensorSpec) and spec.dtype != dtypes.string for spec in specs)
    return [tensor if is_number else None for is_number in numbers]


def on_the_host(part: Any) -> Any:
    """Return one part of a result as a NumPy array, with 64-bit JAX defaults narrowed to 32; datasets and Optionals unchanged."""
    if part is None or type(part) is np.ndarray or isinstance(part, ElementValue):
        return part
    array = np.asarray(part)
    if part.weak_type and array.dtype.itemsize == 8 and array.dtype.kind in "if":
        return array.astype(dtypes.int32 if array.dtype.kind == "i" else dtypes.float32)
    return array


def host_rules() -> AbstractContextManager[None]:
    """Enable 64-bit types on the host while a function runs untraced, if JAX is loaded at all."""
    return on_host() if "jax" in sys.modules else nullcontext()


def explained(  # noqa: PLR0913, PLR0917 - all that a note contains
    error: Exception,
    calling: Calling,
    doing: str,
    origin: Origin | None,
    number: int | None,
    parts: Sequence[Any] = (),
) -> Exception:
    """Return the user's exception with a note; InvalidArgumentError for an index error or the end of data."""
    which = "" if number is None else f" element {number}{_text_name(parts)}"
    note = f"while {doing}{which} with {calling.name}, asked for at {origin}"
    if isinstance(error, StopIteration | OutOfRangeError):
        error = instead_of_stop(error, calling.name, origin)
    elif isinstance(error, IndexError) and "out of bounds" in str(error):
        raised = InvalidArgumentError(
            f"An index is out of range: {error}",
            fix="check the length before you index.",
            origin=origin,
        )
        raised.__cause__ = error
        error = raised
    explain_missing_member(error)
    error.add_note(note)
    hint = calling.hint(error)
    if hint is not None:
        error.add_note(hint)
    return error


def instead_of_stop(
    stop: StopIteration | OutOfRangeError, name: str, origin: Origin | None
) -> InvalidArgumentError:
    """Return the error that replaces a StopIteration, which would silently end a loop over the data."""
    reader = "Python" if isinstance(stop, StopIteration) else "a loop over the data"
    error = InvalidArgumentError(
        f"{name} raised {type(stop).__name__}, which {reader} would treat as the end of the data.",
        fix="pass a default to next(), as in next(iterator, None); to end the data early, call take or "
        "take_while.",
        origin=where_raised(stop) or origin,
    )
    error.__cause__ = stop
    return error


@contextmanager
def never_stopping(name: str, origin: Origin | None) -> Generator[None]:
    """Replace a StopIteration that a user function raises in this context; let other exceptions pass."""
    try:
        yield
    except StopIteration as stop:
        raise instead_of_stop(stop, name, origin) from stop


def _text_name(parts: Sequence[Any]) -> str:
    """Return a short text in an element, such as a path, which helps more than a number."""
    for part in parts:
        if type(part) is np.ndarray and part.dtype == dtypes.string and part.ndim == 0:
            text = cast("bytes", part.item()).decode(errors="replace")
            if 0 < len(text) <= _LONGEST_NAME and text.isprintable() and "\ufffd" not in text:
                return f" ({text})"
    return ""


def name_of(function: Any) -> str:
    """Return the name of a function in user code."""
    if _is_nameless_partial(function):
        return name_of(function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def _is_nameless_partial(function: object) -> bool:
    return isinstance(function, partial) and "__name__" not in vars(function)


def _tensor(leaf: Any) -> Any:
    kind: type[Any] = leaf.__class__
    if kind in _LONE:
        if kind in PLAIN and -SMALL <= leaf < SMALL:
            return np.array(leaf, PLAIN[kind])
        if kind in _SCALARS:
            return np.asarray(leaf)
        if kind is PromotingTensor or kind is HostTensor:
            leaf = leaf.view(np.ndarray)
        if type(leaf) is np.ndarray and leaf.dtype in NATIVE:  # pyright: ignore[reportUnknownMemberType]
            return leaf  # pyright: ignore[reportUnknownVariableType]
    elif leaf is None or isinstance(leaf, Handle | ElementValue):
        return leaf
    if holds_device_arrays(leaf) and asked_width(leaf) is None:
        return convert_to_tensor(leaf)
    try:
        return to_component(leaf)
    except ValueError as error:
        if isinstance(leaf, (list, np.ndarray)):  # the error already says what is wrong inside
            raise TypeError(*error.args) from error
        raise TypeError(
            described(
                f"The function returned {shortened(leaf)} of type {type(leaf).__name__}, which cannot "
                "become a tensor.",
                fix="return numbers, text, arrays, None, or tuples and dicts of them.",
            )
        ) from error
