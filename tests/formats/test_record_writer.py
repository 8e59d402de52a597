import zlib

import numpy as np
import pytest
from tests.saying import error_saying

from evenfeed.core.errors import FailedPreconditionError, NotFoundError
from evenfeed.formats.tfrecord.record_writer import TFRecordOptions, TFRecordWriter


def test_a_closed_writer_writes_no_more(tmp_path):
    writer = TFRecordWriter(str(tmp_path / "file"))
    writer.write(b"one")
    writer.close()
    writer.close()
    for call in (lambda: writer.write(b"two"), writer.flush):
        with pytest.raises(FailedPreconditionError, match="The writer is closed"):
            call()
    assert len((tmp_path / "file").read_bytes()) == 19


def test_what_was_flushed_can_be_read(tmp_path):
    path = tmp_path / "file"
    writer = TFRecordWriter(path)
    writer.write("text")
    writer.write(bytearray(b"more"))
    writer.write(np.array(b"last", object))
    writer.flush()
    assert len(path.read_bytes()) == 60
    packed = TFRecordWriter(path, TFRecordOptions("ZLIB", flush_mode="F"))
    packed.write(b"one")
    packed.flush()
    assert len(path.read_bytes()) > 10


def test_wrong_arguments_are_refused(tmp_path):
    with error_saying(
        ValueError, "Not a valid compression_type: 'LZ4'.", fix='pass "GZIP", "ZLIB", or None.'
    ):
        TFRecordOptions("LZ4")
    with pytest.raises(ValueError, match="Not a valid compression_type: 3"):
        TFRecordWriter(tmp_path / "file", 3)
    with pytest.raises(NotFoundError, match="does not exist"):
        TFRecordWriter(tmp_path / "none" / "file")
    with pytest.raises(TypeError, match="A record must be bytes, but got 3"):
        TFRecordWriter(tmp_path / "file").write(3)


def test_a_dropped_writer_closes_its_file(tmp_path):
    writer = TFRecordWriter(tmp_path / "file", "ZLIB")
    writer.write(b"one")
    del writer
    assert len(zlib.decompress((tmp_path / "file").read_bytes())) == 19


def test_the_level_of_compression_is_the_users(tmp_path):
    sizes = []
    for level in (0, 9):
        with TFRecordWriter(
            tmp_path / "file", TFRecordOptions("GZIP", compression_level=level)
        ) as w:
            w.write(b"a" * 10_000)
        sizes.append((tmp_path / "file").stat().st_size)
    assert sizes[0] > 10_000 > sizes[1]
