"""What was asked of a user's function: how to call it, and what is known of its arguments and results."""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.callsite import Origin, where_raised
from evenfeed.core.conversion import shortened, to_component
from evenfeed.core.errors import InvalidArgumentError, OutOfRangeError, described
from evenfeed.core.handles import Handle
from evenfeed.core.promised_shapes import Promise, promise_of, promises_kept
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, is_branch, pack, packer
from evenfeed.core.tensor_types import (
    HostTensor,
    HostText,
    TextTensor,
    asked_width,
    explain_tracing,
)
from evenfeed.plan.windows import ElementValue
from evenfeed.runtime.functions.vectorise import on_host
from evenfeed.runtime.run import FirstElements
from evenfeed.tensors.creation import convert_to_tensor, holds_device_arrays


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What `trace` was asked, to ask it again in another process."""

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


# Arrays of these are tensors as they are.
_NATIVE: Final = frozenset(map(np.dtype, "?bBhHiIlLefd"))
# A text that is longer is no name.
_LONGEST_NAME: Final = 200


@final
class Calling:
    """A function, and how an element becomes its arguments.

    Args:
        function: The user's.
        input_spec: The structure of an element.
        spread: Whether a tuple arrives as separate arguments.

    Attributes:
        specs: Those of the parts of an element.
    """

    def __init__(self, function: Callable[..., Any], input_spec: Any, *, spread: bool) -> None:
        self.function = function
        self.name = name_of(function)
        self.specs: list[TypeSpec] = flatten(input_spec, DATA)
        self._pack = packer(input_spec, DATA)
        self._spread = spread and type(input_spec) is tuple

    def plain(self, parts: Sequence[Any]) -> Any:
        """Return what the function returns, as it is."""
        element = self._pack(parts)
        return self.function(*element) if self._spread else self.function(element)

    def __call__(self, parts: list[Any]) -> tuple[Any, list[Any]]:
        """Return the structure of the result, and its parts: arrays, None, or handles as they are."""
        structure, leaves = _taken_apart(self.plain(parts))
        return structure, [_tensor(leaf) for leaf in leaves]

    def promising(
        self, parts: list[Any], *, stand_ins: bool = False
    ) -> tuple[Any, list[Any], list[Promise]]:
        """Return the same, and what the function promises of the shapes of the parts.

        Args:
            parts: The parts of an element.
            stand_ins: Whether tensors in the function may stand for others, whose shapes nobody knows.
        """
        with promises_kept(stand_ins=stand_ins):
            structure, leaves = _taken_apart(self.plain(parts))
            promises = [promise_of(leaf) for leaf in leaves]
        return structure, [_tensor(leaf) for leaf in leaves], promises


def _taken_apart(value: Any) -> tuple[Any, list[Any]]:
    if isinstance(value, (list, range)):
        value = tuple(cast("Sequence[Any]", value))
    if not is_branch(value, DATA):
        return None, [value]
    leaves = flatten(value, DATA)
    return pack(value, list(range(len(leaves))), DATA), leaves


def bound(call: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `call` with the user's function first, under that one's name.

    A partial, because it can be pickled, and looked into for what the function reaches.
    """
    made: Any = partial(call, function)
    made.__name__ = name_of(function)
    return made


def as_argument(part: Any) -> Any:
    """Return one part of an element as an untraced function gets it: a tensor on the host, text as bytes."""
    if type(part) is not np.ndarray:
        return part
    if part.dtype != dtypes.string:
        return part.view(PromotingTensor)
    return part.view(TextTensor) if part.ndim else HostText(part.item())


def argument_types(input_spec: Any, *, casts: bool) -> list[type[HostTensor] | None]:
    """Return the classes of the numbers that a function gets; None for parts that are no numbers.

    Where results are converted to a spec that is known, NumPy may compute in its own dtypes: that is faster.
    """
    tensor = HostTensor if casts else PromotingTensor
    specs: list[TypeSpec] = flatten(input_spec, DATA)
    numbers = (isinstance(spec, TensorSpec) and spec.dtype != dtypes.string for spec in specs)
    return [tensor if is_number else None for is_number in numbers]


