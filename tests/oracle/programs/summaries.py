"""Summaries for TensorBoard, and WAV files: the bytes of event files."""

# pyright: basic

import os
import tempfile

import numpy as np

IMAGES = np.linspace(0, 1, 48, dtype=np.float32).reshape(2, 4, 2, 3)
WITHOUT_TIME = 9  # the tag and the bytes of the time that an event starts with


def _events(tf, act):
    """Return the bytes of the events that `act` writes, without their times."""
    with tempfile.TemporaryDirectory() as folder:
        writer = tf.summary.create_file_writer(folder)
        with writer.as_default():
            act()
        writer.close()
        (name,) = os.listdir(folder)
        records = tf.data.TFRecordDataset(os.path.join(folder, name))
        return [np.asarray(record).item()[WITHOUT_TIME:] for record in records]


def _asked(tf, ask, calls):
    return {label: ask(lambda call=call: _events(tf, call)) for label, call in calls.items()}


def written(tf, ask):
    summary = tf.summary
    numbers = np.random.default_rng(0).normal(0, 1, (5, 7)).astype(np.float32)

    def scoped():
        with tf.name_scope("outer"), tf.name_scope("inner"):
            summary.scalar("a", 1, step=3)

    def stepped():
        summary.experimental.set_step(5)
        summary.scalar("a", 1)
        summary.experimental.set_step(None)

    def under_conditions():
        for condition in (True, False, None, lambda: True, lambda: tf.constant(False)):
            with summary.record_if(condition):
                summary.scalar("a", 1, step=3)

    step = tf.Variable(2, dtype=tf.int64)

    @tf.function
    def compiled(x):
        summary.scalar("loss", x * 2.0, step=step)
        summary.histogram("h", tf.stack([x, x + 1.0]), step=step, buckets=2)
        return x

    def in_functions():
        for number in (1.0, 2.0):
            compiled(tf.constant(number))
            step.assign_add(1)

    calls = {
        "nothing": lambda: None,
        "scalar": lambda: summary.scalar("a", 0.5, step=3, description="hi"),
        "integer": lambda: summary.scalar("a", 7, step=tf.constant(3, tf.int64)),
        "bool": lambda: summary.scalar("a", True, step=1),
        "vector": lambda: summary.scalar("a", [0.5], step=3),
        "no step": lambda: summary.scalar("a", 0.5),
        "in scopes": scoped,
        "default step": stepped,
        "conditions": under_conditions,
        "in functions": in_functions,
        "histogram": lambda: summary.histogram("h", numbers, step=3),
        "few buckets": lambda: summary.histogram("h", numbers, step=3, buckets=3),
        "one value": lambda: summary.histogram("h", [2.0, 2.0], step=3, buckets=3),
        "empty histogram": lambda: summary.histogram("h", np.zeros(0), step=3, buckets=2),
        "integers": lambda: summary.histogram("h", np.arange(10), step=3, buckets=4),
        "text": lambda: summary.text("t", ["x", "é"], step=3),
        "one text": lambda: summary.text("t", "x", step=3, description="d"),
        "table": lambda: summary.text("t", [["x", "y"]], step=3),
        "audio": lambda: summary.audio("au", np.array([[[0.5], [-1.0]]], "f4"), 8000, step=3),
        "audio of others": lambda: summary.audio("au", np.zeros([2, 3], "f4"), 8000, step=3),
        "any tensor": lambda: summary.write("w", tf.constant([1, 2]), step=4),
        "any texts": lambda: summary.write("w", tf.constant(["a", "b"]), step=4),
        "made": lambda: summary.write("w", lambda: tf.constant(1.5), step=4),
        "image of others": lambda: summary.image("im", IMAGES[0], step=3),
    }
    return _asked(tf, ask, calls)


def images(tf, ask):
    def shown(call):
        event = _events(tf, call)[1]
        at = event.index(b"\x89PNG")
        end = event.index(b"IEND") + 8
        return np.asarray(tf.io.decode_png(event[at:end])), event.count(b"\x89PNG")

    return {
        label: ask(lambda call=call: shown(call))
        for label, call in {
            "floats": lambda: tf.summary.image("im", IMAGES * 1.2 - 0.1, step=3),
            "bytes": lambda: tf.summary.image("im", (IMAGES * 255).astype(np.uint8), step=3),
            "one of two": lambda: tf.summary.image("im", IMAGES, step=3, max_outputs=1),
            "one channel": lambda: tf.summary.image("im", IMAGES[..., :1], step=3),
        }.items()
    }


