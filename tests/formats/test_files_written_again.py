import os

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.plan.files import Files
from evenfeed.runtime.positions.file_rows import FileRows


def write(path, text):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for number in range(10):
            writer.write(f"{text} {number}".encode())


def test_rows_that_are_kept_over_rounds_are_read_again_if_their_file_was_written_again(tmp_path):
    paths = [tmp_path / f"{number}.tfrecord" for number in range(3)]
    for path in paths:
        write(path, "old")
    dataset = tf.data.TFRecordDataset([str(path) for path in paths])
    (node,) = (node for node in plan_of(dataset).walk() if isinstance(node, Files))
    kept = FileRows(node.files, node.counted(), node.spec)
    assert kept.has([10, 10, 10])
    assert not kept.has([10, 10, 9])
    write(paths[1], "new")
    os.utime(paths[1], ns=(0, 0))  # its time differs, also if the clock is coarse
    assert not kept.has([10, 10, 10])
    kept.close()


def test_a_later_round_has_the_rows_of_files_that_were_written_again(tmp_path):
    path = tmp_path / "a.tfrecord"
    write(path, "old")
    rows = iter(tf.data.TFRecordDataset(str(path)).shuffle(10, seed=1).repeat(3))
    assert all(next(rows).numpy().startswith(b"old") for _ in range(10))
    write(path, "new")
    rest = [row.numpy() for row in rows]  # rows of the second round may have been read ahead
    assert sorted(rest[10:]) == [f"new {number}".encode() for number in range(10)]
