import sys
import uuid
from pathlib import Path

import pytest

import evenfeed as tf
from evenfeed.io import gfile


@pytest.fixture(params=["local", "file://", "memory://"])
def root(request, tmp_path):
    """A folder, here or behind an address."""
    if request.param == "memory://":
        path = f"memory://{uuid.uuid4().hex}"
        gfile.makedirs(path)
        return path
    return f"{request.param.removeprefix('local')}{tmp_path}"


def write(path, text=""):
    tf.io.write_file(path, text)
    return path


def test_files_are_written_and_read(root):
    path = write(f"{root}/new/deep/x", "hé")
    assert tf.io.read_file(path).item() == "hé".encode()
    assert gfile.exists(path)
    assert not gfile.isdir(path)
    assert gfile.isdir(f"{root}/new")
    assert not gfile.exists(f"{root}/none")
    assert gfile.stat(path).length == 3
    assert not gfile.stat(path).is_directory
    assert gfile.stat(f"{root}/new").is_directory


def test_folders_are_listed_and_walked(root):
    for name in ("b", "a", "sub/c", ".hidden"):
        write(f"{root}/{name}")
    assert gfile.listdir(root) == [".hidden", "a", "b", "sub"]
    found = [(folders, files) for _, folders, files in gfile.walk(root)]
    assert found == [(["sub"], [".hidden", "a", "b"]), ([], ["c"])]
    assert [found[2] for found in gfile.walk(root, topdown=False)] == [["c"], [".hidden", "a", "b"]]
    with pytest.raises(tf.errors.NotFoundError, match="Could not find directory"):
        gfile.listdir(f"{root}/none")
    missed = []
    assert list(gfile.walk(f"{root}/none", onerror=missed.append)) == []
    assert len(missed) == 1


def test_files_are_found_by_patterns(root):
    for name in ("b.txt", "a.txt", "c.csv", "a2.txt"):
        write(f"{root}/{name}")

    def names(*patterns):
        return [path.rpartition("/")[2] for path in gfile.glob([f"{root}/{p}" for p in patterns])]

    assert names("*.txt") == ["a.txt", "a2.txt", "b.txt"]
    assert names("?.csv", "[ab].txt") == ["a.txt", "b.txt", "c.csv"]
    assert names("[!a]*") == names("[^a]*") == ["b.txt", "c.csv"]
    assert names("c.csv", "none*") == ["c.csv"]
    assert names("none.txt") == []
    found = gfile.glob(f"{root}/*.csv")
    assert tf.io.matching_files(f"{root}/*.csv").tolist() == [found[0].encode()]
    assert gfile.exists(found[0])


