"""Digests of the files that a plan reads, so that a resumed iterator notices changed files.

A file's digest covers its name, its length, and its first and last 4 KB. The digest of a set of files also shows
which files have changed.
"""

import base64
import binascii
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile
from typing import Any, Final, cast, final

from evenfeed.core.errors import DataLossError, EvenfeedError, InvalidArgumentError
from evenfeed.core.lazy import hashlib
from evenfeed.formats.bytes.filesystems import is_remote, local, open_file, remote
from evenfeed.formats.bytes.inflating import file_threads
from evenfeed.formats.bytes.retries import retried
from evenfeed.plan.files import Files
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.called_functions import is_complete

_EDGE: Final = 1 << 12  # bytes to read at the start and at the end of a file
_AT_ONCE: Final = 64  # files per thread task, or per call to a remote filesystem

MISSING: Final = b"missing"


def sketches(paths: Sequence[str]) -> list[bytes] | None:
    """Return a digest of each file's length and first and last 4 KB; None if a remote filesystem fails."""
    found: dict[str, bytes] = {}
    far = [path for path in paths if is_remote(path)]
    try:
        found.update(_remote_sketches(far))
    except Exception:  # noqa: BLE001 - each filesystem raises its own errors
        return None
    here = [path for path in paths if not is_remote(path)]
    pieces = [here[at : at + _AT_ONCE] for at in range(0, len(here), _AT_ONCE)]
    if len(pieces) > 1:  # a mounted disk may be slow, too
        waiting = [file_threads().submit(partial(_local_sketches, piece)) for piece in pieces]
        parts = [part.result() for part in waiting]
    else:
        parts = list(map(_local_sketches, pieces))
    for part in parts:
        found.update(part)
    return [found[path] for path in paths]


def _local_sketches(paths: list[str]) -> dict[str, bytes]:
    return {path: _local_sketch(path) for path in paths}


def _local_sketch(path: str) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(local(path)).st_mode):
            return b"stream"  # opening a pipe would wait for its writer
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            first = file.read(_EDGE)
            file.seek(max(0, size - _EDGE))
            return _sketch(size, first, file.read(_EDGE))
    except (OSError, EvenfeedError):
        return MISSING


def _remote_sketches(paths: list[str]) -> dict[str, bytes]:
    """Query each filesystem for all its files in a few batched calls."""
    systems: dict[int, tuple[Any, list[str], list[str]]] = {}
    for path in paths:
        system, inner = remote(path)
        _, outer, inners = systems.setdefault(id(system), (system, [], []))
        outer.append(path)
        inners.append(inner)
    found: dict[str, bytes] = {}
    for system, outer, inners in systems.values():
        for at in range(0, len(outer), _AT_ONCE):
            some, names = outer[at : at + _AT_ONCE], inners[at : at + _AT_ONCE]
            found.update(retried(some[0], None, partial(_sketched, system, some, names)))
    return found


def _sketched(system: Any, paths: list[str], inners: list[str]) -> dict[str, bytes]:
    sizes = list(map(int, system.sizes(inners)))
    read = partial(system.cat_ranges, inners, on_error="raise")
    firsts = read([0] * len(sizes), [min(s, _EDGE) for s in sizes])
    lasts = read([max(0, s - _EDGE) for s in sizes], sizes)
    return dict(zip(paths, map(_sketch, sizes, firsts, lasts), strict=True))


def _sketch(size: int, first: bytes, last: bytes) -> bytes:
    digest = hashlib.blake2b(size.to_bytes(8, "little"), digest_size=16)
    digest.update(first)
    digest.update(last)
    return digest.digest()


_PRIME: Final = 2**61 - 1
_GROUPS: Final = 32
_NAMED: Final = 3  # the most files that an error names
_FIX: Final = (
    "restore the original files, or start over; to resume with the current files, remove 'files' from the "
    "state."
)


