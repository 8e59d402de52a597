"""docs/differences.md gives the reason of every deliberate difference, word for word."""

from pathlib import Path

import pytest
from tests.oracle.differences import DIFFERENT

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "differences.md").read_text().split())


@pytest.mark.parametrize("reason", sorted(set(DIFFERENT.values())))
def test_a_difference_is_documented(reason):
    assert reason in PAGE
