"""A state knows its files: restoring it fails if one of them has changed."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from tests.every_format import FORMATS, ROWS, written

import evenfeed as tf
from evenfeed.runtime import file_digests

Dataset = tf.data.Dataset
# Saved datasets check themselves: they raise a different error if their file is replaced.
NAMES = [name for name in FORMATS if not name.startswith("saved")]


def taken(dataset, count):
    """Return the state after `count` elements, through JSON."""
    iterator = iter(dataset)
    for _ in range(count):
        next(iterator)
    return json.loads(json.dumps(iterator.get_state()))


def restored(dataset, state):
    iterator = iter(dataset)
    iterator.set_state(json.loads(json.dumps(state)))
    return [tf.nest.map_structure(lambda part: part.numpy(), element) for element in iterator]


def files_in(folder, count):
    """Write text files of five lines each; return their paths."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        text = "".join(f"{number} {line}\n" for line in range(5))
        (folder / f"{number:05}.txt").write_text(text)
    return sorted(map(str, folder.glob("*.txt")))


def put_in_front(path):
    path.write_bytes(b"new line\n" + path.read_bytes())


def cut(path):
    os.truncate(path, path.stat().st_size - 3)


def other_end(path):
    path.write_bytes(path.read_bytes()[:-2] + b"x\n")


def remove(path):
    path.unlink()


WAYS = {
    "plain": tf.data.TextLineDataset,
    "shuffled": lambda paths: tf.data.TextLineDataset(paths).shuffle(4, seed=1),
    "batches": lambda paths: tf.data.TextLineDataset(paths).batch(3).prefetch(2),
    "zipped": lambda paths: Dataset.zip(tf.data.TextLineDataset(paths), Dataset.range(100)),
    "cached": lambda paths: tf.data.TextLineDataset(paths).cache(),
    "one after the other": lambda paths: Dataset.from_tensor_slices(paths).flat_map(
        tf.data.TextLineDataset
    ),
    "in turn": lambda paths: Dataset.from_tensor_slices(paths).interleave(
        tf.data.TextLineDataset, cycle_length=3, block_length=2
    ),
    "in turn, in threads": lambda paths: (
        Dataset.from_tensor_slices(paths)
        .interleave(tf.data.TextLineDataset, cycle_length=3, num_parallel_calls=2)
        .map(lambda line: line)
        .prefetch(2)
    ),
    "windows of names": lambda paths: (
        Dataset.from_tensor_slices(paths).batch(2).flat_map(tf.data.TextLineDataset)
    ),
}


@pytest.mark.parametrize("change", [put_in_front, cut, other_end, remove])
@pytest.mark.parametrize("way", WAYS)
def test_a_state_over_a_changed_file_is_refused_and_the_file_is_named(tmp_path, way, change):
    paths = files_in(tmp_path, 3)
    dataset = WAYS[way](paths)
    state = taken(dataset, 3)
    whole = restored(dataset, state)
    change(Path(paths[0]))
    with pytest.raises(
        tf.errors.DataLossError, match=r"00000\.txt.*changed since the state was taken"
    ):
        restored(WAYS[way](paths), state)
    Path(paths[0]).write_text("".join(f"0 {line}\n" for line in range(5)))
    assert str(restored(WAYS[way](paths), state)) == str(whole)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_over_a_changed_file_of_any_format_is_refused(tmp_path, name):
    paths = written(name, tmp_path)
    state = taken(FORMATS[name].read(paths), 3)
    assert len(restored(FORMATS[name].read(paths), state)) == 2 * ROWS - 3
    dataset = FORMATS[name].read(paths)
    content = bytearray(Path(paths[1]).read_bytes())
    content[-1] ^= 1
    Path(paths[1]).write_bytes(content)
    with pytest.raises(tf.errors.DataLossError, match=r"1\.file") as caught:
        restored(dataset, state)
    assert caught.value.file == paths[1]


