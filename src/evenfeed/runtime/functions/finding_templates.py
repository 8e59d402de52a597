"""Finds the plan with holes that describes all datasets that a function makes.

The function is called with placeholders for the parts of an element. If it only passes them to the methods that create
datasets, the datasets of many elements can be read at once, without calling it again. If it computes with them, it is traced.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import partial
from types import CodeType, FunctionType, MethodType
from typing import Any, Final, cast

import numpy as np

from evenfeed.core.captures import bound_values, named_by, names_used
from evenfeed.core.randomness.seeds import AnySeed
from evenfeed.core.side_effects import Effects, ProbeAbandoned
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.batching import PaddedBatch, Unbatch
from evenfeed.plan.buffering import Cache, Prefetch
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, Filter, Map, TakeWhile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, shared_below
from evenfeed.plan.options import WithOptions
from evenfeed.plan.ordering import OpenCount, Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.plan.templates import (
    Counting,
    RowsOf,
    RowsOfFile,
    Template,
    Whole,
    file_hole,
    holes_of,
    is_endless,
    is_made_by,
)
from evenfeed.plan.windows import DatasetSpec, Held, Window
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.probing import looked_at
from evenfeed.runtime.functions.reach.purity import uses_generator
from evenfeed.runtime.functions.reach.python_state import ReachableState
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.functions.staging.computed_parts import TracedPlans

# How many datasets a function makes before a template is looked for, which takes as long as making some more.
TRIED_AFTER: Final = 2

# The same for a function that must be traced, and if JAX must be loaded for that.
COMPUTED_AFTER: Final = 16
LOADED_AFTER: Final = 512

# Their functions do not hide that a value is missing.
_LIBRARIES: Final = frozenset({"builtins", "evenfeed", "jax", "jaxlib", "numpy"})

# How deep to follow what they refer to.
_DEPTH: Final = 6

# Their objects that can be called run compiled code.
_COMPILING: Final = frozenset({"evenfeed", "jax", "jaxlib"})

# What a template may consist of: nodes that are read without side effects, and whose elements follow from those below.
_SOURCES: Final = (Held, Range, Tensor, TensorSlice)
_STEPS: Final = (
    *(Batch, Concatenate, Enumerate, Filter, FlatMap, Interleave, Map, Prefetch, Repeat, Shard, Skip, Take, TakeWhile),
    *(PaddedBatch, Shuffle, Unbatch, Window, WithOptions, Zip),
)  # fmt: skip
_PASSING_WINDOWS: Final = (Held, Prefetch, Shard, Skip, Take, Window, WithOptions, Zip)


def template_of(datasets: InnerDatasets) -> Template | None:
    """Return what the datasets that a function makes have in common, once it has made some; None if it is unknown."""
    record, kept = datasets.function.record, datasets.kept
    if record.opened == TRIED_AFTER:
        kept.template = _passing(datasets)
    elif record.opened == (COMPUTED_AFTER if "jax" in sys.modules else LOADED_AFTER):
        kept.template = _computing(datasets)
    record.opened += kept.template is None and record.opened <= LOADED_AFTER
    return kept.template


def _found(datasets: InnerDatasets) -> Template | None:
    return _passing(datasets) or _computing(datasets)


def _passing(datasets: InnerDatasets) -> Template | None:
    if not datasets.function.is_pure:
        return None
    return template_by_placeholder(datasets.function.asked[0], datasets.of_placeholders)


def template_by_placeholder(function: Any, make: Callable[[object], Node]) -> Template | None:
    """Make two plans with placeholders. They must be the same, and the calls must leave no trace.

    Args:
        function: What makes datasets.
        make: Calls it with placeholders, given what identifies them.
    """
    maker = object()
    if not _may_be_tried(function):
        return None
    effects, changed = Effects(), list[bool]()
    try:
        with looked_at(function, effects):
            states = _states_behind(function)
            try:
                plans = [make(maker) for _ in range(2)]
            finally:
                changed += [state.restore() for state in states]
    except (Exception, ProbeAbandoned):  # noqa: BLE001 - it needs values
        return None
    return None if any(changed) or effects or not _is_usable(plans, maker) else Template(plans[0])


def _computing(datasets: InnerDatasets) -> Template | None:
    """Trace the function, with what it passes to datasets as its results."""
    function, maker = datasets.function.asked[0], object()
    if not datasets.function.is_pure or not _may_be_tried(function) or _may_catch(function):
        return None
    states = _states_behind(function)
    try:
        traced = TracedPlans(datasets, maker)
        compute = traced.compute(rounds=not _calls_compiled(function))
    except (Exception, ProbeAbandoned):  # noqa: BLE001 - it needs values
        return None
    finally:
        changed = [state.restore() for state in states]
    if any(changed) or compute is None or not _is_usable(traced.plans, maker):
        return None
    return Template(traced.plans[0], compute)


def _states_behind(function: object) -> list[ReachableState]:
    """Return the states of what a function uses, and of what the functions use that it calls."""
    called = (each for each in _reached(function, _DEPTH, {}) if isinstance(each, FunctionType))
    return [ReachableState(each) for each in (function, *called)]


def _may_be_tried(function: object) -> bool:
    return not uses_generator(function) and not _prints(function)


def _is_usable(plans: Sequence[Node], maker: object) -> bool:
    """Return True if datasets can be read by the first of two plans, which must be the same."""
    if len(plans) != 2:
        return False
    plan, again = plans
    if not all(map(_specs_are_known, plan.walk())) or _holds_datasets(plan) or _reads_several(plan):
        return False
    if not all(is_made_by(node, maker) and _is_supported(node) for node in plan.walk()):
        return False
    if not _starts_anew(plan, again):
        return False
    return _same_steps(plan, again) and plan.element_spec == again.element_spec


def _starts_anew(plan: Node, again: Node) -> bool:
    """Return True if all shuffles and caches of a plan are in their first pass whenever the function is called.

    The function must create them, with seeds, and no step may read them more than once.
    """
    nodes = list(plan.walk())
    repeated = [below for node in nodes if isinstance(node, Repeat) for below in node.child.walk()]
    read_again = {id(node) for node in (*repeated, *shared_below(nodes))}
    return all(
        node is not other
        and id(node) not in read_again
        and not (isinstance(node, Shuffle) and isinstance(node.seed, AnySeed))
        for node, other in zip(nodes, again.walk(), strict=False)
        if isinstance(node, Shuffle | Cache)
    )


def _specs_are_known(node: Node) -> bool:
    """Return True if the spec of a node is known without an element: holes have none to read."""
    found = (value for value in vars(node).values() if isinstance(value, RowFunction))
    return all(function.is_spec_known for function in found)


def _prints(function: object) -> bool:
    """Return True if a function, or one that it refers to, prints: that must happen for each element."""
    called = (each for each in (function, *named_by(function, 2)) if isinstance(each, FunctionType))
    return any("print" in names_used(each.__code__) for each in called)


def _may_catch(function: object) -> bool:
    """Return True if a function, or what it refers to, may catch the error for a value that a trace does not have.

    It would go on without the value, and make other datasets than it does for elements.
    """
    codes = (code for each in _reached(function, _DEPTH, {}) for code in _codes_of(each))
    return any(map(_handles_errors, codes))


def _calls_compiled(function: object) -> bool:
    """Return True if a function may call compiled code, as of a `tf.function`, which rounds floats otherwise than NumPy."""
    callables = (each for each in _reached(function, _DEPTH, {}) if callable(each))
    return any(
        _module_of(type(cast("object", each))) in _COMPILING
        for each in callables
        if not isinstance(each, type)
    )


def _reached(value: Any, depth: int, seen: dict[int, int]) -> Iterator[Any]:
    """Yield a callable, and what it refers to. What a library refers to is not of the user.

    Args:
        value: The callable.
        depth: How deep to follow it.
        seen: How deep values were followed already, by their identity.
    """
    if depth <= seen.get(id(value), 0):
        return
    seen[id(value)] = depth
    yield value
    for each in _held_by(value) if _belongs_to_library(value) else named_by(value):
        yield from _reached(each, depth - 1, seen)


def _belongs_to_library(value: Any) -> bool:
    of = value if isinstance(value, FunctionType | type) else cast("type[Any]", type(value))
    return _is_of_library(of.__module__) and not isinstance(value, MethodType | partial)


def _held_by(value: Any) -> Iterator[Any]:
    """Yield the functions that a callable of a library holds, as a `tf.function` does, and the object that it is bound to."""
    if isinstance(value, FunctionType):
        yield from bound_values(value)
    elif callable(value) and not isinstance(value, type):
        slots = getattr(cast("type[Any]", type(value)), "__slots__", ())
        names = {"__self__", *slots, *getattr(value, "__dict__", ())}
        held = [(name, getattr(value, name, None)) for name in names]
        yield from (each for name, each in held if name == "__self__" or callable(each))


def _codes_of(value: Any) -> Iterator[CodeType]:
    """Yield the code of a function; for an object or a class of the user, that of all its methods."""
    if isinstance(value, partial):
        value = cast("partial[Any]", value).func
    if isinstance(value, MethodType):
        yield from _codes_of(value.__self__)
        value = value.__func__
    if isinstance(value, FunctionType):
        if not _is_of_library(value.__module__):
            yield value.__code__
        return
    kind: type[Any] = value if isinstance(value, type) else type(value)
    for base in kind.__mro__:
        if not _is_of_library(base.__module__):
            yield from (
                part.__code__ for part in vars(base).values() if isinstance(part, FunctionType)
            )


def _is_of_library(module: str | None) -> bool:
    return module is not None and module.partition(".")[0] in _LIBRARIES


def _module_of(kind: type) -> str:
    return kind.__module__.partition(".")[0]


def _handles_errors(code: CodeType) -> bool:
    inner = (part for part in code.co_consts if isinstance(part, CodeType))
    return bool(code.co_exceptiontable) or any(map(_handles_errors, inner))


def _same_steps(one: Node, two: Node) -> bool:
    return list(_steps(one)) == list(_steps(two))


def _steps(plan: Node) -> Iterator[Any]:
    """Yield what can be compared of each node: its class, its values and what its function uses."""
    for node in plan.walk():
        values = [getattr(node, field.name) for field in fields(node) if field.compare]
        for value in list(values):
            asked = value.function if isinstance(value, InnerDatasets) else value
            if isinstance(asked, RowFunction):
                values += named_by(asked.calling.function, 1)
        yield type(node), len(node.children), list(map(_comparable, values))


def _comparable(value: Any) -> Any:
    """Return a value that can be compared; None for an object that cannot."""
    if isinstance(value, RowsOf | Whole):
        return type(value), _comparable(value.source)
    if isinstance(value, OpenCount):
        return "part", value.source
    if type(value) is np.ndarray:
        return value.dtype, value.shape, value.tolist()
    if isinstance(value, list | tuple):
        return [_comparable(part) for part in cast("Sequence[Any]", value)]
    return value if isinstance(value, int | float | str | bytes | Counting | RowsOfFile) else None


def _reads_several(plan: Node) -> bool:
    """Return True if a dataset reads more than one file: its state names only one."""
    holes = [hole for node in plan.walk() for hole in holes_of(node)]
    return sum(isinstance(hole, RowsOfFile) for hole in holes) > 1


def _holds_datasets(node: Node) -> bool:
    specs: list[TypeSpec] = flatten(node.element_spec, DATA)
    return any(isinstance(spec, DatasetSpec) for spec in specs)


def _has_inner_template(datasets: object) -> bool:
    """Find the template of a function inside of the function; its datasets must not read files."""
    if not isinstance(datasets, InnerDatasets):
        return False
    found = datasets.kept.template = _found(datasets)
    return found is not None and file_hole(found) is None


def _is_supported(node: Node) -> bool:
    if _holds_datasets(node) and not isinstance(node, _PASSING_WINDOWS):
        return False
    if isinstance(node, FlatMap | Interleave):
        return _has_inner_template(node.function)
    if isinstance(node, Map | Filter | TakeWhile):
        function = node.function if isinstance(node, Map) else node.predicate
        if not isinstance(function, RowFunction) or (isinstance(node, Map) and node.processes):
            return False
        return function.is_vectorised and function.is_pure
    if isinstance(node, Batch):
        return node.row_splits_dtype is None
    if isinstance(node, Cache):
        return not node.filename
    if isinstance(node, Repeat):
        return node.count >= 0 or is_endless(node)
    return isinstance(node, (*_SOURCES, *_STEPS))
