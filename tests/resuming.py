"""The law of state: stop after any element, restore in a fresh operator, and the rest is equal."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from evenfeed.runtime.file_digests import with_digests
from evenfeed.runtime.operator import Operator


def rows_of(operator: Operator, most: int, limit: int = 60) -> list[Any]:
    """Return elements one by one as plain values, the class of an error in its place."""
    found: list[Any] = []
    while len(found) < limit:
        try:
            block = operator.read(most)
        except Exception as error:  # noqa: BLE001 - whatever it is, it has its place
            found.append(type(error))
            continue
        if block is None:
            return found
        assert 1 <= block.length <= most
        found += [list(map(plain, block.row(index))) for index in range(block.length)]
    return found


def plain(part: Any) -> Any:
    """Return a part of an element as a value that == compares."""
    if isinstance(part, (np.ndarray, np.generic)):
        return str(part.dtype), part.shape, part.tolist()
    return part


def assert_resumes(make: Callable[[], Operator], *sizes: int) -> list[Any]:
    """Check the law for operators that `make` returns; return all elements."""
    whole = rows_of(make(), 1)
    for most in sizes or (1, 2, 5):
        operator, passed = make(), 0
        assert rows_of(make(), most) == whole
        for _ in range(60):
            fresh = make()
            fresh.restore(json.loads(json.dumps(with_digests(operator.state()))))
            assert rows_of(fresh, most, 60 - passed) == whole[passed:], (most, passed)
            fresh.close()
            try:
                block = operator.read(most)
            except Exception:  # noqa: BLE001
                passed += 1
                continue
            if block is None:
                break
            passed += block.length
        operator.close()
    return whole