@pytest.mark.parametrize("way", WAYS)
def test_a_state_moves_with_its_files(tmp_path, way):
    paths = files_in(tmp_path / "here", 3)
    state = taken(WAYS[way](paths), 3)
    expected = restored(WAYS[way](paths), state)
    shutil.move(tmp_path / "here", tmp_path / "there")
    moved = [path.replace("/here/", "/there/") for path in paths]
    for path in moved:
        os.utime(path, (time.time() + 9, time.time() + 9))
        Path(path).write_bytes(Path(path).read_bytes())
    assert str(restored(WAYS[way](moved), state)) == str(expected)
    assert "here" not in json.dumps(state)


def test_readers_of_one_dataset_may_move_apart(tmp_path):
    both = [files_in(tmp_path / name, 2) for name in ("a", "b")]
    state = taken(Dataset.zip(*map(tf.data.TextLineDataset, both)), 3)
    shutil.move(tmp_path / "b", tmp_path / "a" / "inside")
    both[1] = [path.replace("/b/", "/a/inside/") for path in both[1]]
    assert len(restored(Dataset.zip(*map(tf.data.TextLineDataset, both)), state)) == 7


def test_a_state_over_ten_thousand_files_is_short_and_names_the_one_that_changed(tmp_path):
    paths = files_in(tmp_path, 10_000)
    state = taken(tf.data.TextLineDataset(paths), 4)
    assert len(json.dumps(state)) < 2000
    for changed in ([1234], [0, 9999], [17, 18, 19, 20, 21]):
        for number in changed:
            put_in_front(Path(paths[number]))
        with pytest.raises(tf.errors.DataLossError) as caught:
            restored(tf.data.TextLineDataset(paths), state)
        assert all(paths[number] in str(caught.value) for number in changed[:3])
        assert ("and 2 more" in str(caught.value)) == (len(changed) == 5)
        for number in changed:
            content = Path(paths[number]).read_bytes()
            Path(paths[number]).write_bytes(content.removeprefix(b"new line\n"))
    iter(tf.data.TextLineDataset(paths)).set_state(state)


def test_where_too_many_files_changed_to_name_them_the_error_says_so(tmp_path):
    paths = files_in(tmp_path, 200)
    state = taken(tf.data.TextLineDataset(paths), 4)
    for number in (3, 35):  # of one group
        cut(Path(paths[number]))
    with pytest.raises(
        tf.errors.DataLossError, match=r"Several of 7 files, starting with .*/00003\.txt"
    ):
        restored(tf.data.TextLineDataset(paths), state)
    cut(Path(paths[5]))
    with pytest.raises(tf.errors.DataLossError, match=r"00005\.txt, and several more of 7 files"):
        restored(tf.data.TextLineDataset(paths), state)


def test_a_dataset_of_other_files_is_refused(tmp_path):
    a, b = files_in(tmp_path, 2)
    (tmp_path / "more").mkdir()
    shutil.copy(b, tmp_path / "more")
    state = taken(tf.data.TextLineDataset([a, b, b]), 1)
    with pytest.raises(tf.errors.DataLossError, match=r"from 2 files, but the dataset now reads 3"):
        restored(tf.data.TextLineDataset([a, b, str(tmp_path / "more" / Path(b).name)]), state)


@pytest.mark.parametrize("way", WAYS)
def test_a_state_without_digests_is_taken_up(tmp_path, way):
    paths = files_in(tmp_path, 3)
    state = taken(WAYS[way](paths), 3)
    old = without_digests(state)
    assert "=" not in json.dumps(old)
    assert str(restored(WAYS[way](paths), old)) == str(restored(WAYS[way](paths), state))


def without_digests(state):
    """Return a state as older versions wrote it, without file digests."""
    if isinstance(state, dict):
        return {
            key: without_digests(part) for key, part in state.items() if key not in ("files", "sum")
        }
    if isinstance(state, list):
        is_slot = len(state) == 4 and isinstance(state[3], str)
        return [without_digests(part) for part in (state[:3] if is_slot else state)]
    return state


