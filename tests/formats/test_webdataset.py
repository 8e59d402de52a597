import io
import tarfile

import pytest

import evenfeed as tf
from evenfeed.core.errors import DataLossError, InvalidArgumentError, NotFoundError


def write(path, members):
    with tarfile.open(path, "w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def sample(number):
    return [(f"in/{number:03}.x.txt", b"text %d" % number), (f"in/{number:03}.cls", b"%d" % number)]


@pytest.fixture
def files(tmp_path):
    return [
        write(tmp_path / "a.tar", [m for number in range(4) for m in sample(number)]),
        write(tmp_path / "b.tar", [m for number in range(4, 9) for m in sample(number)]),
    ]


def numbers(dataset):
    return [int(sample["cls"].item()) for sample in dataset]


def test_samples_are_dicts(files, tmp_path):
    dataset = tf.data.Dataset.from_webdataset(str(tmp_path / "*.tar"))
    assert set(dataset.element_spec) == {"__key__", "cls", "x.txt"}
    assert len(dataset) == 9
    second = list(dataset)[1]
    assert second["__key__"].item() == b"in/001"
    assert second["x.txt"].item() == b"text 1"
    assert numbers(dataset) == list(range(9))


def test_only_wanted_parts_are_read(files):
    dataset = tf.data.Dataset.from_webdataset(files, parts=["cls"])
    assert set(dataset.element_spec) == {"__key__", "cls"}
    assert numbers(dataset.batch(3).unbatch()) == list(range(9))


def test_samples_have_positions(files):
    dataset = tf.data.Dataset.from_webdataset(files)
    assert numbers(dataset.shard(4, 1)) == [1, 5]
    assert sorted(numbers(dataset.shuffle(9, seed=1))) == list(range(9))
    iterator = iter(dataset)
    for _ in range(5):
        next(iterator)
    other = iter(dataset)
    other.set_state(iterator.get_state())
    assert numbers(other) == [5, 6, 7, 8]


def test_a_name_that_is_no_utf_8_is_its_bytes(tmp_path):
    content = write(tmp_path / "a.tar", sample(0)).read_bytes().replace(b"in/000", b"in/0\xff0")
    header = bytearray(content)
    for at in (0, 1024):  # each header contains the sum of its bytes
        header[at + 148 : at + 156] = b" " * 8
        header[at + 148 : at + 156] = b"%06o\0 " % sum(header[at : at + 512])
    (tmp_path / "a.tar").write_bytes(header)
    (found,) = tf.data.Dataset.from_webdataset(tmp_path / "a.tar", parts=["cls"])
    assert found["__key__"].item() == b"in/0\xff0"


def test_a_sample_that_lacks_a_part_fails_alone(tmp_path):
    members = [*sample(0), ("in/001.cls", b"1"), *sample(2)]
    dataset = tf.data.Dataset.from_webdataset(write(tmp_path / "c.tar", members))
    iterator = iter(dataset)
    assert int(next(iterator)["cls"].item()) == 0
    with pytest.raises(InvalidArgumentError, match=r"'in/001' has no 'x.txt'"):
        next(iterator)
    assert numbers(iterator) == [2]


def test_what_is_no_tar_file_comes_in_its_turn(files, tmp_path):
    bad = tmp_path / "bad.tar"
    bad.write_bytes(b"hello" * 300)
    iterator = iter(
        tf.data.Dataset.from_webdataset([files[0], bad, tmp_path / "none.tar", files[1]])
    )
    assert [int(next(iterator)["cls"].item()) for _ in range(4)] == list(range(4))
    with pytest.raises(DataLossError, match="not a complete tar file"):
        next(iterator)
    with pytest.raises(NotFoundError):
        next(iterator)
    assert numbers(iterator) == [4, 5, 6, 7, 8]


def test_a_file_that_is_cut_off_is_an_error(files, tmp_path):
    cut = tmp_path / "cut.tar"
    cut.write_bytes(files[0].read_bytes()[: 512 * 3 + 2])
    with pytest.raises(DataLossError):
        numbers(tf.data.Dataset.from_webdataset(cut, parts=["cls"]))


@pytest.mark.parametrize("kept", [512 * 4, 512 * 4 + 100, 512 * 6 + 511])
def test_a_file_that_is_cut_off_between_its_members_is_an_error(files, tmp_path, kept):
    cut = tmp_path / "cut.tar"
    cut.write_bytes(files[0].read_bytes()[:kept])
    with pytest.raises(DataLossError, match=f"the file is cut off at byte {kept // 512 * 512}"):
        numbers(tf.data.Dataset.from_webdataset(cut, parts=["cls"]))


def test_a_damaged_header_does_not_end_the_file(files):
    content = bytearray(files[0].read_bytes())
    content[512 * 4 + 10] ^= 1
    files[0].write_bytes(content)
    for dataset in (
        tf.data.Dataset.from_webdataset(files, parts=["cls"]),
        tf.data.Dataset.from_webdataset(files, parts=["cls"]).skip(5),
        tf.data.Dataset.from_webdataset(files, parts=["cls"]).shard(2, 1),
    ):
        with pytest.raises(DataLossError, match="the header is damaged at byte 2048"):
            numbers(dataset)


def test_no_sample_says_what_to_type(tmp_path):
    empty = write(tmp_path / "empty.tar", [])
    with pytest.raises(InvalidArgumentError, match="parts="):
        tf.data.Dataset.from_webdataset(empty)
    assert list(tf.data.Dataset.from_webdataset(empty, parts=["cls"])) == []


def test_a_compressed_file_is_refused(files, tmp_path):
    packed = tmp_path / "a.tar.gz"
    packed.write_bytes(__import__("gzip").compress(files[0].read_bytes()))
    with pytest.raises(DataLossError, match="decompress the file first") as raised:
        tf.data.Dataset.from_webdataset(packed)
    assert raised.value.file == str(packed)
