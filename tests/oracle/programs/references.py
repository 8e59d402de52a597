"""References to tensors, as keys of a dict."""


def references(tf, ask):
    (element,) = tf.data.Dataset.from_tensors([1, 2])
    tensors = {"numbers": tf.constant([1.0, 2.0]), "text": tf.constant("a"), "element": element}
    answers = {}
    for label, x in tensors.items():
        answers |= {
            f"{label} in a dict": ask(lambda x=x: {x.ref(): 1}[x.ref()]),
            f"{label} deref": ask(lambda x=x: x.ref().deref() is x),
            f"{label} is not its value": ask(lambda x=x: x.ref() == x),
            f"{label} of another": ask(lambda x=x: x.ref() == tf.identity(x + x).ref()),
        }
    return answers
