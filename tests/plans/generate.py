"""Random plans: a source and some steps over it, run in more than one way."""

import copy
import importlib
import pkgutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from hypothesis import strategies as st
from tests.plans.meaning import STEPS, every_path, sequential
from tests.plans.sources import SOURCES, beginnings
from tests.plans.steps import new_name
from tests.plans.user_functions import shared_functions

import evenfeed.plan
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.node import Node, rebuilt
from evenfeed.runtime import build
from evenfeed.runtime.positions.indexing import indexed


@st.composite
def plans(draw: st.DrawFn, most: int = 4) -> Node:
    """Return a source and up to `most` steps over it."""
    plan = draw(beginnings)
    for step in draw(st.lists(st.sampled_from(list(STEPS.values())), max_size=most)):
        plan = draw(step(st.just(plan)))
    return fresh(plan)


def fresh(plan: Node) -> Node:
    """Return a plan that says the same and shares nothing: the dataset of another process.

    Functions that know what they return are shared: to trace and compile them takes most of the time.
    """
    own = copy.deepcopy(plan, shared_functions())
    paths = Counter(id(node.identity) for node in every_path(own) if isinstance(node, Cache))

    folders: dict[str, str] = {}

    def elsewhere(node: Node) -> Node:
        if isinstance(node, Snapshot):
            return replace(node, folder=folders.setdefault(node.folder, new_name()))
        # Only one iterator may write a file at a time: what stands in several places is kept in memory.
        if not isinstance(node, Cache) or not node.filename:
            return node
        return replace(node, filename="" if paths[id(node.identity)] > 1 else new_name())

    return rebuilt(own, elsewhere)


def _in_files(node: Node) -> bool:
    return isinstance(node, Cache) and node.filename != ""


def is_read_by_one(plan: Node) -> bool:
    """Tell whether a second iterator would be refused while the first has not ended."""
    return any(map(_in_files, plan.walk()))


# For each node, the plans with that node at the top.
PLANS: Final = SOURCES | {kind: step(plans(most=3)).map(fresh) for kind, step in STEPS.items()}
KINDS: Final = list(PLANS)


def all_nodes() -> set[type[Node]]:
    """Return every node that a plan can have, wherever in evenfeed.plan it is."""
    for module in pkgutil.iter_modules(evenfeed.plan.__path__, "evenfeed.plan."):
        importlib.import_module(module.name)
    kinds, found = [Node], set[type[Node]]()
    while kinds:
        kind = kinds.pop()
        kinds.extend(kind.__subclasses__())
        if getattr(kind, "__final__", False) and kind.__module__.startswith("evenfeed.plan."):
            found.add(kind)
    return found


# Which nodes are to be read one element after another though they could be addressed: a law that
# holds both ways holds for the operators too, not only for the index space.
ways: Final = st.one_of(
    st.just(frozenset[type[Node]]()),
    st.just(frozenset(STEPS)),
    st.frozensets(st.sampled_from(list(STEPS)), min_size=1, max_size=3),
)


@contextmanager
def not_addressed(kinds: frozenset[type[Node]]) -> Iterator[None]:
    """Let nothing be addressed that has a node of these kinds in it."""

    def found(node: Node, *args: Any) -> Any:
        if any(type(part) in kinds for part in node.walk()):
            return None
        return indexed(node, *args)

    with patch.object(build, "indexed", found), sequential(kinds):
        yield