@final
@dataclass(frozen=True)
class FileSet:
    """The files that a plan, or a part of it, reads.

    Positions hold this object; the files are read, once, only when a position is turned into a state.

    Attributes:
        paths: The paths of the files.
        names: The same paths, relative to the common folder of each reader's files.
    """

    paths: tuple[str, ...]
    names: tuple[str, ...]

    @cached_property
    def digest(self) -> str | None:
        """A digest of the files; None if a remote filesystem fails."""
        return self._taken()

    def _taken(self) -> str | None:
        found = sketches(self.paths)
        if found is None:
            return None
        sums = [0] * (2 * _GROUPS)
        for number, (name, sketch) in enumerate(zip(self.names, found, strict=True), 1):
            group, value = 2 * (number % _GROUPS), _value(name, sketch)
            sums[group] = (sums[group] + value) % _PRIME
            sums[group + 1] = (sums[group + 1] + number * value) % _PRIME
        packed = b"".join(value.to_bytes(8, "little") for value in self._stored(sums))
        return f"{len(self.paths)}:{base64.b64encode(packed).decode().rstrip('=')}"

    def _stored(self, sums: list[int]) -> list[int]:
        """Return the sums to store: with few files, each is alone in its group and its first sum is enough."""
        count = len(self.paths)
        return sums if count > _GROUPS else [sums[2 * (n % _GROUPS)] for n in range(1, count + 1)]

    def check(self, digest: Any) -> None:
        """Raise unless the files match a digest.

        Raises:
            DataLossError: A file has changed; the error names it.
        """
        now = None if digest is None or isinstance(digest, FileSet) else self._taken()
        if now is None or now == digest:
            return
        count, then = _read(digest)
        if count != len(self.paths):
            raise DataLossError(
                f"The state was taken from {count} files, but the dataset now reads {len(self.paths)}.",
                fix=_FIX,
            )
        sums = _read(now)[1]
        if sums == then:  # another text of the same sums
            return
        changed, groups = self._changed(then, sums)
        raise self._error(changed, groups).in_file(self.paths[min([*changed, *groups[0]])])

    def _changed(self, then: list[int], now: list[int]) -> tuple[list[int], list[list[int]]]:
        """Return the files that have changed, and the groups in which several files have."""
        count = len(self.paths)
        if count <= _GROUPS:
            return [n for n in range(count) if then[n] != now[n]], [[]]
        changed: list[int] = []
        groups: list[list[int]] = []
        for group in range(_GROUPS):
            d, dn = (now[2 * group + k] - then[2 * group + k] for k in (0, 1))
            number = dn * pow(d, -1, _PRIME) % _PRIME if d % _PRIME else 0
            if 0 < number <= count and number % _GROUPS == group:
                changed.append(number - 1)
            elif d or dn:
                groups.append([n for n in range(count) if (n + 1) % _GROUPS == group])
        return sorted(changed), groups or [[]]

    def _error(self, changed: list[int], groups: list[list[int]]) -> DataLossError:
        if changed:
            named = [self.paths[number] for number in changed[:_NAMED]]
            more = len(changed) - len(named)
            what = ", ".join(named) + (f" and {more} more" if more else "")
        else:
            named = [self.paths[number] for number in groups[0][:_NAMED]]
            what = f"Several of {len(groups[0])} files, starting with {', '.join(named)}"
        some = (
            f", and several more of {sum(map(len, groups))} files" if changed and groups[0] else ""
        )
        return DataLossError(
            f"{what}{some}: changed since the state was taken (the name, the length, or the first or last "
            "4 KB differ).",
            fix=_FIX,
        )


@final
class StateFiles:
    """All files that a plan reads: those below each cache and snapshot, and the rest."""

    def __init__(self, plan: Node) -> None:
        found: dict[int, tuple[Node | None, dict[str, str]]] = {}
        for keeper, names in _named_in(plan, None, set()):
            found.setdefault(id(keeper), (keeper, {}))[1].update(names)
        self._sets = [
            (keeper, FileSet(tuple(names), tuple(names.values())))
            for keeper, names in found.values()
        ]

    def file_sets(self) -> list[FileSet]:
        """Return the file sets that a position holds."""
        return [files for _, files in self._sets]

    def check(self, digests: Any) -> None:
        """Raise if a file has changed since a state was taken, unless a complete cache or snapshot replaces it."""
        for (keeper, files), digest in zip(self._sets, digests or (), strict=False):
            if keeper is None or not is_complete(keeper):
                files.check(digest)


def files_of(plan: Node) -> FileSet | None:
    """Return all files that a plan reads, including those below complete caches; None if there are none."""
    names = {path: name for _, part in _named_in(plan, None, set()) for path, name in part.items()}
    return FileSet(tuple(names), tuple(names.values())) if names else None


def with_digests(state: Any) -> Any:
    """Replace the file sets of a position by their digests, to make it JSON-compatible."""
    if state is None or isinstance(state, (int, str)):
        return state
    if isinstance(state, FileSet):
        return state.digest
    if isinstance(state, dict):
        return {key: with_digests(part) for key, part in cast("dict[str, Any]", state).items()}
    if isinstance(state, (list, tuple)):
        return [with_digests(part) for part in cast("Sequence[Any]", state)]
    return state


def _named_in(
    node: Node, keeper: Node | None, seen: set[tuple[int, int]]
) -> Iterator[tuple[Node | None, dict[str, str]]]:
    """Yield for each reader in a plan the cache or snapshot above it, if any, and the names of its files."""
    if (id(node), id(keeper)) in seen:
        return
    seen.add((id(node), id(keeper)))
    if isinstance(node, Files):
        paths = dict.fromkeys(file.path for file in node.files if not file.checks_itself)
        if paths:
            yield keeper, dict(zip(paths, _relative(list(paths)), strict=True))
    inside = node if node.facts.keeps_passes else keeper
    for child in node.children:
        yield from _named_in(child, inside, seen)


def _relative(paths: list[str]) -> list[str]:
    """Return paths without their common folders."""
    parts = [_parts(path) for path in paths]
    folders = [part[:-1] for part in parts]
    pairs = zip(min(folders), max(folders), strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return ["/".join(part[common:]) for part in parts]


def _parts(path: str) -> list[str]:
    whole = path if is_remote(path) else os.path.abspath(local(path)).replace(os.sep, "/")
    return whole.split("/")


def _value(name: str, sketch: bytes) -> int:
    data = name.encode(errors="surrogateescape") + b"\0" + sketch
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") % _PRIME


def _read(digest: Any) -> tuple[int, list[int]]:
    """Return the number of files and the sums that a digest holds."""
    try:
        count, _, text = digest.partition(":")
        packed = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
        sums = [int.from_bytes(packed[at : at + 8], "little") for at in range(0, len(packed), 8)]
        if len(sums) != (int(count) if int(count) <= _GROUPS else 2 * _GROUPS):
            raise ValueError
        return int(count), sums
    except (AttributeError, ValueError, binascii.Error):
        raise InvalidArgumentError(
            f"The state must hold a digest of its files, but has {digest!r}.",
            fix="pass what get_state() returned.",
        ) from None
