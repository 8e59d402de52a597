"""Expects an error in the project's three lines: what, at the very line of the test, fix."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def error_saying(
    kind: type[Exception], what: str, *, fix: str | None = None
) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Expect an error of exactly this class, these texts, and the line that the block runs.

    Args:
        kind: The class.
        what: What the first lines say, or begin with where it ends in "…".
        fix: What the last line says, or begins with; None where there must be no such line.
    """
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.type is kind
    said, _, rest = str(caught.value).partition("\n  at:  ")
    where, _, mend = rest.partition("\n  fix: ")
    assert matches(said, what), said
    assert where == line_that_failed(caught.value)
    assert matches(mend, fix or ""), mend


def matches(text: str, expected: str) -> bool:
    if expected.endswith("…"):
        return text.startswith(expected[:-1])
    return text == expected


def line_that_failed(error: BaseException) -> str:
    entry = error.__traceback__
    while entry.tb_frame.f_code.co_filename == __file__:
        entry = entry.tb_next
    return f"{os.path.relpath(entry.tb_frame.f_code.co_filename)}:{entry.tb_lineno}"
