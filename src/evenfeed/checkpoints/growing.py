"""Lists and dicts that report new entries, so that a pending restore reaches objects that are appended later."""

from collections.abc import Iterable
from typing import Any, Self, final

from evenfeed.replicas.variables.attaching import Attached


def await_entries(container: Any, then: Attached) -> Any:
    """Return a list or dict with the same entries that calls `then` for each new one."""
    kind: Any = GrowingList if isinstance(container, list) else GrowingDict
    return kind(container, then)


@final
class GrowingList(list[Any]):
    """A list that reports new entries by their place."""

    def __init__(self, entries: Iterable[Any], then: Attached) -> None:
        super().__init__(entries)
        self._then = then

    def append(self, entry: Any) -> None:
        """Add an entry, and report it."""
        super().append(entry)
        self._then(self, str(len(self) - 1), entry)

    def extend(self, entries: Iterable[Any]) -> None:
        """Add entries, and report each."""
        for entry in entries:
            self.append(entry)

    def __iadd__(self, entries: Iterable[Any], /) -> Self:
        self.extend(entries)
        return self

    def __setitem__(self, place: Any, entry: Any) -> None:
        super().__setitem__(place, entry)
        if isinstance(place, int):
            self._then(self, str(place % len(self)), entry)

    def __reduce__(self) -> Any:
        return list, (list(self),)


@final
class GrowingDict(dict[Any, Any]):
    """A dict that reports new entries by their key."""

    def __init__(self, entries: dict[Any, Any], then: Attached) -> None:
        super().__init__(entries)
        self._then = then

    def __setitem__(self, key: Any, entry: Any) -> None:
        super().__setitem__(key, entry)
        self._then(self, key, entry)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Add entries, and report each."""
        for key, entry in dict(*args, **kwargs).items():
            self[key] = entry

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """Return the entry; add and report it if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
