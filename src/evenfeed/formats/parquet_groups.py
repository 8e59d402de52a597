"""Which row groups of Parquet files a dataset reads, and what is wanted of them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.arrow_columns import arrow
from evenfeed.formats.byte_files import written
from evenfeed.formats.parquet_files import (
    OpenedParquet,
    RowGroup,
    opened_parquet,
    reading_parquet,
)
from evenfeed.formats.table_columns import Choice
from evenfeed.formats.table_parts import RowFilter, Wanted


def row_groups(
    paths: Sequence[str], columns: Any, filter_: Any, fill_null: Any
) -> tuple[Any, tuple[RowGroup, ...]]:
    """Return the spec of the rows of files, and their row groups, those aside that a filter rules out."""
    choice = Choice(columns, fill_null, _row_filter(filter_))
    groups: list[RowGroup] = []
    for path in paths:
        with reading_parquet(path, "the table at its end"):
            opened = opened_parquet(path, written(path))
            schema = opened.fragment.physical_schema
            wanted = choice.of(path, schema)
        groups += _groups(path, opened, schema, wanted)
    return choice.specs, tuple(groups)


def _groups(path: str, opened: OpenedParquet, schema: Any, wanted: Wanted) -> list[RowGroup]:
    """Return the row groups of a file that may have wanted rows, by what it says of each."""
    groups = opened.groups
    firsts = [0, *accumulate(group.rows for group in groups)]
    return [
        RowGroup(path, number, firsts[number], groups[number].rows, groups[number].span, wanted)
        for number in _possible(path, opened, schema, wanted)
        if groups[number].rows
    ]


def _possible(path: str, opened: OpenedParquet, schema: Any, wanted: Wanted) -> Sequence[int]:
    if wanted.filter is None:
        return range(len(opened.groups))
    try:
        left = opened.fragment.split_by_row_group(filter=wanted.filter.expression, schema=schema)
    except arrow().ArrowException as error:
        raise InvalidArgumentError(
            f"The filter {wanted.filter.text} does not fit {path}: {str(error).splitlines()[0]}",
            fix=f"its columns are {schema.names}.",
        ) from error
    return [part.row_groups[0].id for part in left]


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