def on_the_host(part: Any) -> Any:
    """Return one part of a result as a NumPy array, or a dataset or Optional as it is; 64 bits that JAX took by default become 32."""
    if part is None or type(part) is np.ndarray or isinstance(part, ElementValue):
        return part
    array = np.asarray(part)
    if part.weak_type and array.dtype.itemsize == 8 and array.dtype.kind in "if":
        return array.astype(dtypes.int32 if array.dtype.kind == "i" else dtypes.float32)
    return array


def host_rules() -> AbstractContextManager[None]:
    """Let JAX keep 64 bits in a function that runs on its own, if JAX is loaded at all."""
    return on_host() if "jax" in sys.modules else nullcontext()


def explained(  # noqa: PLR0913, PLR0917 - all that is said
    error: Exception,
    calling: Calling,
    doing: str,
    origin: Origin | None,
    number: int | None,
    parts: Sequence[Any] = (),
) -> Exception:
    """Return the user's exception with a note; TensorFlow's for an index out of range or the end of data."""
    which = "" if number is None else f" element {number}{_name(parts)}"
    note = f"while {doing}{which} with {calling.name}, asked for at {origin}"
    if isinstance(error, StopIteration | OutOfRangeError):
        error = instead_of_stop(error, calling.name, origin)
    elif isinstance(error, IndexError) and "out of bounds" in str(error):
        raised = InvalidArgumentError(
            f"An index is out of range: {error}",
            fix="check lengths before indexing.",
            origin=origin,
        )
        raised.__cause__ = error
        error = raised
    explain_tracing(error)
    error.add_note(note)
    return error


def instead_of_stop(
    stop: StopIteration | OutOfRangeError, name: str, origin: Origin | None
) -> InvalidArgumentError:
    """Return the error to raise in place of a StopIteration, which would end the loop over the data silently."""
    said = "Python takes" if isinstance(stop, StopIteration) else "a loop would take"
    error = InvalidArgumentError(
        f"{name} raised {type(stop).__name__}, which {said} for the end of the data.",
        fix="give next() a default, as in next(iterator, None); to end the data, call take or take_while.",
        origin=where_raised(stop) or origin,
    )
    error.__cause__ = stop
    return error


@contextmanager
def never_stopping(name: str, origin: Origin | None) -> Generator[None]:
    """Replace a StopIteration out of a user's function that is called here; other exceptions pass."""
    try:
        yield
    except StopIteration as stop:
        raise instead_of_stop(stop, name, origin) from stop


def _name(parts: Sequence[Any]) -> str:
    """Return a short text that is a part of an element, such as a path: it says more than a number."""
    for part in parts:
        if type(part) is np.ndarray and part.dtype == dtypes.string and part.ndim == 0:
            text = cast("bytes", part.item()).decode(errors="replace")
            if 0 < len(text) <= _LONGEST_NAME and text.isprintable() and "\ufffd" not in text:
                return f" ({text})"
    return ""


def name_of(function: Any) -> str:
    """Return what the user calls a function."""
    if _is_nameless_partial(function):
        return name_of(function.func)
    return getattr(function, "__name__", None) or type(function).__name__


def _is_nameless_partial(function: object) -> bool:
    return isinstance(function, partial) and "__name__" not in vars(function)


def _tensor(leaf: Any) -> Any:
    if leaf is None or isinstance(leaf, Handle | ElementValue):
        return leaf
    kind: type[Any] = leaf.__class__
    if kind is PromotingTensor or kind is HostTensor:
        leaf = leaf.view(np.ndarray)
    if type(leaf) is np.ndarray and leaf.dtype in _NATIVE:  # pyright: ignore[reportUnknownMemberType]
        return leaf  # pyright: ignore[reportUnknownVariableType]
    if holds_device_arrays(leaf) and asked_width(leaf) is None:
        return convert_to_tensor(leaf)
    try:
        return to_component(leaf)
    except ValueError as error:
        if isinstance(leaf, (list, np.ndarray)):  # which say what is wrong inside of them
            raise TypeError(*error.args) from error
        raise TypeError(
            described(
                f"The function returned {shortened(leaf)} of type {type(leaf).__name__}, which cannot "
                "become a tensor.",
                fix="return numbers, text, arrays, None, or tuples and dicts of them.",
            )
        ) from error
