"""Checkpoints: paths, counters, object graphs, statuses, and what a manager keeps."""

import os
import tempfile
from contextlib import contextmanager


@contextmanager
def _folder():
    with tempfile.TemporaryDirectory() as folder:
        yield folder


def _relative(folder, path):
    return path if path is None else os.path.relpath(path, folder)


def _values(tf, path):
    """Return the names and shapes in a checkpoint, without TensorFlow's own entry."""
    found = tf.train.list_variables(path)
    return [[name, list(shape)] for name, shape in found if not name.startswith("_CHECKPOINTABLE")]


def _model(tf, value):
    model = tf.Module()
    model.w = tf.Variable([value, value])
    model.layers = [tf.Module(), tf.Module()]
    model.layers[0].b = tf.Variable(value)
    model.layers[1].b = tf.Variable(value + 1)
    model.by_name = {"x": tf.Variable(value + 2), "y": 3}
    model.pair = (tf.Variable(value + 3), "text")
    model.same = model.layers[0]
    return model


def _of_model(model):
    held = [model.w, model.layers[0].b, model.layers[1].b, model.by_name["x"], model.pair[0]]
    return [v.numpy().tolist() for v in held]


def paths_and_counters(tf, ask):
    with _folder() as folder:
        prefix = os.path.join(folder, "sub", "ckpt")
        v = tf.Variable(1.0)
        checkpoint = tf.train.Checkpoint(v=v)
        first = checkpoint.save(prefix)
        second = checkpoint.save(prefix)
        written = checkpoint.write(os.path.join(folder, "sub", "lone"))
        latest = tf.train.latest_checkpoint(os.path.join(folder, "sub"))
        state = tf.train.get_checkpoint_state(os.path.join(folder, "sub"))
        other = tf.train.Checkpoint(v=tf.Variable(5.0))
        other.restore(first)
        third = other.save(prefix)
        plain = tf.train.Checkpoint(v=tf.Variable(0.0))
        alone = plain.write(os.path.join(folder, "alone"))
        fresh = tf.train.Checkpoint(v=tf.Variable(7.0))
        return {
            "first": _relative(folder, first),
            "second": _relative(folder, second),
            "written": _relative(folder, written),
            "latest": _relative(folder, latest),
            "state": [_relative(folder, state.model_checkpoint_path)],
            "all in state": [_relative(folder, p) for p in state.all_model_checkpoint_paths],
            "counter": int(checkpoint.save_counter.numpy()),
            "save after restore": _relative(folder, third),
            "names of save": _values(tf, first),
            "names of write": _values(tf, alone),
            "read is consumed": ask(lambda: bool(fresh.read(alone).assert_consumed())),
            "restore of a write": ask(lambda: bool(fresh.restore(alone).assert_consumed())),
            "no folder": tf.train.latest_checkpoint(os.path.join(folder, "none")),
            "no state": tf.train.get_checkpoint_state(os.path.join(folder, "none")),
            "nothing there": ask(lambda: bool(fresh.restore(os.path.join(folder, "none-1")))),
            "value": ask(lambda: tf.train.load_variable(first, "v/.ATTRIBUTES/VARIABLE_VALUE")),
            "no such value": ask(tf.train.load_variable, first, "v"),
            "no checkpoint to load": ask(tf.train.load_checkpoint, os.path.join(folder, "none")),
            "no checkpoint to list": ask(tf.train.list_variables, os.path.join(folder, "none")),
        }


