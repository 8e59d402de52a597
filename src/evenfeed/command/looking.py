"""What is in files: rows, features, a few values, and the code that reads them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from evenfeed.command import proposals
from evenfeed.command.file_kinds import Kind, bytes_in, code_of, opened
from evenfeed.command.value_texts import Values, summary_of
from evenfeed.core.dtypes import name_of
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.core.structure import paths as paths_in
from evenfeed.data import Dataset

SAMPLE: Final = 100  # rows that are looked at
_RECORDS: Final = ("tfrecord", "array_record")
_KEY: Final = re.compile(r"^\['([^']*)'\]$")
_NULL: Final = re.compile(r"column '([^']+)' is null")
_MOST_COUNTED: Final = 2**30  # bytes that are read only to count rows


@dataclass(frozen=True)
class Feature:
    """A feature of the rows: its name, type and shape, and what its values look like."""

    name: str
    dtype: str
    shape: str
    values: str


@dataclass(frozen=True)
class Report:
    """What was found in files of one kind."""

    kind: Kind
    paths: Sequence[str]
    bytes: int
    rows: int | None  # None: not counted
    holds: str  # what a row is
    features: Sequence[Feature]
    sample: Sequence[dict[str, Any]]
    code: str


def looked_at(kind: Kind, paths: list[str], shown: int) -> Report:
    """Look at files of one kind.

    Args:
        kind: What they are.
        paths: The files.
        shown: How many rows the report has.
    """
    filled: dict[str, Any] = {}
    size = sum(map(bytes_in, paths))
    while True:
        dataset = opened(kind, paths, filled)
        try:
            rows = [flat(row) for row in islice(dataset.as_numpy_iterator(), max(SAMPLE, shown))]
            break
        except InvalidArgumentError as error:
            _fill(filled, dataset, str(error), error)
    code, holds = code_of(kind, paths, filled), "a row"
    if kind.format in _RECORDS and (found := proposals.proposed([row[""] for row in rows])):
        holds, features, rows = found.message, found.features, found.rows
        code = f"{found.code}\n{code}.map({found.parser})"
        described = [Feature(f.name, f.dtype, f.shape, summary_of(f.values)) for f in features]
    else:
        described = list(_features(dataset, rows))
    return Report(kind, paths, size, _counted(dataset, size), holds, described, rows[:shown], code)


def _fill(filled: dict[str, Any], dataset: Dataset, text: str, error: Exception) -> None:
    """Add a value for the column whose null is the error."""
    found = _NULL.search(text)
    spec: Any = dataset.element_spec[found[1]] if found else None
    if found is None or found[1] in filled or spec.shape.rank != 0:
        raise error
    kind = spec.dtype.kind
    filled[found[1]] = 0 if kind in "iu" else 0.0 if kind == "f" else False if kind == "b" else ""


def flat(row: Any) -> dict[str, Any]:
    """Return the parts of a row by their path: the name of a feature, or how to index the row."""
    names = [_KEY.sub(r"\1", path) for path in paths_in(row, DATA)]
    return dict(zip(names, flatten(row, DATA), strict=True))


def _features(dataset: Dataset, rows: Sequence[dict[str, Any]]) -> Iterator[Feature]:
    for name, spec in flat(dataset.element_spec).items():
        values = Values(name, [row[name] for row in rows if name in row])
        plain = isinstance(spec, TensorSpec)
        yield Feature(
            name,
            name_of(spec.dtype) if plain else type(spec).__name__,
            str(spec.shape),
            summary_of(values) if plain else "",
        )


def _counted(dataset: Dataset, size: int) -> int | None:
    known = int(dataset.cardinality())
    if known >= 0:
        return known
    if size > _MOST_COUNTED:
        return None
    return sum(len(_first_part(batch)) for batch in dataset.ragged_batch(4096).as_numpy_iterator())


def _first_part(batch: Any) -> Any:
    parts: Iterable[Any] = flat(batch).values()
    return next(iter(parts))
