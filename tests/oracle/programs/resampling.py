"""rejection_resample, where chance has no say: specs, sizes, errors, and parts that leave no choice."""

from collections import Counter


def rejection_resample(tf, ask):
    data = tf.data.Dataset
    half = [0.5, 0.5]

    def parity(x):
        return tf.cast(x % 2, tf.int32)

    def numbers(count=6):
        return data.range(count)

    def resampled(*args, of=None, function=parity, **kwargs):
        return (of or numbers()).rejection_resample(function, *args, **kwargs)

    def classes(*args, **kwargs):
        return sorted(Counter(int(c) for c, _ in resampled(*args, **kwargs)).items())

    def elements(*args, **kwargs):
        return [(int(c), int(x)) for c, x in resampled(*args, **kwargs)]

    def size(*args, **kwargs):
        return int(resampled(*args, **kwargs).cardinality())

    pairs = data.from_tensor_slices(([0, 1, 1], ["a", "b", "c"]))
    named = data.from_tensor_slices({"x": [0, 1, 1]})
    dataset = resampled([0.3, 0.7], half, seed=1, of=numbers(100))
    return {
        "spec": ask(lambda: resampled([0.3, 0.7]).element_spec),
        "spec, initial given": ask(lambda: resampled([0.3, 0.7], half).element_spec),
        "spec of a tuple": ask(
            lambda: resampled([0.3, 0.7], of=pairs, function=lambda x, _: x).element_spec
        ),
        "spec of a dict": ask(
            lambda: resampled([0.3, 0.7], of=named, function=lambda x: x["x"]).element_spec
        ),
        "spec of a Python int": ask(
            lambda: resampled([0.3, 0.7], function=lambda _: 0).element_spec
        ),
        "size": ask(lambda: size([0.3, 0.7])),
        "size, initial given": ask(lambda: size([0.3, 0.7], half)),
        "size where nothing changes": ask(lambda: size(half, half)),
        "size where one class is wanted": ask(lambda: size([0.0, 1.0], half)),
        "size of endless": ask(lambda: size([0.3, 0.7], of=numbers().repeat())),
        "size of endless, one class": ask(lambda: size([0.0, 1.0], half, of=numbers().repeat())),
        "nothing changes": ask(lambda: elements(half, half)),
        "one class is wanted": ask(lambda: elements([0.0, 1.0], half)),
        "one class is wanted, estimated": ask(lambda: classes([0.0, 1.0], of=numbers(200))),
        "whole numbers": ask(lambda: elements([0, 1], [1, 1])),
        "of nothing": ask(lambda: elements([0.3, 0.7], of=numbers(0))),
        "one class named": ask(lambda: elements([1.0])),
        "two passes are alike": ask(
            lambda: [int(x) for _, x in dataset] == [int(x) for _, x in dataset]
        ),
        "two rounds are alike": ask(
            lambda: [int(x) for _, x in dataset.repeat(2)] == [int(x) for _, x in dataset] * 2
        ),
        "a class too large": ask(lambda: elements([0.0, 1.0], half, function=lambda x: x)),
        "a class too small": ask(lambda: elements([0.0, 1.0], half, function=lambda x: x - 2)),
        "a float class": ask(lambda: resampled([0.3, 0.7], function=lambda x: x / 2)),
        "a bool class": ask(lambda: resampled([0.3, 0.7], function=lambda x: x > 2)),
        "a class for each row": ask(lambda: resampled([0.3, 0.7], of=numbers().batch(2))),
        "no target": ask(lambda: resampled(None)),
        "lengths that differ": ask(lambda: resampled([0.3, 0.7], [0.2, 0.3, 0.5])),
    }
