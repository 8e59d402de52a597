"""TensorFlow's rules for splitting batches, in plain Python: the expected steps of each worker."""

from collections.abc import Iterator


def pieces_of(batches: list[list[int]], everyone: int) -> list[list[int]]:
    """Split each batch separately, rounding up, into a piece for each replica of all workers."""
    pieces = []
    for batch in batches:
        size = -(-len(batch) // everyone)
        pieces += [batch[i * size : (i + 1) * size] for i in range(everyone)]
    return pieces


def in_steps(pieces: list[list[int]], replicas: int) -> list[list[list[int]]]:
    """Return pieces in groups of one for each replica of a worker."""
    pieces = pieces + [[]] * (-len(pieces) % replicas)
    return [pieces[i : i + replicas] for i in range(0, len(pieces), replicas)]


def legacy(batches: list[list[int]], replicas: int) -> list[list[list[int]]]:
    """Split each batch separately, rounding up, on one worker."""
    return in_steps(pieces_of(batches, replicas), replicas)


def by_data(
    batches: list[list[int]], workers: int, replicas: int, worker: int
) -> list[list[list[int]]]:
    """Return a worker's steps if all workers split the same batches and take pieces in turn."""
    return in_steps(pieces_of(batches, workers * replicas)[worker::workers], replicas)


def sizes(global_size: int, replicas: int, first: int = 0) -> list[int]:
    """Return the number of rows that each replica takes in turn, starting at one of them."""
    each, more = divmod(global_size, replicas)
    found = [each + 1] * more + [each] * (replicas - more)
    return found[first:] + found[:first]


def refilled(batches: list[list[int]], wanted: list[int]) -> Iterator[list[int]]:
    """Yield pieces of the given sizes in turn. Pieces may span several batches."""
    rest: list[int] = []
    source, turn, ended = iter(batches), 0, False
    while not ended:
        want = wanted[turn % len(wanted)]
        turn += 1
        piece: list[int] = []
        while len(piece) < want:
            if not rest:
                try:
                    rest = list(next(source))
                except StopIteration:
                    ended = True
                    break
            taken = want - len(piece)
            piece, rest = piece + rest[:taken], rest[taken:]
        if not piece and want > 0:
            return
        yield piece


def flowing(batches: list[list[int]], global_size: int, replicas: int) -> list[list[list[int]]]:
    """Return the steps if rows flow on: pieces in groups, without steps in which no replica has rows."""
    return each_flowing([batches], global_size, replicas)[0]


def each_flowing(
    batches: list[list[list[int]]], global_size: int, replicas: int
) -> list[list[list[list[int]]]]:
    """Return the steps of all workers if rows flow on in each: as many as the longest worker has."""
    everyone = replicas * len(batches)
    own = [
        in_steps(list(refilled(rows, sizes(global_size, everyone, worker * replicas))), replicas)
        for worker, rows in enumerate(batches)
    ]
    return without_idle(as_long(own, replicas))


def as_long(steps: list[list[list[list[int]]]], replicas: int) -> list[list[list[list[int]]]]:
    """Continue without rows on workers that have run out."""
    most = max(map(len, steps))
    return [own + [[[]] * replicas] * (most - len(own)) for own in steps]


def without_idle(steps: list[list[list[list[int]]]]) -> list[list[list[list[int]]]]:
    """Drop steps in which no replica has rows."""
    kept = [
        number
        for number in range(len(steps[0]))
        if any(row for own in steps for row in own[number])
    ]
    return [[own[number] for number in kept] for own in steps]


def batched(rows: int, size: int) -> list[list[int]]:
    """Return the numbers below `rows` in batches."""
    return [list(range(start, min(rows, start + size))) for start in range(0, rows, size)]
