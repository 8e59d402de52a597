"""What packed rows mean."""

from typing import Any

import numpy as np
from tests.plans import steps
from tests.plans.meaning import FAILED, Events, means

from evenfeed.plan.packing import Pack


@means(Pack, made_by=steps.packed)
def _packed(node: Pack, child: Events) -> Events:
    sequences: list[list[Any]] = []  # open ones, as lists of rows
    for element in child:
        if element is FAILED or not _can_be_packed(node, element):
            yield FAILED
            continue
        rest = _up_to(element, node.lengths) if node.too_long == "truncate" else element
        while any(map(len, rest)):
            if node.strategy == "concat":
                sequences = sequences or [[]]
                room = [length - _used(sequences[0], 0) for length in node.lengths]
                place, row = 0, _up_to(rest, room)
            else:
                row = _up_to(rest, node.lengths)
                fitting = (n for n, rows in enumerate(sequences) if _fits(node, [*rows, row]))
                place = next(fitting, len(sequences))
                if place == node.num_bins:
                    yield _sequence(node, sequences.pop(0))
                    place -= 1
                sequences += [[]] if place == len(sequences) else []
            rest = [part[len(own) :] for part, own in zip(rest, row, strict=True)]
            sequences[place].append(row)
            if all(_used(sequences[place], n) == size for n, size in enumerate(node.lengths)):
                yield _sequence(node, sequences.pop(place))
    if not node.drop_remainder:
        yield from (_sequence(node, rows) for rows in sequences)


def _can_be_packed(node: Pack, element: list[Any]) -> bool:
    if any(part.ndim != 1 for part in element):
        return False
    sizes = list(map(len, element))
    too_long = any(size > most for size, most in zip(sizes, node.lengths, strict=True))
    uneven = node.strategy == "concat" and len(set(sizes)) > 1
    return not uneven and not (too_long and node.too_long == "error")


def _up_to(element: list[Any], lengths: Any) -> list[Any]:
    return [part[:length] for part, length in zip(element, lengths, strict=True)]


def _used(rows: list[Any], part: int) -> int:
    return sum(len(row[part]) for row in rows)


def _fits(node: Pack, rows: list[Any]) -> bool:
    return all(_used(rows, part) <= length for part, length in enumerate(node.lengths))


def _sequence(node: Pack, rows: list[Any]) -> list[Any]:
    triples = []
    for part, (length, fill) in enumerate(zip(node.lengths, node.values, strict=True)):
        tokens, ids, positions = list[Any](), list[int](), list[int]()
        for number, row in enumerate(rows, 1):
            tokens += row[part].tolist()
            ids += [number] * len(row[part])
            positions += range(len(row[part]))
        gap = length - len(tokens)
        tokens += [fill.item()] * gap
        numbers = (np.array(some + [0] * gap, np.int32) for some in (ids, positions))
        triples.append((np.array(tokens, fill.dtype), *numbers))
    return [triples[part][kind] for part, kind in node.columns]