def objects(tf, ask):
    with _folder() as folder:
        model = _model(tf, 1.0)
        path = tf.train.Checkpoint(model=model, step=tf.Variable(3)).save(f"{folder}/ckpt")
        again, step = _model(tf, 10.0), tf.Variable(0)
        checkpoint = tf.train.Checkpoint(model=again, step=step)
        consumed = ask(lambda: bool(checkpoint.restore(path).assert_consumed()))
        rooted = _model(tf, 20.0)
        as_root = tf.train.Checkpoint(root=rooted).save(f"{folder}/root")
        back = _model(tf, 0.0)
        tf.train.Checkpoint(root=back).restore(as_root).assert_consumed()
        nested = tf.train.Checkpoint(inner=tf.train.Checkpoint(v=tf.Variable(4.0)))
        nested_path = nested.save(f"{folder}/nested")
        listed = tf.train.Checkpoint(
            a=[tf.Variable(1.0), tf.Variable(2.0)], d={"k": tf.Variable(3.0)}
        )
        listed_path = listed.save(f"{folder}/listed")
        odd = tf.Module()
        setattr(odd, "a/b", tf.Variable(1.0))
        setattr(odd, "a.b", tf.Variable(2.0))
        return {
            "names": _values(tf, path),
            "consumed": consumed,
            "values": _of_model(again),
            "shared": again.same is again.layers[0],
            "step": int(step.numpy()),
            "names of a root": _values(tf, as_root),
            "values of a root": _of_model(back),
            "names of a nested": _values(tf, nested_path),
            "names in lists": _values(tf, listed_path),
            "names with slashes": _values(tf, tf.train.Checkpoint(o=odd).save(f"{folder}/odd")),
            "text": ask(tf.train.Checkpoint, a="text"),
            "a function": ask(tf.train.Checkpoint, a=len),
            "root and the same name": ask(tf.train.Checkpoint, root=model, w=tf.Variable(1.0)),
            "numbers as keys": ask(
                lambda: tf.train.Checkpoint(d={1: tf.Variable(1.0)}).save(f"{folder}/keys")
            ),
        }


def statuses(tf, ask):
    with _folder() as folder:
        path = tf.train.Checkpoint(a=tf.Variable(1.0), b=tf.Variable(2.0)).save(f"{folder}/c")

        def status_of(**objects):
            return tf.train.Checkpoint(**objects).restore(path)

        def checks(make):
            return [
                ask(lambda: bool(make().assert_consumed())),
                ask(lambda: bool(make().assert_existing_objects_matched())),
                ask(lambda: bool(make().assert_nontrivial_match())),
                ask(lambda: bool(make().expect_partial())),
                ask(lambda: bool(make().initialize_or_restore())),
                ask(lambda: bool(make().run_restore_ops())),
            ]

        def v():
            return tf.Variable(0.0)

        return {
            "all": checks(lambda: status_of(a=v(), b=v())),
            "fewer": checks(lambda: status_of(a=v())),
            "more": checks(lambda: status_of(a=v(), b=v(), c=v())),
            "others": checks(lambda: status_of(x=v())),
            "an empty list more": checks(lambda: status_of(a=v(), b=v(), c=[])),
            "a module more": checks(lambda: status_of(a=v(), b=v(), c=tf.Module())),
            "nothing": checks(status_of),
            "None": checks(lambda: tf.train.Checkpoint(a=v()).restore(None)),
            "another shape": ask(lambda: bool(status_of(a=tf.Variable([1.0, 2.0])))),
            "another dtype": ask(lambda: bool(status_of(a=tf.Variable(1)))),
            "another kind": ask(lambda: bool(status_of(a=tf.Module()))),
        }


def before_the_variables_exist(tf, ask):
    del ask
    with _folder() as folder:
        path = tf.train.Checkpoint(model=_model(tf, 1.0), v=tf.Variable(9.0)).save(f"{folder}/c")
        model = tf.Module()
        checkpoint = tf.train.Checkpoint(model=model)
        status = checkpoint.restore(path)
        model.w = tf.Variable([5.0, 5.0])
        w = model.w.numpy().tolist()
        inner = tf.Module()
        model.layers = [inner]
        inner.b = tf.Variable(5.0)
        model.layers.append(tf.Module())
        model.layers[1].b = tf.Variable(5.0)
        model.by_name = {"x": tf.Variable(5.0)}
        model.pair = (tf.Variable(5.0), 1)
        before = _raised(status.assert_consumed)
        model.same = inner
        checkpoint.v = tf.Variable(5.0)
        after = _raised(status.assert_consumed)
        values = _of_model(model)
        model.w = tf.Variable([6.0, 6.0])
        return {
            "at once": w,
            "values": values,
            "not consumed before": before,
            "consumed after": after,
            "replaced": model.w.numpy().tolist(),
            "consumed when replaced": _raised(status.assert_consumed),
            "on the checkpoint": float(checkpoint.v.numpy()),
            "counter": int(checkpoint.save_counter.numpy()),
        }


