"""Loops of pack over rows of tokens. They run as plain Python on lists, or compiled on arrays (`compiled`)."""

from typing import Any

# What `place_rows` knows of each open sequence, in `book`: how many segments it has, its number, the index of the row
# that opened it, how many sequences had been finished before that row, and how many were open.
SEGMENTS, NUMBER, ROW, FINISHED, OPEN = range(5)
FIELDS = 5


def place_rows(  # noqa: PLR0912, PLR0913, PLR0915, PLR0917 - compiled code takes only arrays, and allocates nothing
    rows: Any,
    sizes: Any,
    lengths: Any,
    count: int,
    order: Any,
    free: Any,
    book: Any,
    before: Any,
    numbers: Any,
    ids: Any,
    offsets: Any,
    finished: Any,
) -> tuple[int, int]:
    """Put each piece of a row into the oldest open sequence that has room; return how many are open and finished.

    If none has room, open another, and finish the oldest first if too many are open.

    Args:
        rows: The index of the row of each piece.
        sizes: The tokens of each piece, by piece and component.
        lengths: The tokens of a sequence, by component.
        count: How many sequences are open. Their numbers are 0, 1, …; new ones get the next numbers.
        order: The slots of the open sequences, the oldest first, and then those that are not in use.
        free: The tokens that still fit, by slot and component.
        book: What is known of each open sequence, by slot.
        before: What was free before the row that opened a sequence, by slot, sequence and component. The last
            place is for the current row.
        numbers: Receives the number of the sequence of each piece.
        ids: Receives the segment id of each piece.
        offsets: Receives where each piece starts in its sequence, by piece and component.
        finished: Receives the numbers of finished sequences.
    """
    parts, most = len(lengths), len(order)
    now = most * most * parts  # where `before` holds what was free before the current row
    done, following, last = 0, count, -1
    done_before = open_before = 0
    for piece in range(len(rows)):
        row, at = rows[piece], piece * parts
        if row != last:
            last, done_before, open_before = row, done, -1
        place = -1
        for i in range(count):
            slot = order[i] * parts
            if free[slot] >= sizes[at]:
                fits = True
                for part in range(1, parts):
                    if free[slot + part] < sizes[at + part]:
                        fits = False
                if fits:
                    place = i
                    break
        # The pieces of a row change what is free before one of them opens a sequence.
        is_split = piece + 1 < len(rows) and rows[piece + 1] == row
        if open_before < 0 and (place < 0 or is_split):
            open_before = count
            for i in range(count):
                for part in range(parts):
                    before[now + i * parts + part] = free[order[i] * parts + part]
        if place < 0:
            if count == most:
                slot = order[0]
                finished[done] = book[slot * FIELDS + NUMBER]
                done += 1
                for i in range(1, count):
                    order[i - 1] = order[i]
                count -= 1
                order[count] = slot
            place = count
            count += 1
            slot = order[place]
            book[slot * FIELDS + SEGMENTS] = 0
            book[slot * FIELDS + NUMBER] = following
            book[slot * FIELDS + ROW] = row
            book[slot * FIELDS + FINISHED] = done_before
            book[slot * FIELDS + OPEN] = open_before
            following += 1
            for i in range(open_before * parts):
                before[slot * most * parts + i] = before[now + i]
            for part in range(parts):
                free[slot * parts + part] = lengths[part]
        slot = order[place]
        book[slot * FIELDS + SEGMENTS] += 1
        ids[piece] = book[slot * FIELDS + SEGMENTS]
        numbers[piece] = book[slot * FIELDS + NUMBER]
        left = 0
        for part in range(parts):
            offsets[at + part] = lengths[part] - free[slot * parts + part]
            free[slot * parts + part] -= sizes[at + part]
            left += free[slot * parts + part]
        if left == 0:
            finished[done] = numbers[piece]
            done += 1
            for i in range(place + 1, count):
                order[i - 1] = order[i]
            count -= 1
            order[count] = slot
    return count, done


def number_tokens(places: Any, sizes: Any, ids: Any, out_ids: Any, out_positions: Any) -> None:
    """Write the segment ids and positions of pieces with `sizes` tokens, which begin at `places`."""
    for piece in range(len(places)):
        place, number = places[piece], ids[piece]
        for position in range(sizes[piece]):
            out_ids[place + position] = number
            out_positions[place + position] = position
