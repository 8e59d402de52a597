"""Nothing that comes from a file or a socket is unpickled: a pickle can run any code."""

import ast
import json
import pickle
import socket
import threading
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import evenfeed as tf
from evenfeed.cluster import handshake, meeting

SOURCE = Path(tf.__file__).parent
Dataset = tf.data.Dataset

# The modules that load pickles, and where those come from.
LOADERS = {
    "core/errors.py": "an exception of this process, to see whether it can be pickled",
    "core/text/text_columns.py": "bytes that this module has just made, in memory",
    "runtime/processes/child.py": "the process that started this one, through an inherited socket",
    "runtime/processes/shared_memory.py": "the same, in both directions",
}


class Bomb:
    """An object whose pickle runs code when it is loaded."""

    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert not (tmp_path / "exploded").exists()


def test_the_bomb_explodes_where_pickles_are_loaded(folder):
    pickle.loads(pickle.dumps(Bomb()))
    assert (folder / "exploded").exists()
    (folder / "exploded").unlink()


def loads_pickles(path):
    """Return True if a module uses a function that loads pickles."""
    tree = ast.parse(path.read_text())
    imports = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not imports & {"dill", "shelve", "marshal", "joblib"}, path
    uses = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("pickle", "cloudpickle")
    }
    assert not any(
        isinstance(node, ast.ImportFrom) and node.module in ("pickle", "cloudpickle")
        for node in ast.walk(tree)
    ), path
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    assert "allow_pickle" not in arguments, path
    return bool(uses & {"load", "loads", "Unpickler"})


def test_only_known_modules_load_pickles():
    found = [path for path in SOURCE.rglob("*.py") if loads_pickles(path)]
    assert {path.relative_to(SOURCE).as_posix() for path in found} == {*LOADERS}


def test_a_pickle_in_place_of_a_file_is_refused(folder):
    Path("bomb").write_bytes(pickle.dumps(Bomb()))
    np.save("bomb.npy", np.array([Bomb()], object), allow_pickle=True)
    for name in ("bomb", "bomb.npy"):
        for read in (
            tf.data.TFRecordDataset,
            Dataset.from_parquet,
            Dataset.from_arrow,
            Dataset.from_webdataset,
            Dataset.load,
            lambda path: Dataset.from_json_lines(path, {"x": tf.TensorSpec([], tf.int64)}),
        ):
            with pytest.raises(tf.errors.OpError):
                list(read(name))
        with pytest.raises(tf.errors.OpError):
            tf.io.parse_tensor(Path(name).read_bytes(), tf.string)


def test_a_pickle_inside_a_saved_dataset_a_cache_or_a_table_stays_bytes(folder):
    bomb = pickle.dumps(Bomb())
    dataset = Dataset.from_tensors(bomb)
    dataset.save("saved")
    pyarrow.parquet.write_table(pyarrow.table({"x": [bomb]}), "a.parquet")
    assert [x.numpy() for x in Dataset.load("saved")] == [bomb]
    cached = dataset.cache("cached")
    assert [x.numpy() for x in [*cached, *cached]] == [bomb, bomb]
    assert [x["x"].numpy() for x in Dataset.from_parquet("a.parquet")] == [bomb]
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in (".pages", ".json"):
            path.write_bytes(bomb)
    with pytest.raises(tf.errors.OpError):
        list(Dataset.load("saved"))


def test_a_state_is_json():
    iterator = iter(Dataset.range(9).shuffle(4, seed=1).map(lambda x: x + 1).batch(2))
    next(iterator)
    assert json.loads(json.dumps(iterator.get_state())) == iterator.get_state()
    for state in (pickle.dumps(Bomb()), pickle.dumps(Bomb()).hex(), Bomb(), {"plan": Bomb()}):
        with pytest.raises((tf.errors.OpError, TypeError)):
            iterator.set_state(state)


def test_messages_between_workers_are_json():
    for content in (pickle.dumps(Bomb()), pickle.dumps({"place": Bomb()})):
        with pytest.raises(ValueError, match="codec can't decode"):
            meeting.Claim.parse(handshake.decode(content + b"\n"))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            threading.Thread(target=theirs.sendall, args=(content + b"\n",)).start()
            line = handshake.read_line(ours, 10**9)
            with pytest.raises(ValueError, match="codec can't decode"):
                handshake.parse_greeting(line)
