"""Elements that fail below take, skip, shard and shuffle."""


def _numbers(tf):
    texts = tf.data.Dataset.from_tensor_slices(["1", "2", "x", "y", "3", "4", "5"])
    return texts.map(lambda text: tf.strings.to_number(text, tf.int32))


def _kept(ask, dataset):
    return ask(lambda: [int(element) for element in dataset.ignore_errors()])


def selected(tf, ask):
    return {
        "take": _kept(ask, _numbers(tf).take(4)),
        "take all": _kept(ask, _numbers(tf).take(-1)),
        "skip": _kept(ask, _numbers(tf).skip(3)),
        "skip before": _kept(ask, _numbers(tf).skip(1)),
        "shard": _kept(ask, _numbers(tf).shard(3, 1)),
        "shuffle": ask(lambda: sorted(map(int, _numbers(tf).shuffle(3).ignore_errors()))),
        "enumerate": ask(lambda: [int(i) for i, _ in _numbers(tf).enumerate().ignore_errors()]),
        "repeat": _kept(ask, _numbers(tf).repeat(2)),
    }


def ignored_before(tf, ask):
    good = _numbers(tf).ignore_errors()
    return {
        "take": ask(lambda: [int(element) for element in good.take(4)]),
        "skip": ask(lambda: [int(element) for element in good.skip(3)]),
        "shard": ask(lambda: [int(element) for element in good.shard(3, 1)]),
    }
