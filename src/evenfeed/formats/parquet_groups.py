"""Which row groups of Parquet files a dataset reads, and what is wanted of them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, cast

from evenfeed.core.conversion import shortened, to_array
from evenfeed.core.doors import difflib
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TensorSpec
from evenfeed.formats.arrow_columns import arrow, spec_of
from evenfeed.formats.byte_files import written
from evenfeed.formats.parquet_files import (
    RowFilter,
    RowGroup,
    Wanted,
    fragment_of,
    reading_parquet,
)


def row_groups(
    paths: Sequence[str], columns: Any, filter_: Any, fill_null: Any
) -> tuple[Any, tuple[RowGroup, ...]]:
    """Return the spec of the rows of files, and their row groups, those aside that a filter rules out."""
    first: Any = None
    wanted, specs = Wanted(()), dict[str, Any]()
    groups: list[RowGroup] = []
    for path in paths:
        with reading_parquet(path, "the table at its end"):
            fragment = fragment_of(path, written(path))
            schema = fragment.physical_schema
        if first is None:
            first = schema
            names = _names(columns, path, schema)
            specs = {name: spec_of(schema.field(name).type, name) for name in names}
            wanted = Wanted(tuple(sorted(specs)), _row_filter(filter_), _fills(fill_null))
            _check_fills(wanted, specs, path)
        else:
            _check_alike(path, schema, paths[0], first, wanted)
        groups += _groups(path, fragment, schema, wanted)
    return specs, tuple(groups)


def _groups(path: str, fragment: Any, schema: Any, wanted: Wanted) -> list[RowGroup]:
    """Return the row groups of a file that may have wanted rows, by what it says of each."""
    about = fragment.metadata
    tables = [about.row_group(number) for number in range(about.num_row_groups)]
    counts = [table.num_rows for table in tables]
    firsts = [0, *accumulate(counts)]
    return [
        RowGroup(path, number, firsts[number], counts[number], _span(tables[number]), wanted)
        for number in _possible(path, fragment, schema, wanted)
        if counts[number]
    ]


def _possible(path: str, fragment: Any, schema: Any, wanted: Wanted) -> list[int]:
    if wanted.filter is None:
        return list(range(fragment.metadata.num_row_groups))
    try:
        left = fragment.split_by_row_group(filter=wanted.filter.expression, schema=schema)
    except arrow().ArrowException as error:
        raise InvalidArgumentError(
            f"The filter {wanted.filter.text} does not fit {path}: {str(error).splitlines()[0]}",
            fix=f"its columns are {schema.names}.",
        ) from error
    return [part.row_groups[0].id for part in left]


def _span(table: Any) -> tuple[int, int]:
    last = table.column(table.num_columns - 1)
    return _begin(table.column(0)), _begin(last) + last.total_compressed_size


def _begin(column: Any) -> int:
    pages = column.dictionary_page_offset
    return column.data_page_offset if pages is None else min(pages, column.data_page_offset)


def _names(columns: Any, path: str, schema: Any) -> list[str]:
    if columns is None:
        return list(schema.names)
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise TypeError(
            described(
                f"columns must be a list of names, but got {shortened(columns)}.",
                fix="pass columns=['name', ...], or None for all.",
            )
        )
    names = list(cast("Sequence[str]", columns))
    for name in names:
        if name not in schema.names:
            raise _no_column(path, name, schema.names)
    return names


def _no_column(path: str, name: Any, names: list[str]) -> InvalidArgumentError:
    near = difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return InvalidArgumentError(
        f"{path} has no column {name!r}.", fix=f"{hint}its columns are {names}."
    )


def _check_alike(path: str, schema: Any, first_path: str, first: Any, wanted: Wanted) -> None:
    for name in wanted.columns:
        if name not in schema.names:
            raise _no_column(path, name, schema.names)
        one, other = first.field(name).type, schema.field(name).type
        if spec_of(one, name) != spec_of(other, name):
            raise InvalidArgumentError(
                f"Column {name!r} is {other} in {path}, but {one} in {first_path}.",
                fix="read files with the same columns.",
            )


def _row_filter(value: Any) -> RowFilter | None:
    if value is None:
        return None
    expressions = arrow("compute").Expression
    if not isinstance(value, expressions):
        try:
            value = arrow("parquet").filters_to_expression(value)
        except (ValueError, TypeError) as error:
            raise InvalidArgumentError(
                f"filter cannot be understood: {shortened(value)} ({error}).",
                fix="pass [('column', '>', 3), ...], or an expression of pyarrow.compute.",
            ) from error
    return RowFilter(str(value), value)


def _fills(value: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(dict(value).items())) if value is not None else ()


def _check_fills(wanted: Wanted, specs: dict[str, Any], path: str) -> None:
    for name, value in wanted.fills:
        spec = _spec_at(specs, name.split("."))
        if not isinstance(spec, TensorSpec):
            raise _no_column(path, name, list(specs))
        try:
            fits = not spec.shape.rank and to_array(value, spec.dtype).ndim == 0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InvalidArgumentError(
                f"fill_null has {value!r} for column {name!r}, which is {spec}.",
                fix="pass a value of the column; nulls in lists cannot be filled.",
            )


def _spec_at(specs: Any, names: list[str]) -> Any:
    for name in names:
        specs = cast("dict[str, Any]", specs).get(name) if isinstance(specs, dict) else None
    return specs
