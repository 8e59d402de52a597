"""Reads the datasets that groups are reduced to, by a template for each key."""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from typing import Final, final

from evenfeed.core.block import Block, concatenated
from evenfeed.core.side_effects import Effects
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.flattening import GroupByWindow
from evenfeed.plan.node import Node
from evenfeed.plan.templates import Template, group_placeholder
from evenfeed.runtime.functions.finding_templates import template_by_placeholder
from evenfeed.runtime.operator import Operator, read_full
from evenfeed.runtime.operators.inner.expanded import NotExpandable
from evenfeed.runtime.operators.inner.expanding import Expander, read_whole

# How many groups of a key are opened before a template is looked for, which takes as long as opening some more.
_TRIED_AFTER: Final = 8

# If the template fails for so many groups in a row, the function is called for the rest of the pass.
_MOST_FAILURES: Final = 4


@final
class GroupTemplates:
    """What `reduce_func` makes of the groups of each key, found once and then read without calling it again.

    Args:
        node: Has the function.
        effects: The side effects of its functions that are known so far.
        build: Returns an operator that reads a plan.
    """

    def __init__(
        self, node: GroupByWindow, effects: Effects, build: Callable[[Node], Operator]
    ) -> None:
        self._node = node
        self._effects = effects
        self._build = build
        self._opened: Counter[int] = Counter()
        self._expanders: dict[int, Expander] = {}
        self._failed = 0  # how many groups in a row

    def read(
        self, key: int, rows: Block, made: Callable[[], Node]
    ) -> tuple[Expander, Block] | None:
        """Return the elements that a group is reduced to, and what read them; None if it must be opened as usual.

        Args:
            key: The key of the group.
            rows: Its elements.
            made: Returns the plan that the function makes of it.
        """
        if self._failed >= _MOST_FAILURES:
            return None
        self._opened[key] += 1
        expander = self._expanders.get(key)
        if expander is None and self._opened[key] != _TRIED_AFTER:
            return None
        try:
            if expander is None:
                expander = self._expanders[key] = self._found(key, rows, made)
            found = _expanded(expander, rows)
        except Exception:  # noqa: BLE001 - opened as usual, it fails again at the bad element
            self._failed += 1
            return None
        self._failed = 0
        return expander, found

    def _found(self, key: int, rows: Block, made: Callable[[], Node]) -> Expander:
        """Return what reads the groups of a key, if it reads one of them as the function makes it."""
        node = self._node
        template: Template | None = None
        if not self._effects:
            template = template_by_placeholder(
                node.reduce,
                lambda maker: node.reduce(key, group_placeholder(node.child.element_spec, maker)),
            )
        if template is None:
            self._failed = _MOST_FAILURES
            raise NotExpandable
        expander = Expander(template, self._all_of)
        found = _expanded(expander, rows)
        with closing(self._build(made())) as operator:
            whole = list(read_full(operator, found.length + 1))
        if not whole or not concatenated(whole).is_same(found):
            self._failed = _MOST_FAILURES
            raise NotExpandable
        return expander

    def _all_of(self, node: Node) -> Block:
        return read_whole(self._build(node), len(flatten(node.element_spec, DATA)))


def _expanded(expander: Expander, rows: Block) -> Block:
    return expander(Block(([rows],), 1)).rows
