"""Parsing CSV records from string tensors: `tf.io.decode_csv`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import yes_or_no
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.traced.kernel_stages import Kernel, results_of
from evenfeed.formats.csv_fields import CsvColumn, Cutter, columns_of, delimiter_of, plain_text


def decode_csv(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
    name: str | None = None,
) -> list[Any]:
    """Parse CSV records into a list of tensors, one per column.

    Args:
        records: A string tensor of any shape; each record without its line ending.
        record_defaults: For each column, the value of an empty field; it also sets the dtype. Pass a dtype, or an
            empty list or tensor, if the field is required.
        field_delim: The character between two fields.
        use_quote_delim: Whether fields may be in double quotes.
        na_value: A value that counts as an empty field.
        select_cols: The numbers of the fields to read, in increasing order; all by default.
        name: Accepted for compatibility; ignored.

    Raises:
        InvalidArgumentError: A record has too few or too many fields, or a field is not a valid number.

    Examples:
        >>> import evenfeed as tf
        >>> names, ages = tf.io.decode_csv(["Ada,36", "Alan,"], [tf.string, -1])
        >>> names.tolist(), ages.tolist()
        ([b'Ada', b'Alan'], [36, -1])
        >>> lines = tf.data.Dataset.from_tensor_slices(["1,a", "2,b"])
        >>> [int(x) for x, _ in lines.map(lambda line: tuple(tf.io.decode_csv(line, [0, ""])))]
        [1, 2]
    """
    del name
    # Here a string is always a default, even if it names a dtype.
    defaults = [[one] if isinstance(one, str) else one for one in record_defaults]
    columns, select, _ = columns_of(defaults, select_cols, None)
    kernel = DecodeCsv(
        columns,
        select,
        delimiter_of(field_delim),
        yes_or_no(use_quote_delim, "use_quote_delim"),
        plain_text(na_value),
    )
    found = results_of(kernel, records)
    if found is not None:
        return found
    if isinstance(records, Handle):
        raise TypeError("The text is not a component of the element that a kernel can read.")
    text = to_array(records)
    if text.dtype != dtypes.string:
        raise TypeError(
            described(
                f"records must be strings, but got {shortened(records)}.", fix="pass lines of text."
            )
        )
    return [computed_tensor(column) for column in kernel.of(text)]


@final
@dataclass(frozen=True)
class DecodeCsv(Kernel):
    """Parses a whole column of CSV records."""

    columns: tuple[CsvColumn, ...]
    select: tuple[int, ...]
    delimiter: bytes
    quoted: bool
    na_value: bytes

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        return [TensorSpec(given[0].shape, column.dtype) for column in self.columns]

    def run(self, *columns: Column) -> list[Column]:
        text = columns[0]
        if text is None or isinstance(text, list | RaggedTensor):
            raise TypeError("The elements have different numbers of records.")
        return list(self.of(text))

    def of(self, text: Array | Texts) -> list[Array]:
        """Return the columns of an array of records, each in the shape of that array."""
        records: list[bytes] = text.ravel().tolist()
        cutter = Cutter(self.delimiter, quoted=self.quoted)
        cut, _ = cutter.cut(b"".join(record + b"\n" for record in records), is_last=True)
        if cut.is_open or cut.count != len(records):
            raise self._not_one_record(records)
        starts = [0, *cut.stops.tolist()][: cut.count]
        self._check_counts(records, np.diff(cut.stops, prepend=0).tolist())
        taken = self.select or range(len(self.columns))
        return [
            self._values(column, cutter, [cut.fields[start + place] for start in starts]).reshape(
                text.shape
            )
            for column, place in zip(self.columns, taken, strict=True)
        ]

    def _not_one_record(self, records: list[bytes]) -> InvalidArgumentError:
        """Return the error that names the first text that is not exactly one record."""
        cutter = Cutter(self.delimiter, quoted=self.quoted)

        def is_one(record: bytes) -> bool:
            alone, _ = cutter.cut(record + b"\n", is_last=True)
            return alone.count == 1 and not alone.is_open

        number = next(number for number, record in enumerate(records) if not is_one(record))
        return InvalidArgumentError(
            f"Record {number} is {shortened(records[number])}: a quote is not closed, or there is a line break "
            "outside quotes.",
            fix="pass one record per string without its line ending, as TextLineDataset returns them.",
        )

    def _check_counts(self, records: list[bytes], counts: list[int]) -> None:
        last = self.select[-1] if self.select else len(self.columns) - 1
        for number, (record, found) in enumerate(zip(records, counts, strict=True)):
            fields = found if record else 0
            if fields <= last or (not self.select and fields > last + 1):
                wanted = f"more than {last}" if self.select else f"{last + 1}"
                raise InvalidArgumentError(
                    f"Expect {wanted} fields but have {fields} in record {number}.",
                    fix="pass one default for each field, or select_cols.",
                )

    def _values(self, column: CsvColumn, cutter: Cutter, fields: Sequence[bytes]) -> Array:
        plain, wrong = cutter.unquoted(fields)
        values, unread = column.values(plain, self.na_value)
        for number, why in sorted((wrong | unread).items()):
            raise InvalidArgumentError(
                f"Record {number}: {why}.", fix="correct the record, or pass another default."
            )
        return values
