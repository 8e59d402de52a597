"""What is in files: rows, features, a few values, and the code that reads them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from evenfeed.command import proposals
from evenfeed.command.file_kinds import Kind, Unknown, bytes_in
from evenfeed.command.proposed_reading import WITH_SCHEMAS, Choices, code_of, column_names, opened
from evenfeed.command.value_texts import Values, picture_in, summary_of, without_place
from evenfeed.core.dtypes import name_of
from evenfeed.core.errors import EvenfeedError, InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.core.structure import paths as paths_in
from evenfeed.data import Dataset
from evenfeed.formats.json_lines import guessed_fields

SAMPLE: Final = 100  # rows that are looked at
_TABLES: Final = ("arrow", "csv", "json", "parquet")
_RECORDS: Final = ("tfrecord", "array_record")
_KEY: Final = re.compile(r"^\['([^']*)'\]$")
_NULL: Final = re.compile(r"column '([^']+)' is null")
_REFUSED: Final = re.compile(r"Column '([^']+)' has type (.+), which no tensor can hold")
_ERRORS: Final = (EvenfeedError, OSError, ImportError, ValueError)
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
    notes: Sequence[str]
    problem: str | None  # why later rows cannot be read


def reports_of(kind: Kind, paths: list[str], shown: int) -> tuple[list[Report], list[Unknown]]:
    """Look at files of one kind. Files whose rows differ are reported apart.

    Args:
        kind: What they are.
        paths: The files.
        shown: How many rows a report has.

    Returns:
        The reports, and what could not be read.
    """
    try:
        if len(paths) > 1 and kind.format in WITH_SCHEMAS and _have_other_columns(kind, paths):
            return _apart(
                kind, paths, shown
            )  # together, they would be read with the columns of the first
        report = _looked_at(kind, paths, shown)
    except _ERRORS as error:
        if len(paths) == 1:
            return _as_text(kind, paths, shown), [Unknown(paths[0], without_place(error))]
        return _apart(kind, paths, shown)
    if report.problem is not None and len(paths) > 1 and kind.format in _TABLES:
        return _apart(kind, paths, shown)  # a later file may have other columns
    if report.problem is None:
        return [report], []
    named = next((path for path in paths if path in str(report.problem)), paths[0])
    return [report], [Unknown(named, report.problem)]


def _have_other_columns(kind: Kind, paths: Sequence[str]) -> bool:
    first, *others = (set(column_names(kind.format, path)) for path in paths)
    return any(names != first for names in others)


def _as_text(kind: Kind, paths: list[str], shown: int) -> list[Report]:
    """Return the lines of a table that cannot be read as one."""
    if kind.format not in ("csv", "json"):
        return []
    return reports_of(Kind("text", kind.compression), paths, shown)[0]


def _apart(kind: Kind, paths: list[str], shown: int) -> tuple[list[Report], list[Unknown]]:
    """Look at each file, and then at those together that have the same features."""
    alike: dict[Any, list[Report]] = {}
    unknown: list[Unknown] = []
    for path in paths:
        found, failed = reports_of(kind, [path], shown)
        unknown += failed
        for report in found:
            features = tuple((f.name, f.dtype, f.shape) for f in report.features)
            alike.setdefault((report.kind, report.holds, features), []).append(report)
    reports: list[Report] = []
    for (group, *_), alone in alike.items():
        try:
            together = [path for report in alone for path in report.paths]
            reports += [_looked_at(group, together, shown)] if len(alone) > 1 else alone
        except _ERRORS:
            reports += alone
    return reports, unknown


def _looked_at(kind: Kind, paths: list[str], shown: int) -> Report:
    choices = Choices()
    size = sum(map(bytes_in, paths))
    dataset, rows, problem = _sampled(kind, paths, choices, max(SAMPLE, shown))
    code, holds = code_of(kind, paths, choices), "a row"
    if kind.format in _RECORDS and (found := proposals.proposed([row[""] for row in rows])):
        holds, features, rows = found.message, found.features, found.rows
        code = f"{found.code}\n{code}.map({found.parser})"
        described = [Feature(f.name, f.dtype, f.shape, summary_of(f.values)) for f in features]
    else:
        described = list(_features(dataset, rows))
    count = None
    if problem is None:
        try:
            count = _counted(dataset, size)
        except _ERRORS as error:
            problem = without_place(error)
    if kind.format == "picture" and problem is None:
        problem = _damaged_pictures(paths, rows)
    notes = [*_notes(kind, choices), *_notes_on_texts(kind, paths, described)]
    shown_rows = rows[:shown]
    return Report(kind, paths, size, count, holds, described, shown_rows, code, notes, problem)


def _notes(kind: Kind, choices: Choices) -> Iterator[str]:
    if kind.columns:
        yield "There is no header: the first line looks like the others."
    for name, why in choices.left_out.items():
        yield f"Left out: {name} ({why})."


def _notes_on_texts(kind: Kind, paths: Sequence[str], features: Sequence[Feature]) -> Iterator[str]:
    """Say what looks like something else: JSON that is not JSON Lines, and the mark of some editors before a header."""
    documents = [path for path in paths if re.search(r"\.json(\.gz)?$", path.lower())]
    if kind.format == "text" and documents:
        yield (
            f"{documents[0]} is not JSON Lines, which has an object on each line, "
            "such as `jq -c '.[]'` makes of a list of objects."
        )
    if kind.format == "csv" and any(f.name.startswith(r"\ufeff") for f in features):
        yield "The name of the first column begins with a byte order mark. Save the file as UTF-8 without BOM."


def _damaged_pictures(paths: Sequence[str], rows: Sequence[dict[str, Any]]) -> str | None:
    """Return which pictures cannot be opened."""
    damaged = [path for path, row in zip(paths, rows, strict=False) if not picture_in(row[""])]
    return f"{', '.join(damaged)}: cannot be opened as a picture." if damaged else None


def _sampled(
    kind: Kind, paths: list[str], choices: Choices, most: int
) -> tuple[Dataset, list[dict[str, Any]], str | None]:
    """Return the dataset, its first rows, and why there are not more. Leaves out columns that cannot be read."""
    while True:
        rows: list[dict[str, Any]] = []
        dataset = None
        try:
            dataset = opened(kind, paths, choices)
            for row in islice(dataset.as_numpy_iterator(), most):
                rows.append(flat(row))  # noqa: PERF401 - an error leaves the rows before it
            return dataset, rows, None
        except InvalidArgumentError as error:
            if not _adapted(kind, paths, choices, dataset, str(error)):
                if dataset is None or not rows:
                    raise
                return dataset, rows, without_place(error)
        except _ERRORS as error:
            if dataset is None or not rows:
                raise
            return dataset, rows, without_place(error)


def _adapted(
    kind: Kind, paths: list[str], choices: Choices, dataset: Dataset | None, error: str
) -> bool:
    """Change how to read the files, so that this error goes away. Returns False if nothing helps."""
    if kind.format == "json" and choices.signature is None and dataset is None:
        specs, choices.left_out = guessed_fields(paths[0], kind.compression)
        choices.signature = specs
        return bool(specs)
    refused, null = _REFUSED.search(error), _NULL.search(error)
    if refused:
        return _leave_out(kind, paths, choices, refused[1], refused[2])
    if not null or dataset is None:
        return False
    spec: Any = flat(dataset.element_spec).get(null[1])
    if spec is None or spec.shape.rank != 0 or null[1] in choices.fill_null:
        return _leave_out(kind, paths, choices, null[1], "it has nulls")
    number = spec.dtype.kind
    filling = 0 if number in "iu" else 0.0 if number == "f" else False if number == "b" else ""
    choices.fill_null[null[1]] = filling
    return True


def _leave_out(kind: Kind, paths: list[str], choices: Choices, name: str, why: str) -> bool:
    """Leave out a column; that of a part of it, if the name is that of a part."""
    names = choices.columns if choices.columns is not None else column_names(kind.format, paths[0])
    column = name if name in names else name.split(".", maxsplit=1)[0]
    if column not in names:
        return False
    choices.columns = [other for other in names if other != column]
    choices.left_out[column] = why
    choices.fill_null.pop(column, None)
    return True


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
