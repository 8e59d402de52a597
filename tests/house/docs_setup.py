"""What the code on a page of the docs finds when it starts: files, and names that the page takes for granted."""

import gzip
import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import evenfeed as tf

Names = dict[str, Any]


def setup(page: str) -> Names:
    """Write the files that a page reads into the working directory, and return the names that it uses."""
    return {"tf": tf} | PAGES[page]()


def datasets() -> Names:
    def decode(x: Any) -> Any:
        return x * 2

    return {
        "pandas": import_module("pandas"),
        "dataset": tf.data.Dataset.range(6),
        "decode": decode,
    }


def files() -> Names:
    for folder in ("logs", "train"):
        Path(folder).mkdir()
    for path in ("a.txt", "b.txt", "logs/1.txt", "logs/2.txt"):
        Path(path).write_text(f"{path} one\n{path} two\n")
    Path("c.txt.gz").write_bytes(gzip.compress(b"packed\n"))
    for path in ("a.csv", "b.csv"):
        Path(path).write_text("name,skipped,age,height\nAda,x,36,1.7\nBob,y,,1.8\n")
    Path("train/1.csv").write_text("rooms,price\n1,2.5\n3,4.5\n")
    Path("people.csv").write_text("name,age,height\nAda,36,1.7\n")
    rows = [
        {"image": [0.5, 0.25], "label": n, "year": 2019 + n, "split": "train", "more": n}
        for n in range(4)
    ]
    table: Any = import_module("pyarrow").Table.from_pylist(rows)
    import_module("pyarrow.parquet").write_table(table, "train/1.parquet")
    write_feather: Any = import_module("pyarrow.feather").write_feather
    write_feather(table, "train-1.arrow", compression="uncompressed")
    line = {"user": {"id": 1}, "scores": [1, 2, 3], "words": ["a", "b"]}
    Path("logs/1.jsonl").write_text(json.dumps(line) + "\n")
    with tf.io.TFRecordWriter("names.tfrecord") as writer:
        writer.write(b"a record")
    return {"names": ["names.tfrecord"]}


def from_tensorflow() -> Names:
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 3)
    return {}


def images() -> Names:
    Path("train").mkdir()
    for number in range(3):
        pixels = np.full((240, 250 + number, 3), 40 * number, np.uint8)
        Path(f"train/{number}.jpg").write_bytes(tf.io.encode_jpeg(pixels).item())
    return {}


def strategies() -> Names:
    nnx: Any = import_module("flax.nnx")
    optax: Any = import_module("optax")

    def loss_fn(model: Any, x: Any, y: Any) -> Any:
        return ((model(x) - y) ** 2).mean()

    model = nnx.Linear(2, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    names = {"nnx": nnx, "loss_fn": loss_fn, "strategy": strategy}
    return names | {"model": model, "optimizer": optimizer}


def input_() -> Names:
    return {"step": tf.square}


def performance() -> Names:
    dataset = tf.data.Dataset.range(42, output_type=tf.float32).batch(4)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return {"strategy": strategy, "train_step": tf.reduce_sum, "dataset": dataset}


def training() -> Names:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return {"strategy": strategy, "train_step": tf.square}


def workers() -> Names:
    def save(_: object) -> None:
        return None

    weights = tf.Variable(1.0)
    return {"distributed": [], "weights": weights, "save": save, "train_step": save}


IN_A_CLUSTER = {
    "SLURM_PROCID": "0",
    "SLURM_STEP_NUM_TASKS": "1",
    "SLURM_STEP_NODELIST": "node08",
    "SLURM_STEP_TASKS_PER_NODE": "1",
    "JOB_COMPLETION_INDEX": "0",
    "WORKERS": "1",
}


def machines() -> Names:
    os.environ |= IN_A_CLUSTER
    return {}


def mesh() -> Names:
    return {
        "images": np.zeros((64, 784), np.float32),
        "labels": np.arange(64),
        "losses": lambda batch: batch["x"].sum(1),
    }


PAGES: dict[str, Callable[[], Names]] = {
    "checkpoints": dict,
    "datasets": datasets,
    "files": files,
    "from_grain": dict,
    "from_pytorch": dict,
    "from_tensorflow": from_tensorflow,
    "images": images,
    "input": input_,
    "jax_libraries": dict,
    "keras": dict,
    "machines": machines,
    "mesh": mesh,
    "performance": performance,
    "resume": dict,
    "strategies": strategies,
    "tensors": dict,
    "text": dict,
    "training": training,
    "workers": workers,
}

# What a reader would do next with what a page defines.
AFTERWARDS = {
    "files": "assert [line.numpy().decode() for line in tf.data.TextLineDataset('a.txt')][0] == 'a.txt one'\n"
    "upper = tf.data.TextLineDataset('a.txt').map(lambda line: line.numpy().decode().upper())\n"
    "assert next(iter(upper)) == 'A.TXT ONE'",
    "machines": "from tests.house.docs_setup import IN_A_CLUSTER\n"
    "assert resolver.cluster_spec().as_dict() == {'worker': ['train-0.train:2222']}\n"
    "for name in IN_A_CLUSTER:\n    del os.environ[name]",
    "strategies": "train_step(model, optimizer, np.ones((4, 2), np.float32), np.ones((4, 1), np.float32))",
    "training": "steps = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))\n"
    "train(iter(steps), 2)",
}
