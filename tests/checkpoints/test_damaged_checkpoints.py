"""Damaged files of a checkpoint are an error that names the checkpoint, and change nothing."""

from pathlib import Path

import pytest

import evenfeed as tf


@pytest.mark.parametrize("name", ["shared.json", "worker-0-of-1.json"])
@pytest.mark.parametrize("damage", ["missing", "short", "not text", "other data"])
def test_damage_is_a_data_loss_that_names_the_checkpoint(tmp_path: Path, name: str, damage: str):
    iterator = iter(tf.data.Dataset.range(3))
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0), data=iterator)
    path = checkpoint.save(tmp_path / "ckpt")
    file = Path(path) / "objects" / name
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(
            {"short": whole[:-5], "not text": b"\xff" + whole, "other data": b"[1]"}[damage]
        )
    checkpoint.v.assign(5.0)
    kinds = (tf.errors.DataLossError, tf.errors.NotFoundError)
    with pytest.raises(kinds, match="ckpt-1"):
        checkpoint.restore(path)
    assert float(checkpoint.v) == 5.0
