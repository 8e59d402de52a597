"""What the nodes with users' functions mean, and those that have datasets as elements."""

from typing import Any

import numpy as np
from tests.plans.meaning import FAILED, Events, any_failed, meaning_of_fixed, means
from tests.plans.user_functions import PLAIN

from evenfeed.core import dtypes
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset
from evenfeed.plan.filtering import Filter, TakeWhile
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node
from evenfeed.plan.scanning import Scan
from evenfeed.plan.windowing import GroupByWindow
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


@means(Map)
def _mapped(node: Map, child: Events) -> Events:
    for parts in child:
        failed = parts is FAILED
        yield FAILED if failed else _called(node.function.name, node.child.element_spec, parts)


@means(Filter)
@means(TakeWhile)
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


@means(Scan)
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


@means(FlatMap)
def _flat(node: FlatMap, child: Events) -> Events:
    for parts in child:
        inner = _opened(node, parts)
        if inner is None:
            yield FAILED
        else:
            yield from meaning_of_fixed(inner)


def _opened(node: FlatMap | Interleave, parts: Any) -> Node | None:
    """Return the inner plan of an element; None where that is an error."""
    try:
        return None if parts is FAILED else node.function.make(parts)
    except ValueError:
        return None


@means(Interleave)
def _in_turn(node: Interleave, child: Events) -> Events:
    open_ones: list[Events | None] = [None] * node.cycle_length
    turn, ended = 0, False
    while not ended or any(open_ones):
        taken = 0
        while taken < node.block_length:
            if open_ones[turn] is None:
                parts = None if ended else next(child, None)
                if parts is None:
                    ended = True
                    break
                inner = _opened(node, parts)
                if inner is None:
                    yield FAILED
                    continue
                open_ones[turn] = meaning_of_fixed(inner)
            element = next(open_ones[turn], None)
            if element is None:
                open_ones[turn] = None
                break
            taken += element is not FAILED
            yield element
        turn = (turn + 1) % node.cycle_length


@means(GroupByWindow)
def _by_key(node: GroupByWindow, child: Events) -> Events:
    groups: dict[int, list[Any]] = {}
    spec = node.child.element_spec
    for parts in child:
        key = FAILED if parts is FAILED else _called(node.key.name, spec, parts)
        if key is FAILED:
            yield FAILED
            continue
        number = int(key[0])
        groups.setdefault(number, []).append(parts)
        if len(groups[number]) == node.window_size(number):
            yield from _reduced(node, number, groups.pop(number))
    for number in sorted(groups):
        yield from _reduced(node, number, groups[number])


def _reduced(node: GroupByWindow, key: int, rows: list[Any]) -> Events:
    return meaning_of_fixed(node.reduce(key, _held(node.child.element_spec, rows)))


def _held(spec: Any, rows: list[Any]) -> Held:
    columns = [None if part[0] is None else list(part) for part in zip(*rows, strict=True)]
    return Held(spec, tuple(columns), len(rows))


@means(Window)
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