def test_names_of_a_pattern_without_a_folder_begin_as_in_tensorflow(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("a.txt")
    assert gfile.glob("*.txt") == ["./a.txt"]
    assert gfile.glob("a.txt") == ["a.txt"]


def test_folders_are_made(root):
    gfile.makedirs(f"{root}/a/b")
    gfile.makedirs(f"{root}/a/b")
    gfile.mkdir(f"{root}/c")
    gfile.mkdir(f"{root}/c")
    assert gfile.listdir(root) == ["a", "c"]
    write(f"{root}/file")
    with pytest.raises(tf.errors.FailedPreconditionError, match="file is not a directory"):
        gfile.makedirs(f"{root}/file")


def test_files_are_removed_and_moved_and_copied(root):
    write(f"{root}/a", "text")
    write(f"{root}/b")
    for move in (gfile.rename, gfile.copy):
        with pytest.raises(tf.errors.AlreadyExistsError, match="b already exists"):
            move(f"{root}/a", f"{root}/b")
        with pytest.raises(tf.errors.NotFoundError, match="none does not exist"):
            move(f"{root}/none", f"{root}/d")
    gfile.copy(f"{root}/a", f"{root}/b", overwrite=True)
    gfile.rename(f"{root}/a", f"{root}/c")
    assert tf.io.read_file(f"{root}/b") == tf.io.read_file(f"{root}/c") == b"text"
    gfile.remove(f"{root}/b")
    assert gfile.listdir(root) == ["c"]
    with pytest.raises(tf.errors.NotFoundError, match="b does not exist"):
        gfile.remove(f"{root}/b")
    write(f"{root}/sub/d")
    with pytest.raises(tf.errors.FailedPreconditionError, match="sub is a directory"):
        gfile.remove(f"{root}/sub")
    gfile.rmtree(f"{root}/sub")
    assert gfile.listdir(root) == ["c"]
    with pytest.raises(tf.errors.NotFoundError, match="sub does not exist"):
        gfile.rmtree(f"{root}/sub")


def test_a_file_is_opened_for_text_or_bytes(root):
    path = f"{root}/f"
    with gfile.GFile(path, "w") as file:
        file.write("one\ntwö")
        file.flush()
    with gfile.GFile(path, "a") as file:
        file.write(b"!")
    assert gfile.GFile(path).read() == "one\ntwö!"
    assert gfile.GFile(path, "rb").read() == "one\ntwö!".encode()
    assert list(gfile.GFile(path)) == gfile.GFile(path).readlines() == ["one\n", "twö!"]
    with gfile.GFile(path, "rb") as file:
        file.seek(4)
        assert (file.read(2), file.tell(), file.size(), file.seekable()) == (b"tw", 6, 9, True)
        assert file.readline() == "ö!".encode()
        assert file.read() == b""
        assert (file.name, file.mode) == (path, "rb")


def test_modes_are_checked(tmp_path):
    path = write(f"{tmp_path}/a", "x")
    with pytest.raises(tf.errors.InvalidArgumentError, match="but got 'x'"):
        gfile.GFile(path, "x")
    with pytest.raises(tf.errors.PermissionDeniedError, match="not open for writing"):
        gfile.GFile(path).write("y")
    with pytest.raises(tf.errors.PermissionDeniedError, match="not open for reading"):
        gfile.GFile(f"{tmp_path}/b", "w").read()
    missing = gfile.GFile(f"{tmp_path}/none")
    with pytest.raises(tf.errors.NotFoundError, match="none does not exist"):
        missing.read()


def test_paths_are_joined():
    assert gfile.join("a", "b") == "a/b"
    assert gfile.join("a", Path("b"), "/c") == "/c"
    assert gfile.join("gs://x", "y") == "gs://x/y"


@pytest.mark.parametrize("scheme", ["no-such-scheme://", "memory://"])
def test_what_cannot_be_reached_says_what_to_install(scheme, monkeypatch):
    if scheme == "memory://":
        monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install 'evenfeed\[remote\]'"):
        tf.io.read_file(f"{scheme}x/y")


@pytest.mark.parametrize("value", [3, None, ["a", "b"], []])
def test_a_path_is_one_path(value):
    with pytest.raises(TypeError, match="filename must"):
        tf.io.read_file(value)
    with pytest.raises(TypeError, match="contents must be a scalar string"):
        tf.io.write_file("x", 3)


def test_remote_lines_and_records_are_read(root):
    write(f"{root}/a.txt", "one\ntwo\n")
    names = tf.data.Dataset.list_files(f"{root}/*.txt")
    assert list(names.flat_map(tf.data.TextLineDataset).as_numpy_iterator()) == [b"one", b"two"]
    records = tf.data.FixedLengthRecordDataset(f"{root}/a.txt", 4)
    assert list(records.as_numpy_iterator()) == [b"one\n", b"two\n"]
    iterator = iter(tf.data.TextLineDataset(f"{root}/a.txt"))
    next(iterator)
    again = iter(tf.data.TextLineDataset(f"{root}/a.txt"))
    again.set_state(iterator.get_state())
    assert next(again).item() == b"two"


def test_files_are_read_in_maps(root):
    for name in "ab":
        write(f"{root}/{name}", name * 3)
    names = tf.data.Dataset.list_files(f"{root}/*", shuffle=False)
    found = names.map(tf.io.read_file, num_parallel_calls=2)
    assert found.element_spec == tf.TensorSpec([], tf.string)
    assert list(found.as_numpy_iterator()) == [b"aaa", b"bbb"]


def test_bytes_that_are_no_text_are_named(tmp_path):
    path = str(tmp_path / "file")
    (tmp_path / "file").write_bytes(b"one\ntw\xff\n")
    file = gfile.GFile(path)
    assert file.readline() == "one\n"
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="file is not text: byte 6 is not valid UTF-8"
    ) as caught:
        file.readline()
    assert (caught.value.file, caught.value.offset) == (path, 6)
    assert gfile.GFile(path, "rb").read() == b"one\ntw\xff\n"
