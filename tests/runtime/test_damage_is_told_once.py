"""An unreadable page or file is one error, not one per row."""

import os
from pathlib import Path

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset
ROWS = 40_000  # of 8 bytes: three pages
PAGE = 1 << 14  # rows


def kept(way, folder):
    """Return a dataset whose elements are stored in a file, for the first pass and for later ones."""
    rows = Dataset.range(ROWS)
    if way == "cache":
        return rows.cache(str(folder / "kept"))
    if way == "snapshot":
        return rows.snapshot(str(folder))
    if not (folder / "dataset.json").exists():
        rows.save(str(folder), compression="GZIP" if way == "compressed" else None)
    loaded = Dataset.load(str(folder))
    return loaded.shuffle(ROWS, seed=1) if way == "shuffled" else loaded


def in_page(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def at_end(path):
    os.truncate(path, path.stat().st_size - 5)


def all_of(dataset):
    iterator, found, errors = iter(dataset), 0, []
    while len(errors) < 9:
        try:
            next(iterator)
            found += 1
        except StopIteration:
            break
        except tf.errors.OpError as error:
            errors.append(error)
    return found, errors


WAYS = ["cache", "snapshot", "saved", "compressed", "shuffled"]


@pytest.mark.parametrize(("damage", "left"), [(in_page, ROWS - PAGE), (at_end, 0)])
@pytest.mark.parametrize("way", WAYS)
def test_damage_is_told_once_and_the_rest_follows(tmp_path, way, damage, left):
    assert all_of(kept(way, tmp_path)) == (ROWS, [])
    (path,) = [Path(f) for f in tmp_path.rglob("*") if f.suffix in (".cache", ".pages")]
    damage(path)
    found, errors = all_of(kept(way, tmp_path))
    assert found == left
    assert [type(error) for error in errors] == [tf.errors.DataLossError]
    assert str(path) in str(errors[0])
    dropped = kept(way, tmp_path).ignore_errors()
    if way == "cache" and not left:  # no element has failed, because there are none
        with pytest.raises(tf.errors.DataLossError, match="its footer is missing"):
            list(dropped)
    else:
        assert len(list(dropped)) == left


def test_a_damaged_index_of_a_snapshot_is_told_once(tmp_path):
    list(kept("snapshot", tmp_path))
    (index,) = tmp_path.rglob("dataset.json")
    index.write_text("{")
    found, errors = all_of(kept("snapshot", tmp_path))
    assert (found, len(errors)) == (0, 1)
    assert str(index) in str(errors[0])


def test_a_cache_of_other_elements_is_told_once(tmp_path):
    list(kept("cache", tmp_path))
    other = Dataset.range(3).map(float).cache(str(tmp_path / "kept"))
    found, errors = all_of(other)
    assert (found, len(errors)) == (0, 1)


def test_errors_of_functions_are_told_for_each_row():
    def fail(number):
        if number % 2:
            raise tf.errors.DataLossError("the same each time")
        return number

    rows = Dataset.range(8).map(lambda x: tf.numpy_function(fail, [x], tf.int64))
    found, errors = all_of(rows)
    assert (found, len(errors)) == (4, 4)
