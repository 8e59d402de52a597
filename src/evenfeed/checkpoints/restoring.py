"""Matches the objects of a program with those of a checkpoint, now and when more of them are created."""

import weakref
from collections.abc import Iterable
from functools import partial
from threading import RLock
from typing import Any, Final, final

from evenfeed.checkpoints.growing import await_entries
from evenfeed.checkpoints.object_graph import ROOT, LiveObject, identity, live_objects
from evenfeed.checkpoints.storage import Stored
from evenfeed.checkpoints.tracking import ArrayLeaf, StateLeaf, children_of, tracked
from evenfeed.core.lazy import logging
from evenfeed.replicas.variables.attaching import Attaching, await_attributes, stop_awaiting

_SHOWN: Final = 10


@final
class Restoration:
    """One call of `restore`: gives each object of a checkpoint to the first object of the program with its path.

    Args:
        root: The object that the paths start at.
        stored: The checkpoint.
    """

    def __init__(self, root: Any, stored: Stored) -> None:
        self._root = root
        self._stored = stored
        self._matched: dict[int, Any] = {}  # by the number of the stored object
        self._numbers: dict[Any, int] = {}  # by the identity of the object
        self._lock = RLock()  # the threads of several replicas may set an attribute
        self._unused = {
            number: saved.path for number, saved in enumerate(stored.objects) if saved.has_value
        }
        self._restored: set[Any] = set()
        self._awaited: set[int] = set()  # numbers of stored objects whose children come later
        self._warning = weakref.finalize(self, _warn_of_unused, self._unused, stored.path)

    def match_all(self) -> None:
        """Restore all objects that exist now and are not restored yet."""
        with self._lock:
            self._match([(ROOT, self._root), *self._matched.items()])

    def _match(self, found: Iterable[tuple[int, Any]]) -> None:
        """Match objects with stored ones and restore them, and then the objects below them."""
        waiting = list(found)
        leaves: list[tuple[int, ArrayLeaf | StateLeaf]] = []
        seen: set[int] = set()
        for number, value in waiting:  # grows meanwhile
            earlier = self._matched.setdefault(number, value)
            if identity(earlier) != identity(value):
                _warn_of_two(self._stored.objects[number].path)
                continue
            known = tracked(value)
            if known is None or number in seen:
                continue
            seen.add(number)
            for face in _faces(value):
                self._numbers[identity(face)] = number
                self._await(face)
            if known.await_children is not None and number not in self._awaited:
                self._awaited.add(number)
                known.await_children(partial(self._match_again, number, value))
            if known.leaf is not None and number in self._unused:
                leaves.append((number, known.leaf))
            saved, children = self._stored.objects[number].children, known.children()
            waiting += [(saved[name], children[name]) for name in saved if name in children]
        self._restore(leaves)

    def _match_again(self, number: int, value: Any) -> None:
        """Restore the objects below one that has them only now."""
        with self._lock:
            if self._unused:
                self._match([(number, value)])

    def _await(self, value: Any) -> None:
        """Restore objects that are attached to this one later."""
        if not isinstance(value, Attaching):
            return
        await_attributes(value, self._attached)
        for name, child in list(vars(value).items()):
            number = self._child(value, name)
            expected = 0 if number is None else len(self._stored.objects[number].children)
            if type(child) in (list, dict) and expected > len(child):
                vars(value)[name] = await_entries(child, self._attached)

    def _child(self, value: Any, name: str) -> int | None:
        number = self._numbers.get(identity(value))
        return None if number is None else self._stored.objects[number].children.get(name)

    def _attached(self, value: Any, name: str, child: Any) -> None:
        del child  # `tracked` knows what is saved of it
        with self._lock:
            number = self._child(value, name)
            if number is None or number in self._matched:
                return
            self._await(value)
            children = children_of(value)
            if name in children:
                self._match([(number, children[name])])

    def _restore(self, leaves: list[tuple[int, ArrayLeaf | StateLeaf]]) -> None:
        wanted: dict[str, Any] = {}
        arrays: list[tuple[int, ArrayLeaf, dict[str, str]]] = []
        states: list[tuple[int, StateLeaf]] = []
        for number, leaf in leaves:
            saved = self._stored.objects[number]
            if isinstance(leaf, StateLeaf):
                if saved.has_state:
                    states.append((number, leaf))
                continue
            targets = leaf.targets(saved.arrays, saved.path)
            if targets:
                wanted |= {saved.arrays[name].key: how for name, how in targets.items()}
                arrays.append((number, leaf, {name: saved.arrays[name].key for name in targets}))
        values = self._stored.read(wanted) if wanted else {}
        for number, leaf in states:
            leaf.put(self._stored.state(number))
            self._used(number)
        for number, leaf, keys in arrays:
            leaf.put({name: values[key] for name, key in keys.items()})
            self._used(number)

        if not self._unused:
            self.cancel()

    def cancel(self) -> None:
        """Stop waiting for objects that are created later."""
        self._warning.detach()
        for value in self._matched.values():
            for face in _faces(value):
                if isinstance(face, Attaching):
                    stop_awaiting(face, self._attached)

    def _used(self, number: int) -> None:
        del self._unused[number]
        self._restored.add(identity(self._matched[number]))

    @property
    def unused(self) -> list[str]:
        """The paths of the stored values that no object of the program has taken."""
        return list(self._unused.values())

    def unrestored(self) -> list[LiveObject]:
        """Return the objects of the program with a value that the checkpoint does not have."""
        live = live_objects(self._root)
        return [one for one in live if one.leaf and identity(one.value) not in self._restored]

    @property
    def matches_nothing(self) -> bool:
        """True if no object but the root was found in the checkpoint."""
        return len(self._matched) <= 1

    def ignore_unused(self) -> None:
        """Do not warn of stored values that no object takes."""
        self._warning.detach()


def _faces(value: Any) -> list[Any]:
    """Return the objects whose attributes are the children of an object."""
    known = tracked(value)
    return [value] if known is None or known.face is None else [value, known.face]


def listed(paths: list[str]) -> str:
    """Return the first paths as text."""
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(path or "the root" for path in paths[:_SHOWN]) + more


def _warn_of_two(path: str) -> None:
    logging.getLogger("evenfeed").warning(
        "The checkpoint has one object at %r, but the program has two there, or at other places where the checkpoint "
        "has the same object. Only the first is restored.",
        path,
    )


def _warn_of_unused(unused: dict[int, str], path: str) -> None:
    if unused:
        logging.getLogger("evenfeed").warning(
            "These values of the checkpoint %s were not restored: %s. If that is intended, call "
            "checkpoint.restore(path).expect_partial().",
            path,
            listed(list(unused.values())),
        )
