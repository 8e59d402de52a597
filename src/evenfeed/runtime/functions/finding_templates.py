"""Finds the plan with holes that describes all datasets that a function makes.

The function is called with placeholders for the parts of an element. If it only passes them to the methods that create
datasets, the datasets of many elements can be read at once, without calling it again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from types import FunctionType
from typing import Any, Final, cast

import numpy as np

from evenfeed.core.captures import named_by, names_used
from evenfeed.core.side_effects import Effects, ProbeAbandoned
from evenfeed.plan.buffering import Prefetch
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, Filter, Map
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.options import WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Skip, Take
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.plan.templates import Counting, RowsOf, RowsOfFile, Whole, holes_of, is_endless
from evenfeed.plan.windows import Held
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.probing import looked_at
from evenfeed.runtime.functions.reach.purity import uses_generator
from evenfeed.runtime.functions.reach.python_state import ReachableState
from evenfeed.runtime.functions.row_function import RowFunction

# How many datasets a function makes before a template is looked for, which takes as long as making some more.
TRIED_AFTER: Final = 2

# What a template may consist of: nodes that are read without side effects, and whose elements follow from those below.
_SOURCES: Final = (Held, Range, Tensor, TensorSlice)
_STEPS: Final = (
    *(Batch, Concatenate, Enumerate, Filter, Map, Prefetch, Repeat, Shard, Skip, Take, WithOptions, Zip),
)  # fmt: skip


def template_of(datasets: InnerDatasets) -> Node | None:
    """Return the plan with holes of the datasets that a function makes, once it has made some; None if there is none."""
    record = datasets.function.record
    if record.opened == TRIED_AFTER:
        record.template = _found(datasets)
    record.opened += record.opened <= TRIED_AFTER
    return record.template


def _found(datasets: InnerDatasets) -> Node | None:
    """Call the function twice. Both plans must be the same, and the calls must leave no trace."""
    function = datasets.function.asked[0]
    if not datasets.function.is_pure or uses_generator(function) or _prints(function):
        return None
    effects = Effects()
    try:
        with looked_at(function, effects):
            state = ReachableState(function)
            plans = [datasets.of_placeholders() for _ in range(2)]
            changed = state.restore()
    except (Exception, ProbeAbandoned):  # noqa: BLE001 - it needs values
        return None
    plan, again = plans
    if changed or effects or not all(map(_is_supported, plan.walk())) or _reads_several(plan):
        return None
    return plan if _same_steps(plan, again) and plan.element_spec == again.element_spec else None


def _prints(function: object) -> bool:
    """Return True if a function, or one that it refers to, prints: that must happen for each element."""
    called = (each for each in (function, *named_by(function, 2)) if isinstance(each, FunctionType))
    return any("print" in names_used(each.__code__) for each in called)


def _same_steps(one: Node, two: Node) -> bool:
    return list(_steps(one)) == list(_steps(two))


def _steps(plan: Node) -> Iterator[Any]:
    """Yield what can be compared of each node: its class, its values and what its function uses."""
    for node in plan.walk():
        values = [getattr(node, field.name) for field in fields(node) if field.compare]
        for value in list(values):
            if isinstance(value, RowFunction):
                values += named_by(value.calling.function, 1)
        yield type(node), len(node.children), list(map(_comparable, values))


def _comparable(value: Any) -> Any:
    """Return a value that can be compared; None for an object that cannot."""
    if isinstance(value, RowsOf | Whole):
        return type(value), _comparable(value.source)
    if type(value) is np.ndarray:
        return value.dtype, value.shape, value.tolist()
    if isinstance(value, list | tuple):
        return [_comparable(part) for part in cast("Sequence[Any]", value)]
    return value if isinstance(value, int | float | str | bytes | Counting | RowsOfFile) else None


def _reads_several(plan: Node) -> bool:
    """Return True if a dataset reads more than one file: its state names only one."""
    holes = [hole for node in plan.walk() for hole in holes_of(node)]
    return sum(isinstance(hole, RowsOfFile) for hole in holes) > 1


def _is_supported(node: Node) -> bool:
    if isinstance(node, Map | Filter):
        function = node.function if isinstance(node, Map) else node.predicate
        if not isinstance(function, RowFunction) or (isinstance(node, Map) and node.processes):
            return False
        return function.is_vectorised and function.is_pure
    if isinstance(node, Batch):
        return node.row_splits_dtype is None
    if isinstance(node, Repeat):
        return node.count >= 0 or is_endless(node)
    return isinstance(node, (*_SOURCES, *_STEPS))
