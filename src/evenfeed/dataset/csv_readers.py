"""CSV datasets: `CsvDataset` and `make_csv_dataset`, with inference of column names and dtypes."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import compression_type_of, yes_or_no
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset
from evenfeed.dataset.file_readers import FileDataset, at_least, reading
from evenfeed.formats.bytes.filesystems import as_text, matching_paths
from evenfeed.formats.csv_fields import (
    CsvColumn,
    column_of,
    columns_of,
    delimiter_of,
    number,
    plain_text,
)
from evenfeed.formats.csv_files import CsvFile, CsvLayout, CsvReader
from evenfeed.plan.buffering import AUTOTUNE

# From the narrowest to the widest. A column gets the narrowest dtype that holds all of its values.
_ORDER: Final = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)


def header_of(files: list[CsvFile], encoding: str) -> list[str]:
    """Return the column names in the headers, which must be the same in all files."""
    names = _first(files[0], encoding)
    for file in files[1:]:
        others = _first(file, encoding)
        if others != names:
            raise ValueError(
                described(
                    f"{file.path} has the header {others}, but {files[0].path} has {names}.",
                    fix="read files with the same columns, or pass column_names.",
                )
            )
    return names


def _first(file: CsvFile, encoding: str) -> list[str]:
    record = next(_records(file), None)
    if record is None:
        raise ValueError(
            described(
                f"{file.path} is empty, but must start with a header.", fix="leave the file out."
            )
        )
    try:
        return [field.decode(encoding) for field in record]
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"The header of {file.path} is not valid {encoding}: {error}.",
            fix="pass encoding or column_names.",
        ) from None


def _records(file: CsvFile) -> Iterator[Sequence[bytes]]:
    """Yield all records, including the header."""
    reader = CsvReader(file)
    try:
        yield from reader.records()
    finally:
        reader.close()


def guessed_columns(
    files: list[CsvFile], names: list[str], select: tuple[int, ...], most: int | None
) -> list[CsvColumn]:
    """Infer the dtypes of the selected columns from the first `most` records."""
    places = select or range(len(names))
    kinds: dict[int, int] = {}
    for record in islice(_rows(files, len(names)), most):
        for place in places:
            field = record[place]
            if field not in (b"", files[0].layout.na_value):
                kinds[place] = _kind(field, kinds.get(place, 0))
    return [_column(names[place], _ORDER[kinds.get(place, -1)]) for place in places]


def _rows(files: list[CsvFile], width: int) -> Iterator[Sequence[bytes]]:
    for file in files:
        for place, record in enumerate(_records(file)):
            if place == 0 and file.layout.header:
                continue
            if len(record) != width:
                raise ValueError(
                    described(
                        f"Record {place} of {file.path} has {len(record)} fields, "
                        f"but there are {width} columns.",
                        fix="correct the file, or pass column_defaults.",
                    )
                )
            yield record


def _kind(field: bytes, least: int) -> int:
    """Return the narrowest dtype that holds a field, as an index into _ORDER of at least `least`."""
    return next(kind for kind in range(least, len(_ORDER)) if _holds(_ORDER[kind], field))


def _holds(dtype: DType, field: bytes) -> bool:
    if dtype == dtypes.string:
        return True
    try:
        return bool(np.all(number(field, dtype) < np.inf))  # "nan" and "inf" count as strings.
    except (ValueError, OverflowError):
        return False


def _column(name: str, dtype: DType) -> CsvColumn:
    return CsvColumn(f"column {name!r}", dtype, b"" if dtype == dtypes.string else b"0")


_NAMES: Final = "check the names, and that the files start with a header."


class CsvDataset(FileDataset):
    r"""A dataset of the records of CSV files, as tuples of numbers and strings.

    An invalid record raises `InvalidArgumentError` with the file and the line; reading can continue with
    the next record.

    Args:
        filenames: A path, or several.
        record_defaults: For each column, its dtype if every record must have a value, or a list with the
            value for empty fields.
        compression_type: "GZIP" or "ZLIB"; "" or None for uncompressed files.
        buffer_size: Accepted for compatibility; ignored.
        header: Skip the first record of each file.
        field_delim: The character that separates fields.
        use_quote_delim: Allow fields in double quotes.
        na_value: A string that is treated like an empty field.
        select_cols: The indices of the fields to read, in increasing order; all by default.
        exclude_cols: The indices of the fields to skip.

    Examples:
        >>> import tempfile, pathlib
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "people.csv"
        >>> path.write_bytes(b'name,age\n"Ada, Countess",36\nAlan,\n')
        34
        >>> people = tf.data.experimental.CsvDataset(path, [tf.string, [-1]], header=True)
        >>> [(name.item(), int(age)) for name, age in people]
        [(b'Ada, Countess', 36), (b'Alan', -1)]
        >>> folder.cleanup()
    """

    __slots__ = ()

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        if buffer_size is not None:
            at_least(buffer_size, 1, "buffer_size")
        columns, select, exclude = columns_of(record_defaults, select_cols, exclude_cols)
        layout = CsvLayout(
            columns,
            tuple(range(len(columns))),
            select,
            exclude,
            delimiter_of(field_delim),
            yes_or_no(use_quote_delim, "use_quote_delim"),
            plain_text(na_value),
            yes_or_no(header, "header"),
        )
        spec = tuple(TensorSpec([], column.dtype) for column in columns)
        kind = partial(CsvFile, compression=compression_type_of(compression_type), layout=layout)
        super().__init__(reading(filenames, kind, None, spec))


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[str | int] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    r"""Create a dataset of batches of the records of CSV files, as dicts of columns.

    Args:
        file_pattern: A pattern with `*`, `?` and `[...]`, or a list of them.
        batch_size: The number of records in a batch.
        column_names: The names of all columns; read from the headers of the files by default.
        column_defaults: As for `CsvDataset`, for each selected column. By default dtypes are inferred
            from the first records, and empty fields become 0 or "".
        label_name: The column of labels; elements are then pairs of features and labels.
        select_columns: The names or indices of the columns to read.
        field_delim: The character that separates fields.
        use_quote_delim: Allow fields in double quotes.
        na_value: A string that is treated like an empty field.
        header: Skip the first line of each file.
        num_epochs: The number of passes over the files; infinite by default.
        shuffle: Shuffle files and records.
        shuffle_buffer_size: The size of the shuffle buffer, in records.
        shuffle_seed: Combined with the global seed; makes the order the same in every run.
        prefetch_buffer_size: The number of batches to prefetch.
        num_parallel_reads: The number of files to interleave.
        sloppy: Accepted for compatibility; the order never depends on timing.
        num_rows_for_inference: The number of records to infer dtypes from; None for all.
        compression_type: "GZIP" or "ZLIB"; "" or None for uncompressed files.
        ignore_errors: Skip invalid records.
        encoding: The encoding of the header.

    Examples:
        >>> import tempfile, pathlib
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> (pathlib.Path(folder.name) / "a.csv").write_bytes(b"x,y\n1,0.5\n2,1.5\n3,2.5\n")
        22
        >>> batches = tf.data.experimental.make_csv_dataset(
        ...     folder.name + "/*.csv", batch_size=2, label_name="y", num_epochs=1, shuffle=False
        ... )
        >>> [(features["x"].tolist(), labels.tolist()) for features, labels in batches]
        [([1, 2], [0.5, 1.5]), ([3], [2.5])]
        >>> folder.cleanup()
    """
    del sloppy
    names, packed = _matching(file_pattern), compression_type_of(compression_type)
    form = CsvLayout(
        (),
        (),
        delimiter=delimiter_of(field_delim),
        quoted=yes_or_no(use_quote_delim, "use_quote_delim"),
        na_value=plain_text(na_value),
        header=yes_or_no(header, "header"),
    )
    files = [CsvFile(name, packed, form) for name in names]
    known = _names(files, column_names, encoding)
    select = () if select_columns is None else _selected(select_columns, known)
    chosen = [known[place] for place in select] or known
    structure = _structure(chosen, label_name)
    if column_defaults is None:
        columns = guessed_columns(files, known, select, num_rows_for_inference)
    else:
        columns = _given(column_defaults, chosen)
    kept: tuple[int, ...] = tuple(flatten(structure, DATA))
    wanted = tuple(columns[place] for place in kept)
    kind = partial(
        CsvFile, compression=packed, layout=replace(form, columns=wanted, kept=kept, select=select)
    )
    spec = pack(structure, [TensorSpec([], column.dtype) for column in wanted], DATA)
    paths = Dataset.from_tensor_slices(as_text(names))
    if yes_or_no(shuffle, "shuffle"):
        paths = paths.shuffle(len(names), shuffle_seed)
    dataset = Dataset(reading(paths if shuffle else names, kind, num_parallel_reads, spec))
    if yes_or_no(ignore_errors, "ignore_errors"):
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    dataset = dataset.repeat(num_epochs).batch(batch_size, drop_remainder=num_epochs is None)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _matching(file_pattern: Any) -> list[str]:
    names = matching_paths(file_pattern, "file_pattern")
    if not names:
        raise ValueError(
            described(
                f"No files match file_pattern {shortened(file_pattern)}.",
                fix="check the directory and the pattern.",
            )
        )
    return names


def _names(files: list[CsvFile], given: Sequence[str] | None, encoding: str) -> list[str]:
    """Return the names of all columns, as passed or from the headers."""
    if given is None and not files[0].layout.header:
        raise ValueError(
            described(
                "The columns have no names: column_names is None, and header is False.",
                fix="pass column_names, or header=True if the files start with a header.",
            )
        )
    names = header_of(files, encoding) if given is None else list(given)
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ValueError(
            described(
                f"Column names must be unique, but two columns are named {duplicates[0]!r}.",
                fix="pass unique column_names, and header=True if there is a header.",
            )
        )
    return names


def _selected(columns: Sequence[str | int], names: list[str]) -> tuple[int, ...]:
    """Return the indices of the selected columns, in increasing order."""
    indices = [_index(column, names) for column in columns]
    if len(set(indices)) < len(indices):
        raise ValueError(
            described(
                f"select_columns contains a column twice: {list(columns)}.",
                fix="name each column once.",
            )
        )
    return tuple(sorted(indices))


def _index(column: str | int, names: list[str]) -> int:
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    if column in names:
        return names.index(str(column))
    raise ValueError(
        described(f"select_columns contains {column!r}, but the columns are {names}.", fix=_NAMES)
    )


def _structure(names: list[str], label_name: str | None) -> Any:
    """Return the structure of an element, with column indices as leaves."""
    features = OrderedDict(zip(names, range(len(names)), strict=True))
    if label_name is None:
        return features
    if label_name not in features:
        raise ValueError(
            described(f"label_name is {label_name!r}, but the columns are {names}.", fix=_NAMES)
        )
    label = features.pop(label_name)
    return features, label


def _given(defaults: Sequence[Any], names: list[str]) -> list[CsvColumn]:
    if len(defaults) != len(names):
        raise ValueError(
            described(
                f"column_defaults has {len(defaults)} values, but there are {len(names)} columns: {names}.",
                fix="pass one value for each selected column.",
            )
        )
    return [column_of(f"column {name!r}", one) for name, one in zip(names, defaults, strict=True)]