def default_writer(tf, ask):
    summary = tf.summary
    folder = tempfile.mkdtemp()
    closed = summary.create_file_writer(folder)
    closed.close()

    def in_closed():
        with closed.as_default():
            summary.scalar("a", 1, step=1)

    def in_none():
        with summary.create_noop_writer().as_default():
            return bool(summary.scalar("a", 1, step=1))

    def recording(condition):
        with summary.create_file_writer(folder).as_default(), summary.record_if(condition):
            return bool(summary.should_record_summaries())

    def steps():
        with summary.create_file_writer(folder).as_default(step=4):
            inner = int(summary.experimental.get_step())
        return inner, summary.experimental.get_step()

    def scope():
        with tf.name_scope("s"), summary.experimental.summary_scope("n") as (tag, inner):
            return tag, inner

    return {
        "no writer": ask(lambda: bool(summary.scalar("a", 1, step=1))),
        "no writer, no step": ask(lambda: bool(summary.scalar("a", 1))),
        "no writer records": ask(lambda: bool(summary.should_record_summaries())),
        "closed": ask(in_closed),
        "recording": ask(lambda: recording(True)),
        "not recording": ask(lambda: recording(False)),
        "steps": ask(steps),
        "scope": ask(scope),
        "flush of none": ask(summary.flush),
        "closed twice": ask(closed.close),
        "names": ask(lambda: next(name.split(".")[:3] for name in os.listdir(folder))),
        "suffixes": ask(lambda: {name[-3:] for name in os.listdir(folder)} == {".v2"}),
    }


def sounds(tf, ask):
    samples = np.array([[0.0, 0.5], [-1.0, 1.0], [0.3, -2.0], [1e-5, 2e-5]], np.float32)
    encode, decode = tf.audio.encode_wav, tf.audio.decode_wav
    file = np.asarray(encode(samples, 8000)).item()

    def parts(found):
        return np.asarray(found.audio), np.asarray(found.sample_rate)

    other_bits = file[:34] + b"\x08" + file[35:]
    listed = file[:36] + b"LIST\x04\x00\x00\x00abcd" + file[36:]
    return {
        "encoded": ask(lambda: file),
        "encoded doubles": ask(lambda: encode(tf.constant(samples, tf.float64), 8000)),
        "encoded vector": ask(lambda: encode(samples[:, 0], 8000)),
        "encoded without rate": ask(lambda: encode(samples, 0)),
        "decoded": ask(lambda: parts(decode(file))),
        "one channel": ask(lambda: parts(decode(file, desired_channels=1))),
        "three channels": ask(lambda: parts(decode(file, desired_channels=3))),
        "two samples": ask(lambda: parts(decode(file, desired_samples=2))),
        "six samples": ask(lambda: parts(decode(file, desired_samples=6))),
        "another chunk": ask(lambda: parts(decode(listed))),
        "in a map": ask(lambda: parts(next(iter(tf.data.Dataset.from_tensors(file).map(decode))))),
        "other bits": ask(lambda: decode(other_bits)),
        "truncated": ask(lambda: decode(file[:50])),
        "no file": ask(lambda: decode(b"hello")),
        "several": ask(lambda: decode([file])),
    }


def codes(tf, ask):
    import gzip
    import zlib

    texts = ["", "a", "ab", "abc", b"\xff\xfe?>"]
    encode, decode = tf.io.encode_base64, tf.io.decode_base64
    inflate = tf.io.decode_compressed
    record = '{"features": {"feature": {"a": {"int64List": {"value": [7, 8]}}}}}'

    def parsed(found):
        features = {"a": tf.io.FixedLenFeature([2], tf.int64)}
        return np.asarray(tf.io.parse_single_example(found, features)["a"])

    def example(text):
        return parsed(tf.io.decode_json_example(text))

    def mapped(function, values):
        return [np.asarray(x) for x in tf.data.Dataset.from_tensor_slices(values).map(function)]

    return {
        "encoded": ask(lambda: np.asarray(encode(texts))),
        "padded": ask(lambda: np.asarray(encode(texts, pad=True))),
        "decoded": ask(lambda: np.asarray(decode(["", "YQ", "YQ==", "_-4_Pg", "YWJj"]))),
        "decoded in a map": ask(lambda: mapped(decode, ["YQ", "YWJj"])),
        "not base64": ask(lambda: decode("Y*==")),
        "one letter": ask(lambda: decode("Y")),
        "numbers": ask(lambda: decode([1])),
        "zlib": ask(lambda: np.asarray(inflate([zlib.compress(b"hello")], "ZLIB"))),
        "gzip": ask(lambda: np.asarray(inflate(gzip.compress(b"hello"), "GZIP"))),
        "not compressed": ask(lambda: np.asarray(inflate([b"hello"]))),
        "wrong bytes": ask(lambda: inflate([b"hello"], "ZLIB")),
        "unknown compression": ask(lambda: inflate([b"hello"], "LZ4")),
        "json": ask(lambda: example(record)),
        "json in a map": ask(
            lambda: [parsed(x.item()) for x in mapped(tf.io.decode_json_example, [record, record])]
        ),
        "not json": ask(lambda: example("{")),
        "other json": ask(lambda: example('{"a": 1}')),
        "no files": ask(lambda: np.asarray(tf.io.matching_files("/no/such/*"))),
        "schemes": ask(lambda: "" in tf.io.gfile.get_registered_schemes()),
    }
