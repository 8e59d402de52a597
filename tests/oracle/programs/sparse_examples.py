"""Sparse features of examples, and sparse tensors as text."""


def features(tf, ask):
    def example(**given):
        held = {}
        for key, values in given.items():
            if isinstance(values[0], int):
                held[key] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
            elif isinstance(values[0], bytes):
                held[key] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
            else:
                held[key] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
        return tf.train.Example(features=tf.train.Features(feature=held)).SerializeToString()

    sparse, parse, one = tf.io.SparseFeature, tf.io.parse_example, tf.io.parse_single_example
    records = [example(i=[3, 1], v=[0.5, 1.5]), example(i=[2], v=[7.0]), example(z=[1])]
    matrix = example(i=[3, 1, 1], j=[0, 2, 1], v=[b"a", b"b", b"c"])
    feature = sparse("i", "v", tf.float32, 10)
    both = {"s": feature, "v": tf.io.VarLenFeature(tf.float32)}
    fixed = {"a": feature, "z": tf.io.FixedLenFeature([], tf.int64, 0)}
    mapped = (
        tf.data.Dataset.from_tensor_slices(records)
        .batch(2)
        .map(lambda batch: parse(batch, {"s": feature})["s"])
    )
    return {
        "one": ask(one, records[0], {"s": feature}),
        "one without": ask(one, records[2], {"s": feature}),
        "batch": ask(parse, records, {"s": feature}),
        "sorted": ask(parse, records, {"s": sparse("i", "v", tf.float32, 10, True)}),
        "matrix": ask(one, matrix, {"s": sparse(["i", "j"], "v", tf.string, [10, 4])}),
        "matrices": ask(parse, [matrix, matrix], {"s": sparse(["i", "j"], "v", tf.string, [9, 4])}),
        "one of a list": ask(parse, records, {"s": sparse(["i"], "v", tf.float32, [10])}),
        "in a map": [tf.sparse.to_dense(batch) for batch in mapped],
        "beside its values": ask(parse, records, both),
        "beside a number": ask(parse, records, fixed),
        "twice at one place": ask(
            parse, [example(i=[1, 1], v=[0.5, 0.25])], {"s": sparse("i", "v", tf.float32, 3)}
        ),
        "too few values": ask(
            parse, [example(i=[1, 2], v=[0.5])], {"s": sparse("i", "v", tf.float32, 3)}
        ),
        "another dtype": ask(parse, records, {"s": sparse("i", "v", tf.int64, 10)}),
        "one size for a list": ask(parse, records, {"s": sparse(["i"], "v", tf.float32, 10)}),
        "a list of sizes for one": ask(parse, records, {"s": sparse("i", "v", tf.float32, [10])}),
        "no key": ask(parse, records, {"s": sparse(None, "v", tf.float32, 10)}),
        "fields": list(feature._fields),
    }


def texts(tf, ask):
    io = tf.io
    tensor = tf.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 4])
    words = tf.SparseTensor([[0, 0, 1]], ["a"], [1, 2, 3])
    many = io.serialize_many_sparse(tensor)
    smaller = io.serialize_sparse(tf.SparseTensor([[1]], [5.0], [9]))
    return {
        "serialized": ask(
            lambda: [
                io.parse_tensor(text, dtype)
                for text, dtype in zip(
                    io.serialize_sparse(tensor), (tf.int64, tf.float32, tf.int64), strict=True
                )
            ]
        ),
        "many": [many.dtype, list(many.shape)],
        "back": ask(io.deserialize_many_sparse, many, tf.float32),
        "back with its rank": ask(io.deserialize_many_sparse, many, tf.float32, rank=2),
        "words": ask(io.deserialize_many_sparse, io.serialize_many_sparse(words), tf.string),
        "of one": ask(io.deserialize_many_sparse, io.serialize_sparse(tensor)[None], tf.float32),
        "the largest shape": ask(
            lambda: io.deserialize_many_sparse(tf.stack([many[0], smaller]), tf.float32)
        ),
        "another rank": ask(io.deserialize_many_sparse, many, tf.float32, rank=3),
        "another dtype": ask(io.deserialize_many_sparse, many, tf.int32),
        "dense": ask(io.serialize_sparse, [1]),
        "dense, many": ask(io.serialize_many_sparse, [[1]]),
        "a vector": ask(io.serialize_many_sparse, tf.SparseTensor([[1]], [1.0], [3])),
        "no tensors": ask(io.deserialize_many_sparse, [[b"a", b"b", b"c"]], tf.float32),
        "no matrix": ask(io.deserialize_many_sparse, [b"a"], tf.float32),
    }
