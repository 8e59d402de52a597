"""What tracing has shown of functions that always do the same, so that they are traced once."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, Final, cast, final
from weakref import WeakValueDictionary

from evenfeed.core.captures import constant_key
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.side_effects import Effects
from evenfeed.core.specs import TensorSpec
from evenfeed.runtime.functions.calls import Calling, TraceArguments
from evenfeed.runtime.functions.compiled import Compiled
from evenfeed.runtime.functions.kernels import Kernels
from evenfeed.runtime.functions.reach.captured_tensors import tensors_of
from evenfeed.runtime.functions.staging.computed_first import ComputedFirst
from evenfeed.runtime.functions.vectorise import trace_settings


@final
@dataclass(frozen=True, slots=True)
class Finding:
    """What is known about a function before it runs.

    Attributes:
        calling: The function, and how it is called.
        compiled: Its programs; None if it runs per element.
        kernels: The kernels that run before it on a Block, and the specs of the parts that it gets then.
        why: Why it runs that way.
        output_spec: The output spec; None if only a first element can show it.
        effects: The known side effects.
        casts: Whether results are cast to the spec, instead of compared with it.
    """

    calling: Calling
    compiled: Compiled | None
    kernels: Kernels
    why: str
    output_spec: Any
    effects: Effects = field(default_factory=Effects)
    casts: bool = False


# The programs in use of functions that always do the same, by their keys.
_shared: Final[WeakValueDictionary[Hashable, Compiled]] = WeakValueDictionary()

# Why others do not trace, by their keys: trying takes as long as calling them for hundreds of elements.
_untraceable: Final[OrderedDict[Hashable, str]] = OrderedDict()
_MOST_UNTRACEABLE: Final = 256

# The findings for functions whose captured tensors are arguments, by their keys; how many functions had the key so far,
# or None if their tensors cannot be arguments.
_open: Final[OrderedDict[Hashable, Finding | int | None]] = OrderedDict()
_MOST_OPEN: Final = 64
_open_lock: Final = RLock()
# Two functions alone do not pay for one more trace.
_WORTH_OPENING: Final = 3


def key_of_trace(
    asked: TraceArguments, key_of_function: Callable[[object], Hashable | None] = constant_key
) -> Hashable | None:
    """Return what a trace depends on; None if it may depend on more.

    Args:
        asked: The function, and how it is called.
        key_of_function: Returns what counts of the function; None if a trace of it may depend on more.
    """
    is_tuple = type(asked.input_spec) is tuple
    specs = cast("tuple[Any, ...]", asked.input_spec) if is_tuple else (asked.input_spec,)
    required = () if asked.returns is None else (asked.returns,)
    if not all(isinstance(spec, TensorSpec | RaggedTensorSpec) for spec in (*specs, *required)):
        return None
    if asked.output_signature is not None or asked.returns_values or asked.untraced is not None:
        return None
    function, settings = key_of_function(asked.function), trace_settings()
    if function is None or settings is None:
        return None
    options = asked.vectorize, asked.returns, asked.spread, asked.may_draw
    return function, specs, is_tuple, options, settings


def shared_finding(key: Hashable | None) -> Finding | None:
    """Return what is known about a function that a dataset uses; None if nothing is."""
    known = None if key is None else _shared.get(key)
    return None if known is None else replace(known.finding, compiled=known, effects=Effects())


def why_untraceable(key: Hashable | None) -> str | None:
    """Return why a function does not trace; None if that is not known."""
    return _untraceable.get(key)


def share(key: Hashable | None, found: Finding) -> None:
    """Remember what a trace has shown, unless it depends on more than the key."""
    kernels = found.kernels
    if key is None or found.effects or kernels.variables or kernels.tensors or kernels.operations:
        return
    if any(isinstance(call.kernel, ComputedFirst) for call in kernels.calls):
        return  # it belongs to one function
    if found.compiled is not None:
        found.compiled.finding = replace(found, compiled=None)
        _shared[key] = found.compiled
    elif not found.casts:  # otherwise the trace has shown its spec
        _untraceable[key] = found.why
        if len(_untraceable) > _MOST_UNTRACEABLE:
            _untraceable.popitem(last=False)


def open_finding(key: Hashable | None, asked: TraceArguments) -> Finding | None:
    """Return what is known about functions that differ only in the tensors which they capture; None if nothing is."""
    with _open_lock:
        known = None if key is None else _open.get(key)
        if not isinstance(known, Finding):
            return None
        _open.move_to_end(key)
    calling = Calling(asked.function, asked.input_spec, spread=asked.spread)
    kernels = replace(known.kernels, tensors=tensors_of(asked.function))
    return replace(known, calling=calling, kernels=kernels, effects=Effects())


def is_worth_opening(key: Hashable | None) -> bool:
    """Return True if so many functions had this key that their tensors should become arguments. Counts one more."""
    with _open_lock:
        known = None if key is None else _open.get(key, 0)
        if not isinstance(known, int):
            return False
        _keep(key, known + 1)
        return known + 1 >= _WORTH_OPENING


def share_open(key: Hashable | None, found: Finding | None, like: Finding) -> None:
    """Remember a finding for functions with open tensors, if it gives the same results as that for fixed ones."""
    is_same = (
        found is not None
        and found.output_spec == like.output_spec
        and all(map(_is_exact, (found, like)))
    )
    _keep(key, found if is_same else None)


def _is_exact(found: Finding) -> bool:
    """Return True if a function always gives the same bits, and never fails."""
    compiled, kernels = found.compiled, found.kernels
    if compiled is None or found.effects or kernels.calls or kernels.variables:
        return False
    return compiled.is_exact and not compiled.may_fail


def _keep(key: Hashable | None, value: Finding | int | None) -> None:
    with _open_lock:
        _open[key] = value
        _open.move_to_end(key)
        if len(_open) > _MOST_OPEN:
            _open.popitem(last=False)
