"""The dataset of the rows of files, and the code that makes it."""

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from evenfeed.command.file_kinds import Kind
from evenfeed.core.dtypes import name_of
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.data import Dataset, TextLineDataset, TFRecordDataset
from evenfeed.data.experimental import make_csv_dataset
from evenfeed.formats.bytes.filesystems import matching, open_file
from evenfeed.formats.tables.arrow_columns import arrow
from evenfeed.io import read_file

#: The formats whose files name their columns: see `column_names`.
WITH_SCHEMAS: Final = ("arrow", "parquet")


@dataclass
class Choices:
    """How to read tables that cannot be read as they are.

    Attributes:
        fill_null: A value for the nulls of each column that has some.
        left_out: The columns that no tensor can hold, and why.
        columns: The other columns of a table; None for all.
        signature: The fields of JSON Lines to read; None for all.
    """

    fill_null: dict[str, Any] = field(default_factory=dict[str, Any])
    left_out: dict[str, str] = field(default_factory=dict[str, str])
    columns: list[str] | None = None
    signature: dict[str, Any] | None = None


def opened(kind: Kind, paths: list[str], choices: Choices) -> Dataset:
    """Return the dataset of the rows of files."""
    packed = kind.compression or None
    match kind.format:
        case "array_record":
            return Dataset.from_array_record(paths)
        case "arrow":
            return Dataset.from_arrow(paths, choices.columns, choices.fill_null)
        case "csv":
            batches = make_csv_dataset(
                paths,
                batch_size=1,
                field_delim=kind.delimiter,
                num_epochs=1,
                shuffle=False,
                compression_type=packed,
                **_without_header(kind),
            )
            return batches.unbatch()
        case "json":
            return Dataset.from_json_lines(paths, choices.signature, packed)
        case "numpy":
            return Dataset.from_tensor_slices(_arrays(paths[0]))
        case "parquet":
            return Dataset.from_parquet(paths, choices.columns, fill_null=choices.fill_null)
        case "picture":
            return Dataset.from_tensor_slices(paths).map(read_file)
        case "saved":
            return Dataset.load(paths[0])
        case "tfrecord":
            return TFRecordDataset(paths, compression_type=packed)
        case "webdataset":
            return Dataset.from_webdataset(paths)
        case _:
            return TextLineDataset(paths, compression_type=packed)


def code_of(kind: Kind, paths: Sequence[str], choices: Choices) -> str:
    """Return the code that makes the dataset."""
    filled = f", fill_null={choices.fill_null}" if choices.fill_null else ""
    columns = f", columns={choices.columns}" if choices.columns is not None else ""
    names = repr(paths[0]) if len(paths) == 1 else _listed(paths)
    packed = f', compression_type="{kind.compression}"' if kind.compression else ""
    match kind.format:
        case "csv":
            header = "".join(f", {name}={value}" for name, value in _without_header(kind).items())
            delimiter = f", field_delim={kind.delimiter!r}" if kind.delimiter != "," else ""
            made = f"tf.data.experimental.make_csv_dataset({names}, batch_size=32, num_epochs=1{header}{delimiter}{packed})"
        case "picture":
            made = f"tf.data.Dataset.from_tensor_slices({names if len(paths) > 1 else f'[{names}]'}).map(tf.io.read_file).map(tf.io.decode_image){_labelled(paths)}"
        case "saved":
            made = f"tf.data.Dataset.load({names})"
        case "tfrecord" | "text":
            class_ = "TFRecordDataset" if kind.format == "tfrecord" else "TextLineDataset"
            made = f"tf.data.{class_}({names}{packed})"
        case "json":
            made = f"tf.data.Dataset.from_json_lines({names}{_signature_code(choices)}{packed})"
        case "numpy":
            loaded = (
                f"dict(np.load({names}))"
                if _is_npz(paths[0])
                else f"np.load({names}, mmap_mode='r')"
            )
            return f"import numpy as np\ndataset = tf.data.Dataset.from_tensor_slices({loaded})"
        case _:
            made = f"tf.data.Dataset.from_{kind.format}({names}{columns}{filled})"
    return f"dataset = {made}"


def _listed(paths: Sequence[str]) -> str:
    """Return a list of paths as code: a pattern if there are many."""
    if len(paths) <= 3:
        return repr(list(paths))
    folder, ending = os.path.dirname(paths[0]), os.path.splitext(paths[0])[1]
    above = os.path.join(os.path.dirname(folder), "*")
    for place in (folder, above):
        for name in (f"*{ending}", "*"):
            pattern = os.path.join(place, name)
            if sorted(matching(pattern)) == sorted(paths):
                return f"tf.io.gfile.glob({pattern!r})"
    return repr(list(paths))


def _labelled(paths: Sequence[str]) -> str:
    """Return a comment on how to get labels, if pictures lie in several folders of one folder."""
    folders = {os.path.dirname(path) for path in paths}
    above = {os.path.dirname(folder) for folder in folders}
    if len(folders) < 2 or len(above) > 1:
        return ""
    made = f"tf.keras.utils.image_dataset_from_directory({above.pop()!r})"
    return f"\n# with the folders as labels, in batches of one size: {made}"


def column_names(format_: str, path: str) -> list[str]:
    """Return the names of the columns of a table."""
    with open_file(path) as file:
        if format_ == "parquet":
            return list(arrow("parquet").read_schema(file).names)
        ipc: Any = arrow("ipc")
        try:
            return list(ipc.open_file(file).schema.names)
        except ValueError:  # a stream
            file.seek(0)
            return list(ipc.open_stream(file).schema.names)


def _without_header(kind: Kind) -> dict[str, Any]:
    """Return the arguments that name the columns of a CSV file without a header."""
    if not kind.columns:
        return {}
    return {"column_names": [f"column_{number}" for number in range(kind.columns)], "header": False}


def _signature_code(choices: Choices) -> str:
    return "" if choices.signature is None else f", {_spec_code(choices.signature)}"


def _spec_code(spec: Any) -> str:
    if isinstance(spec, dict):
        parts: Any = spec.items()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return f"{{{', '.join(f'{name!r}: {_spec_code(part)}' for name, part in parts)}}}"
    return f"tf.TensorSpec({list(spec.shape)}, tf.{name_of(spec.dtype)})"


def _is_npz(path: str) -> bool:
    return path.lower().endswith(".npz")


def _arrays(path: str) -> Any:
    try:
        return dict(np.load(path)) if _is_npz(path) else np.load(path, mmap_mode="r")
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidArgumentError(
            f"{path} cannot be read: {str(error).rstrip('.')}.",
            fix="save arrays of numbers or text, not of objects; copy the file again if it is damaged.",
        ) from error
