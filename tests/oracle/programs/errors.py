"""The errors, made as TensorFlow's programs make them."""


def forms(tf, ask):
    end, error = tf.errors.OutOfRangeError, tf.errors.OpError
    return {
        "by place": _facts(ask, lambda: end("node", "op", "m")),
        "by keyword": _facts(ask, lambda: end(node_def=None, op=None, message="m")),
        "with a node": _facts(ask, lambda: end(node_def="node", op="op", message="m")),
        "with a code": _facts(ask, lambda: error(None, None, "m", 3)),
        "with a code by keyword": _facts(
            ask, lambda: error(node_def="node", op=None, message="m", error_code=5)
        ),
    }


def _facts(ask, make):
    return ask(lambda: _told(make()))


def _told(error):
    return [error.node_def, error.op, error.message, error.error_code]
