"""Which row groups of Parquet files a dataset reads, and what is wanted of them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.arrow_columns import arrow
from evenfeed.formats.byte_files import written
from evenfeed.formats.parquet_files import RowGroup, fragment_of, reading_parquet
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
            fragment = fragment_of(path, written(path))
            schema = fragment.physical_schema
        groups += _groups(path, fragment, schema, choice.of(path, schema))
    return choice.specs, tuple(groups)


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
