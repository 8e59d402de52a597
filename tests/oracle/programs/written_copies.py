"""What `numpy()` of tensors and variables returns may be written to, and is a copy."""


def copies(tf, ask):
    held = {
        "constant": tf.constant([1.0, 2.0]),
        "sum": tf.constant([1, 2]) + 1,
        "variable": tf.Variable([[1.0], [2.0]]),
    }
    return {
        f"{label}, {word}": answer
        for label, tensor in held.items()
        for word, answer in _written(tensor).items()
    }


def _written(tensor):
    copy = tensor.numpy()
    copy[...] = copy.flat[1]
    return {"written": copy.tolist(), "kept": tensor.numpy().tolist()}