def test_files_are_looked_at_once_for_an_iterator_and_not_before_a_state_is_asked_for(
    tmp_path, monkeypatch
):
    looks = []
    look = file_digests.sketches
    monkeypatch.setattr(file_digests, "sketches", lambda paths: looks.append(1) or look(paths))
    paths = files_in(tmp_path, 3)
    iterator = iter(tf.data.TextLineDataset(paths))
    next(iterator)
    assert not looks
    states = [iterator.get_state() for _ in iterator]
    assert len(states) == 14
    assert len(looks) == 1


def test_below_a_cache_that_is_complete_files_are_needed_no_more(tmp_path):
    paths = files_in(tmp_path, 2)
    dataset = tf.data.TextLineDataset(paths).cache(str(tmp_path / "cache"))
    list(dataset)
    state = taken(dataset, 3)
    cut(Path(paths[0]))
    assert len(restored(dataset, state)) == 7
    shutil.rmtree(tmp_path)


def test_an_iterator_that_refuses_a_state_stays_where_it_is(tmp_path):
    paths = files_in(tmp_path, 2)
    iterator = iter(tf.data.TextLineDataset(paths))
    state = taken(tf.data.TextLineDataset(paths), 4)
    first = next(iterator)
    cut(Path(paths[1]))
    with pytest.raises(tf.errors.DataLossError):
        iterator.set_state(state)
    assert (first.numpy(), next(iterator).numpy()) == (b"0 0", b"0 1")


def test_a_pipe_is_not_opened_for_a_state(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    iterator = iter(tf.data.TextLineDataset(str(tmp_path / "pipe")))
    assert iterator.get_state() == iterator.get_state()


def test_files_on_other_filesystems_are_known_too():
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    paths = [f"memory://digests/{number}.txt" for number in range(3)]
    for path in paths:
        memory.pipe(path, b"one\ntwo\n" * 4000)
    state = taken(tf.data.TextLineDataset(paths), 3)
    assert len(restored(tf.data.TextLineDataset(paths), state)) == 24_000 - 3
    memory.pipe(paths[1], b"zero\n" + b"one\ntwo\n" * 4000)
    with pytest.raises(tf.errors.DataLossError, match=r"memory://digests/1\.txt"):
        restored(tf.data.TextLineDataset(paths), state)


def test_the_state_of_a_distributed_iterator_knows_its_files_too(tmp_path):
    paths = files_in(tmp_path, 3)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])

    def distributed():
        lines = tf.data.TextLineDataset(paths).batch(2)
        return strategy.experimental_distribute_dataset(lines)

    iterator = iter(distributed())
    next(iterator)
    state = json.loads(json.dumps(iterator.get_state()))
    again = iter(distributed())
    again.set_state(state)
    assert len(list(again)) == 7
    cut(Path(paths[2]))
    with pytest.raises(tf.errors.DataLossError, match=r"00002\.txt"):
        iter(distributed()).set_state(state)


@pytest.mark.parametrize("digest", ["", "3:", "x", 5, "3:!!!!", "99999:AAAA"])
def test_an_invalid_digest_is_an_error(tmp_path, digest):
    dataset = tf.data.TextLineDataset(files_in(tmp_path, 3))
    state = taken(dataset, 3)
    state["files"] = [digest]
    del state["sum"]  # as a state of an earlier version
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"must hold a digest of its files"):
        restored(dataset, state)


def test_another_text_of_the_same_digest_is_the_same_digest(tmp_path):
    dataset = tf.data.TextLineDataset(files_in(tmp_path, 1))
    state = taken(dataset, 2)
    (digest,) = state["files"]
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    same = digest[:-1] + letters[letters.index(digest[-1]) ^ 1]  # its last two bits mean nothing
    state |= {"files": [same]}
    del state["sum"]
    assert restored(dataset, state) == restored(dataset, taken(dataset, 2))