def _raised(call):
    try:
        call()
    except AssertionError:
        return True
    return False


def mirrored_variables(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    sync, add = tf.VariableSynchronization, tf.VariableAggregation
    kinds = {
        "mirrored": {},
        "sum": {"synchronization": sync.ON_READ, "aggregation": add.SUM},
        "mean": {"synchronization": sync.ON_READ, "aggregation": add.MEAN},
        "first": {"synchronization": sync.ON_READ, "aggregation": add.ONLY_FIRST_REPLICA},
    }
    with _folder() as folder:
        with strategy.scope():
            made = {name: tf.Variable(1.0, **kind) for name, kind in kinds.items()}

        def step():
            rank = tf.distribute.get_replica_context().replica_id_in_sync_group
            for name in ("sum", "mean", "first"):
                made[name].assign(tf.cast(rank, tf.float32) + 3.0)

        strategy.run(step)
        path = tf.train.Checkpoint(**made).save(f"{folder}/c")
        plain = {name: tf.Variable(0.0) for name in kinds}
        tf.train.Checkpoint(**plain).restore(path).assert_consumed()
        with strategy.scope():
            again = {name: tf.Variable(0.0, **kind) for name, kind in kinds.items()}
        tf.train.Checkpoint(**again).restore(path).assert_consumed()
        with strategy.scope():
            alone = tf.Variable(1.0, synchronization=sync.ON_READ, aggregation=add.NONE)
        return {
            "names": _values(tf, path),
            "in plain variables": {name: float(v.numpy()) for name, v in plain.items()},
            "in mirrored variables": {name: float(v.read_value()) for name, v in again.items()},
            "copies": {
                name: [float(copy) for copy in strategy.experimental_local_results(v)]
                for name, v in again.items()
            },
            "no aggregation": ask(lambda: tf.train.Checkpoint(v=alone).save(f"{folder}/none")),
        }


def iterators(tf, ask):
    with _folder() as folder:
        dataset = tf.data.Dataset.range(10)
        iterator = iter(dataset)
        taken = [int(next(iterator)) for _ in range(3)]
        checkpoint = tf.train.Checkpoint(data=iterator, step=tf.Variable(3))
        path = checkpoint.save(f"{folder}/c")
        again = iter(dataset)
        tf.train.Checkpoint(data=again, step=tf.Variable(0)).restore(path).assert_consumed()
        later = tf.train.Checkpoint(step=tf.Variable(0))
        status = later.restore(path)
        later.data = iter(dataset)
        return {
            "taken": taken,
            "next": int(next(again)),
            "deferred": int(next(later.data)),
            "consumed": ask(lambda: bool(status.assert_consumed())),
            "a dataset": ask(lambda: bool(tf.train.Checkpoint(data=dataset))),
        }


def generators_and_tables(tf, ask):
    with _folder() as folder:
        generator = tf.random.Generator.from_seed(1)
        generator.uniform([3])
        path = tf.train.Checkpoint(g=generator).save(f"{folder}/c")
        then = generator.uniform([2], 0, 100, tf.int32).numpy().tolist()
        again = tf.random.Generator.from_seed(5)
        tf.train.Checkpoint(g=again).restore(path).assert_consumed()
        keys = tf.lookup.KeyValueTensorInitializer(["a"], [1])
        table = tf.lookup.StaticHashTable(keys, 0)
        return {
            "same numbers": again.uniform([2], 0, 100, tf.int32).numpy().tolist() == then,
            "names": [name for name, _ in _values(tf, path)],
            "a table": _values(tf, tf.train.Checkpoint(t=table).save(f"{folder}/table")),
        }


def python_state(tf, ask):
    class Words(tf.train.experimental.PythonState):
        def __init__(self, words):
            self.words = words

        def serialize(self):
            return " ".join(self.words)

        def deserialize(self, string_value):
            text = string_value.decode() if isinstance(string_value, bytes) else string_value
            self.words = text.split(" ")

    with _folder() as folder:
        path = tf.train.Checkpoint(w=Words(["a", "b"])).save(f"{folder}/c")
        again = Words([])
        consumed = ask(lambda: bool(tf.train.Checkpoint(w=again).restore(path).assert_consumed()))
        return {"consumed": consumed, "words": again.words}


def _manager(tf, folder, **kwargs):
    v = tf.Variable(0.0)
    checkpoint = tf.train.Checkpoint(v=v)
    return v, tf.train.CheckpointManager(checkpoint, folder, **kwargs)


def keeping(tf, ask):
    with _folder() as folder:
        v, manager = _manager(tf, folder, max_to_keep=2)
        start = [manager.latest_checkpoint, list(manager.checkpoints)]
        saved = []
        for number in range(4):
            v.assign(float(number))
            saved.append(os.path.basename(manager.save()))
        names = [os.path.basename(p) for p in manager.checkpoints]
        latest = os.path.basename(manager.latest_checkpoint)
        v2, second = _manager(tf, folder, max_to_keep=3)
        known = [os.path.basename(p) for p in second.checkpoints]
        restored = os.path.basename(second.restore_or_initialize())
        numbered = os.path.basename(second.save(checkpoint_number=100))
        after = [os.path.basename(p) for p in second.checkpoints]
        gone = ask(second.checkpoint.restore, os.path.join(folder, "ckpt-1"))
        following = os.path.basename(second.save())
        other = os.path.join(folder, "other")
        w, named = _manager(tf, other, max_to_keep=None, checkpoint_name="model")
        for _ in range(3):
            named.save()
        return {
            "start": start,
            "saved": saved,
            "kept": names,
            "latest": latest,
            "from the folder": os.path.basename(tf.train.latest_checkpoint(folder)),
            "known to another": known,
            "restored": restored,
            "value": float(v2.numpy()),
            "numbered": numbered,
            "after": after,
            "gone": gone,
            "following": following,
            "counter": int(second.checkpoint.save_counter.numpy()),
            "named": [os.path.basename(p) for p in named.checkpoints],
            "directory": named.directory == other,
            "interval": named.checkpoint_interval,
            "unused": [float(w.numpy())],
        }


def intervals(tf, ask):
    with _folder() as folder:
        step = tf.Variable(0)
        checkpoint = tf.train.Checkpoint(step=step)
        calls = []
        manager = tf.train.CheckpointManager(
            checkpoint,
            folder,
            max_to_keep=None,
            step_counter=step,
            checkpoint_interval=3,
            init_fn=lambda: calls.append("made"),
        )
        first = manager.restore_or_initialize()
        saved = []
        for _ in range(8):
            path = manager.save()
            saved.append(path and os.path.basename(path))
            step.assign_add(1)
        forced = manager.save(check_interval=False)
        again = manager.save(check_interval=False)
        return {
            "first": first,
            "init": calls,
            "saved": saved,
            "interval": manager.checkpoint_interval,
            "forced": forced and os.path.basename(forced),
            "again": again and os.path.basename(again),
            "restored": os.path.basename(manager.restore_or_initialize()),
            "init after": list(calls),
            "keep none": ask(tf.train.CheckpointManager, checkpoint, folder, 0),
            "keep less": ask(tf.train.CheckpointManager, checkpoint, folder, -1),
            "no step": ask(
                tf.train.CheckpointManager, checkpoint, folder, 1, checkpoint_interval=2
            ),
        }
