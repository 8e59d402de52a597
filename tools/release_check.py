"""Installs the wheel into an empty environment, once for each extra, and tries what the extra is for.

Usage: python tools/release_check.py [EXTRA ...]. It builds the wheel first. Takes minutes, and needs the network.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: A program for each extra; "" is the installation without one.
TRIED = {
    "": "assert list(tf.data.Dataset.range(3).map(lambda x: x + 1).as_numpy_iterator()) == [1, 2, 3]",
    "array-record": """
from array_record.python.array_record_module import ArrayRecordWriter
writer = ArrayRecordWriter("x", "group_size:1"); writer.write(b"a"); writer.close()
assert list(tf.data.Dataset.from_array_record("x").as_numpy_iterator()) == [b"a"]""",
    "checkpoint": """
v = tf.Variable(1.0)
path = tf.train.Checkpoint(v=v).save("saved/ckpt")
v.assign(2.0)
tf.train.Checkpoint(v=v).restore(path)
assert v.numpy() == 1""",
    "completion": """
from evenfeed.command.main import main
assert main(["completion", "bash"]) == 0""",
    "demo": """
from evenfeed.command.main import main
assert main(["demo", "--epochs", "1"]) == 0""",
    "images": """
import numpy as np
assert tf.io.decode_png(tf.io.encode_png(np.zeros((2, 3, 3), np.uint8))).shape == (2, 3, 3)
assert tf.io.decode_jpeg(tf.io.encode_jpeg(np.zeros((2, 3, 3), np.uint8))).shape == (2, 3, 3)""",
    "keras": """
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensor_slices(([[1.0]], [[2.0]])).batch(1), verbose=0)""",
    "parquet": """
import pyarrow, pyarrow.parquet
pyarrow.parquet.write_table(pyarrow.table({"x": [1, 2]}), "x")
assert len(tf.data.Dataset.from_parquet("x")) == 2""",
    "records": """
with tf.io.TFRecordWriter("x") as writer:
    writer.write(b"a")
assert list(tf.data.TFRecordDataset("x").as_numpy_iterator()) == [b"a"]""",
    "remote": """
import fsspec
fsspec.filesystem("memory").pipe("/x", b"a\\nb\\n")
assert list(tf.data.TextLineDataset("memory://x").as_numpy_iterator()) == [b"a", b"b"]""",
    "text": 'assert tf.strings.regex_replace("a1", "[0-9]", "").numpy() == b"a"',
}


def main(extras: list[str]) -> int:
    """Try the extras, and return how many failed."""
    declared = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
    if declared != set(TRIED) - {""}:
        print(f"TRIED and pyproject.toml differ: {declared ^ (set(TRIED) - {''})}")
        return 1
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        subprocess.run(build, cwd=ROOT, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        for extra in extras or TRIED:
            works = tried(wheel, extra, Path(folder, extra or "plain"))
            print(
                f"{'ok    ' if works else 'FAILED'}  evenfeed{f'[{extra}]' if extra else ''}",
                flush=True,
            )
            failed += not works
    return failed


def tried(wheel: Path, extra: str, place: Path) -> bool:
    """Install the wheel with an extra into an environment of its own, and run its program there."""
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    environment = os.environ | {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    environment.pop("PYTHONPATH", None)
    subprocess.run([python, "-m", "pip", "install", "-q", wanted], check=True, env=environment)
    program = f"import evenfeed as tf\n{TRIED[extra]}\n"
    ran = subprocess.run([python, "-c", program], cwd=place, env=environment, check=False)
    return ran.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
