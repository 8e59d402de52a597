"""How TensorFlow shares batches out, as plain Python: what the steps of one worker must be."""

from collections.abc import Iterator


def legacy(batches: list[list[int]], replicas: int) -> list[list[list[int]]]:
    """Cut each batch by itself, by ceiling."""
    steps = []
    for batch in batches:
        size = -(-len(batch) // replicas)
        steps.append([batch[i * size : (i + 1) * size] for i in range(replicas)])
    return steps


def sizes(global_size: int, replicas: int) -> list[int]:
    """Return how many rows each replica takes in turn."""
    each, more = divmod(global_size, replicas)
    return [each + 1] * more + [each] * (replicas - more)


def refilled(batches: list[list[int]], wanted: list[int]) -> Iterator[list[int]]:
    """Yield pieces of the wanted sizes in turn, which go on over the ends of batches."""
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
    """Return the steps where rows flow on: pieces in groups, without a step in which nobody has rows."""
    pieces = list(refilled(batches, sizes(global_size, replicas)))
    pieces += [[]] * (-len(pieces) % replicas)
    steps = [pieces[i : i + replicas] for i in range(0, len(pieces), replicas)]
    return [step for step in steps if any(step)]


def batched(rows: int, size: int) -> list[list[int]]:
    """Return the numbers below `rows` in batches."""
    return [list(range(start, min(rows, start + size))) for start in range(0, rows, size)]
