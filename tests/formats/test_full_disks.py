"""On a full disk the error names the file, and no incomplete file is left."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import evenfeed as tf

PROGRAM = Path(__file__).with_name("programs") / "full_disk.py"
FULL = r"/dev/full cannot be written: No space left on device"


def record(size):
    with tf.io.TFRecordWriter("/dev/full") as writer:
        writer.write(bytes(size))


def compressed(size):
    with tf.io.TFRecordWriter("/dev/full", "GZIP") as writer:
        writer.write(bytes(size))
        writer.flush()


def text(size):
    with tf.io.gfile.GFile("/dev/full", "w") as file:
        file.write("a" * size)


def copied(size):
    del size
    tf.io.gfile.copy(__file__, "/dev/full", overwrite=True)


@pytest.mark.parametrize("size", [1, 1_000_000])
@pytest.mark.parametrize(
    "write", [record, compressed, text, copied, lambda n: tf.io.write_file("/dev/full", b"a" * n)]
)
def test_what_writes_files_names_the_one_that_does_not_fit(write, size):
    with pytest.raises(tf.errors.ResourceExhaustedError, match=FULL):
        write(size)


@pytest.mark.parametrize("way", ["cache", "snapshot", "save"])
def test_what_cannot_be_kept_is_one_error_that_names_the_file_and_no_element_is_lost(tmp_path, way):
    said = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), way],
        capture_output=True,
        text=True,
        check=True,
    )
    whole, errors, left = json.loads(said.stdout)
    assert whole or way == "save"
    assert len(errors) == 1
    assert errors[0].startswith(f"ResourceExhaustedError: {tmp_path}")
    assert "cannot be written: File too large" in errors[0]
    assert not left
