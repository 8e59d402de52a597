"""Whether columns of a Parquet file that are not read have nulls, whose errors would go unnoticed."""

from collections.abc import Callable, Sequence
from typing import Any

from evenfeed.core.partly_read import Unread


def check_no_nulls(metadata: Callable[[], Any], group: int, columns: Sequence[str]) -> None:
    """Raise Unread unless the statistics of a row group say that columns have no nulls.

    Args:
        metadata: Returns pyarrow's metadata of the file.
        group: The number of the row group.
        columns: The names of the columns.
    """
    if not columns:
        return
    # The path of a column inside another begins with the name of that one and a dot.
    if any("." in name for name in columns):
        raise Unread
    found = metadata().row_group(group)
    chunks = map(found.column, range(found.num_columns))
    if any(_may_have_nulls(one) for one in chunks if one.path_in_schema.split(".")[0] in columns):
        raise Unread


def _may_have_nulls(chunk: Any) -> bool:
    found = chunk.statistics
    return found is None or not found.has_null_count or found.null_count > 0
