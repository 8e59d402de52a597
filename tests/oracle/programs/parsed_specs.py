"""The static shapes in `element_spec` of parsed examples: fixed features beside features of other kinds."""


def _records(tf):
    def feature(*values):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))

    features = {"vec": feature(*range(6)), "tags": feature(1, 2), "place": feature(0, 1)}
    example = tf.train.Example(features=tf.train.Features(feature=features))
    steps = {"steps": tf.train.FeatureList(feature=[feature(1, 2)] * 3)}
    sequence = tf.train.SequenceExample(
        context=tf.train.Features(feature=features),
        feature_lists=tf.train.FeatureLists(feature_list=steps),
    )
    made = example.SerializeToString(), sequence.SerializeToString()
    return tuple(tf.data.Dataset.from_tensors(record).repeat(4) for record in made)


def _shapes(tf, dataset):
    def shape(spec):
        return spec.shape.as_list() if isinstance(spec, tf.TensorSpec) else type(spec).__name__

    return [shape(spec) for spec in tf.nest.flatten(dataset.element_spec)]


def examples(tf, ask):
    records, _ = _records(tf)
    fixed = {"vec": tf.io.FixedLenFeature([2, 3], tf.int64)}
    other = {
        "varying": tf.io.VarLenFeature(tf.int64),
        "ragged": tf.io.RaggedFeature(tf.int64),
        "sparse": tf.io.SparseFeature("place", "tags", tf.int64, 10),
        "steps": tf.io.FixedLenSequenceFeature([2], tf.int64, allow_missing=True),
    }
    default = {
        "vec": tf.io.FixedLenFeature([3], tf.float32, [0.0] * 3),
        "tags": other["varying"],
    }
    single, several = tf.io.parse_single_example, tf.io.parse_example

    def shapes(dataset, parse, features):
        return ask(lambda: _shapes(tf, dataset.map(lambda r: parse(r, features))))

    asked = {}
    for name, feature in other.items():
        features = {**fixed, "tags": feature}
        asked[f"{name} one"] = shapes(records, single, features)
        asked[f"{name} batch"] = shapes(records.batch(4), several, features)
        whole = records.batch(4, drop_remainder=True)
        asked[f"{name} whole batch"] = shapes(whole, several, features)
    asked["default"] = shapes(records.map(lambda _: b""), single, default)
    return asked


def sequences(tf, ask):
    _, records = _records(tf)
    context = {
        "vec": tf.io.FixedLenFeature([2, 3], tf.int64),
        "tags": tf.io.VarLenFeature(tf.int64),
    }
    steps = {"steps": tf.io.FixedLenSequenceFeature([2], tf.int64)}
    single, several = tf.io.parse_single_sequence_example, tf.io.parse_sequence_example

    def shapes(dataset, parse):
        return ask(lambda: _shapes(tf, dataset.map(lambda r: parse(r, context, steps))))

    return {
        "one": shapes(records, single),
        "batch": shapes(records.batch(4), several),
        "whole batch": shapes(records.batch(4, drop_remainder=True), several),
    }


def later_maps(tf, ask):
    records, _ = _records(tf)
    features = {
        "vec": tf.io.FixedLenFeature([2, 3], tf.int64),
        "tags": tf.io.VarLenFeature(tf.int64),
    }
    parsed = records.map(lambda r: tf.io.parse_single_example(r, features))

    def shapes(function):
        return ask(lambda: _shapes(tf, parsed.map(function)))

    return {
        "batch": ask(lambda: _shapes(tf, parsed.batch(4))),
        "itself": shapes(lambda d: (d["vec"], d["tags"])),
        "arithmetic": shapes(lambda d: (d["vec"] * 2, tf.cast(d["vec"], tf.float32), d["tags"])),
        "zeros": shapes(lambda d: (tf.zeros(d["vec"].shape), d["tags"])),
        "ones": shapes(lambda d: tf.ones(d["vec"].shape)),
        "made sparse": shapes(lambda d: (tf.sparse.from_dense(d["vec"]), d["vec"])),
    }
