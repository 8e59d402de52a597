"""A feature whose package is not installed names the extra that installs it, as a command."""

import runpy
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.formats.tables.arrow_columns import arrow
from evenfeed.keras_training.loading import keras_on_jax

ORBAX_ITEMS = str(Path(tf.__file__).parent / "checkpoints" / "orbax_items.py")
PNG = b"\x89PNG\r\n\x1a\n"

# The extra, a package that it installs, and a call that needs it.
CASES: list[tuple[str, str, Callable[[str], object]]] = [
    ("parquet", "pyarrow", tf.data.Dataset.from_parquet),
    ("parquet", "pyarrow", tf.data.Dataset.from_arrow),
    ("text", "pyarrow", lambda _: tf.strings.regex_replace("a", "a", "b")),
    ("remote", "fsspec", lambda path: tf.io.read_file(f"memory://{path}")),
    ("remote", "fsspec", lambda path: list(tf.data.TextLineDataset(f"gs://bucket{path}"))),
    (
        "array-record",
        "array_record.python.array_record_module",
        lambda path: list(tf.data.Dataset.from_array_record(path)),
    ),
    ("keras", "keras", lambda _: keras_on_jax()),
    ("images", "simplejpeg", lambda _: tf.io.decode_jpeg(b"\xff\xd8\xff\xe0" + bytes(20))),
    ("images", "PIL", lambda _: tf.io.decode_png(PNG + bytes(20))),
    ("checkpoint", "orbax", lambda path: tf.train.Checkpoint(v=tf.Variable(1)).write(path)),
    (
        "checkpoint",
        "orbax",
        lambda _: runpy.run_path(ORBAX_ITEMS),  # a module that is loaded at first use
    ),
    ("images", "PIL", lambda _: tf.io.encode_jpeg(np.zeros((2, 2, 3), np.uint8))),
]


@pytest.mark.parametrize(("extra", "package", "call"), CASES)
def test_the_error_names_the_pip_command(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    extra: str,
    package: str,
    call: Callable[[str], object],
) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"nothing")
    arrow.cache_clear()
    for name in [*sys.modules, package]:
        if name == package or name.startswith(f"{package}."):
            monkeypatch.setitem(sys.modules, name, None)
    refused = (ImportError, tf.errors.UnimplementedError)
    with pytest.raises(refused, match=rf"pip install 'evenfeed\[{extra}\]'"):
        call(str(file))
