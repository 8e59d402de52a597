"""What the nodes with users' functions mean, and those that have datasets as elements."""

import itertools
from typing import Any

import numpy as np
from tests.plans import steps
from tests.plans import user_functions as users
from tests.plans.meaning import FAILED, Events, Opened, any_failed, means
from tests.plans.user_functions import PLAIN

from evenfeed.core import dtypes
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset
from evenfeed.plan.elementwise import Filter, Map, Scan, TakeWhile
from evenfeed.plan.flattening import FlatMap, GroupByWindow, Interleave
from evenfeed.plan.windows import Held, Window


def _called(name: str, spec: Any, parts: list[Any]) -> Any:
    """Return the parts that a function makes of an element; FAILED where it raises."""
    try:
        value = PLAIN[name](pack(spec, list(map(_argument, parts)), DATA))
    except (ValueError, IndexError):
        return FAILED
    return [_part(part) for part in flatten(value, DATA)]


def _argument(part: Any) -> Any:
    if part is None or np.ndim(part) or part.dtype != dtypes.string:
        return part
    return part.item()


def _part(value: Any) -> Any:
    if value is None:
        return None
    return np.array(value, object) if isinstance(value, bytes) else np.asarray(value)


@means(Map, made_by=steps.maps)
def _mapped(node: Map, child: Events) -> Events:
    for parts in child:
        failed = parts is FAILED
        yield FAILED if failed else _called(node.function.name, node.child.element_spec, parts)


@means(Filter, made_by=steps.chosen(Filter, users.is_even))
@means(TakeWhile, made_by=steps.chosen(TakeWhile, users.is_small))
def _chosen(node: Filter | TakeWhile, child: Events) -> Events:
    for parts in child:
        failed = parts is FAILED
        answer = FAILED if failed else _called(node.predicate.name, node.element_spec, parts)
        if answer is FAILED:
            yield FAILED
        elif answer[0]:
            yield parts
        elif isinstance(node, TakeWhile):
            return


@means(Scan, made_by=steps.scans)
def _scanned(node: Scan, child: Events) -> Events:
    state = list(node.initial)
    for parts in child:
        spec = (node.initial[0], node.child.element_spec)
        failed = parts is FAILED
        result = FAILED if failed else _called(node.function.name, spec, [*state, *parts])
        if result is FAILED:
            yield FAILED
            continue
        state, output = result[:1], result[1:]
        yield output


@means(FlatMap, made_by=steps.flattened)
def _flat(node: FlatMap, opened: Opened, child: Events) -> Events:
    for number, parts in enumerate(child):
        yield from _inner(node, opened, number, parts) or [FAILED]


def _inner(node: FlatMap | Interleave, opened: Opened, number: int, parts: Any) -> Events | None:
    """Return the elements of the dataset of an element; None where that is an error."""
    try:
        return None if parts is FAILED else opened(number, lambda: node.function.make(parts))
    except ValueError:
        return None


@means(Interleave, made_by=steps.interleaved)
def _in_turn(node: Interleave, opened: Opened, child: Events) -> Events:
    open_ones: list[Events | None] = [None] * node.cycle_length
    turn, ended, number = 0, False, 0
    while not ended or any(open_ones):
        taken = 0
        while taken < node.block_length:
            if open_ones[turn] is None:
                parts = None if ended else next(child, None)
                if parts is None:
                    ended = True
                    break
                open_ones[turn] = _inner(node, opened, number, parts)
                number += 1
                if open_ones[turn] is None:
                    yield FAILED
                    continue
            element = next(open_ones[turn], None)
            if element is None:
                open_ones[turn] = None
                break
            taken += element is not FAILED
            yield element
        turn = (turn + 1) % node.cycle_length


@means(GroupByWindow, made_by=steps.groups)
def _by_key(node: GroupByWindow, opened: Opened, child: Events) -> Events:
    groups: dict[int, list[Any]] = {}
    count = itertools.count()

    def reduced(key: int) -> Events:
        rows = _held(node.child.element_spec, groups.pop(key))
        return opened(next(count), lambda: node.reduce(key, rows))

    spec = node.child.element_spec
    for parts in child:
        key = FAILED if parts is FAILED else _called(node.key.name, spec, parts)
        if key is FAILED:
            yield FAILED
            continue
        number = int(key[0])
        groups.setdefault(number, []).append(parts)
        if len(groups[number]) == node.window_size(number):
            yield from reduced(number)
    for number in sorted(groups):
        yield from reduced(number)


def _held(spec: Any, rows: list[Any]) -> Held:
    columns = [None if part[0] is None else list(part) for part in zip(*rows, strict=True)]
    return Held(spec, tuple(columns), len(rows))


@means(Window, made_by=steps.windows)
def _windows(node: Window, child: Events) -> Events:
    span = (node.length - 1) * node.stride + 1
    held, ended = list[Any](), False
    while True:
        while len(held) < span and not ended:
            element = next(child, None)
            ended = element is None
            held += [] if ended else [element]
        if len(held) < (span if node.drop_remainder else 1):
            return
        rows = held[: span : node.stride]
        yield FAILED if any_failed(rows) else _datasets(node, rows)
        for _ in range(node.shift - len(held)):
            next(child, None)  # in a gap nobody cares what fails
        held = held[node.shift :]


def _datasets(node: Window, rows: list[Any]) -> list[Dataset]:
    specs = flatten(node.child.element_spec, DATA)
    columns = zip(*rows, strict=True)
    return [
        Dataset(_held(spec, [[part] for part in column]))
        for spec, column in zip(specs, columns, strict=True)
    ]
