"""Random plans that read files, of which each is written once; and what stands in them."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from tests.plans.meaning import FAILED, Events, means

from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.dataset import Dataset, plan_of
from evenfeed.dataset.file_readers import TextLineDataset
from evenfeed.plan.files import Files
from evenfeed.plan.node import Node

_folder: Final = tempfile.TemporaryDirectory(prefix="evenfeed-files-")
_MISSING: Final = str(Path(_folder.name) / "missing.txt")
_ROWS: Final[dict[str, list[Any]]] = {_MISSING: [FAILED]}  # of each file, by its path
_LONGEST: Final = 5

_VALUES: Final[list[Any]] = [
    np.arange(2 * _LONGEST).reshape(_LONGEST, 2),
    {"b": np.arange(_LONGEST, dtype=np.float32), "a": np.array([b"x", b"", b"yz", b"0", b"x"])},
]


@cache
def _saved(what: int, rows: int, compression: str | None) -> Files:
    """Return a dataset of some rows that was saved."""
    value = map_structure(lambda column: column[:rows], _VALUES[what], rules=DATA)
    path = str(Path(_folder.name) / f"{what}-{rows}-{compression}")
    slices = Dataset.from_tensor_slices(value)
    slices.save(path, compression=compression)
    plan = plan_of(Dataset.load(path))
    assert isinstance(plan, Files)
    for file in plan.files:
        _ROWS[file.path] = [flatten(element, DATA) for element in slices]
    return plan


def _joined(parts: list[Files], in_turn: bool) -> Node:
    files = tuple(file for part in parts for file in part.files)
    return Files(files, parts[0].spec, in_turn=in_turn)


def _of_pages(what: int) -> st.SearchStrategy[Node]:
    compressions = st.sampled_from([None, "GZIP"])
    one = st.builds(_saved, st.just(what), st.sampled_from([0, 1, 3, _LONGEST]), compressions)
    return st.builds(_joined, st.lists(one, min_size=1, max_size=3), st.booleans())


@cache
def _text(count: int) -> str:
    """Return the path of a file with some lines."""
    path = Path(_folder.name) / f"{count}.txt"
    lines = [b"line %d" % number for number in range(count)]
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    _ROWS[str(path)] = [[np.array(line, object)] for line in lines]
    return str(path)


_paths: Final = st.one_of(st.builds(_text, st.sampled_from([0, 1, 4])), st.just(_MISSING))

FILES: Final = st.one_of(
    _of_pages(0),
    _of_pages(1),
    st.lists(_paths, max_size=3).map(lambda paths: plan_of(TextLineDataset(paths))),
)


@means(Files)
def _read(node: Files) -> Events:
    open_ones = [iter(_ROWS[file.path]) for file in node.files]
    if not node.in_turn:
        for rows in open_ones:
            yield from rows
    while open_ones:
        open_ones = yield from _one_of_each(open_ones)


def _one_of_each(files: list[Iterator[Any]]) -> Any:
    """Yield a row of each file, and return those that have not ended."""
    going_on: list[Iterator[Any]] = []
    for rows in files:
        for row in rows:
            going_on.append(rows)
            yield row
            break
    return going_on
