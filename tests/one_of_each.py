"""A plugin of pytest that keeps the last variant of each test: for a second run in another mode.

The first run has all of them. Use it with `-p tests.one_of_each`.
"""

from typing import Any

import pytest


@pytest.hookimpl(trylast=True)  # after --deselect
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    last = {_test_of(item): item for item in items}
    config.hook.pytest_deselected(
        items=[item for item in items if last[_test_of(item)] is not item]
    )
    items[:] = last.values()


def _test_of(item: pytest.Item) -> tuple[Any, ...]:
    return item.path, item.parent, getattr(item, "originalname", None) or item.name
