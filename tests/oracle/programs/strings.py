"""tf.strings: on texts of every shape, eagerly and inside a map."""

import numpy as np

_TEXTS = {
    "a scalar": "Hello Wörld",
    "a vector": ["Hello", "", " wörld\t", "a,b,,c"],
    "a matrix": [["Ab c", "de"], ["f", " g h "]],
    "no texts": np.array([], object),
    "a number": 5,
}


def single_texts(tf, ask):
    """Functions with one result for each text."""
    s = tf.strings
    functions = {
        "lower": s.lower,
        "lower utf-8": lambda x: s.lower(x, encoding="utf-8"),
        "upper": s.upper,
        "upper utf-8": lambda x: s.upper(x, encoding="utf-8"),
        "strip": s.strip,
        "length": s.length,
        "length of characters": lambda x: s.length(x, unit="UTF8_CHAR"),
        "as_string": s.as_string,
        "regex_replace": lambda x: s.regex_replace(x, r"([a-e])\w", r"<\1>"),
        "regex_replace once": lambda x: s.regex_replace(x, "l|o", "0", replace_global=False),
        "regex_full_match": lambda x: s.regex_full_match(x, "H.*o|f"),
        "fast hash": lambda x: s.to_hash_bucket_fast(x, 2**40),
        "hash": lambda x: s.to_hash_bucket(x, 97),
        "strong hash": lambda x: s.to_hash_bucket_strong(x, 97, [3, 4]),
        "transcode": lambda x: s.unicode_transcode(x, "UTF-8", "UTF-16-BE"),
        "an unknown unit": lambda x: s.length(x, unit="WORD"),
        "an unknown encoding": lambda x: s.lower(x, encoding="latin1"),
        "a bad pattern": lambda x: s.regex_replace(x, "(", "x"),
        "no buckets": lambda x: s.to_hash_bucket_fast(x, 0),
    }
    return _each(tf, ask, functions)


def several_texts(tf, ask):
    """Functions that split texts and join them."""
    s = tf.strings
    functions = {
        "split": s.split,
        "split at": lambda x: s.split(x, ","),
        "split at two bytes": lambda x: s.split(x, "l,"),
        "split once": lambda x: s.split(x, maxsplit=1),
        "split at nothing": lambda x: s.split(x, ""),
        "bytes_split": s.bytes_split,
        "unicode_split": lambda x: s.unicode_split(x, "UTF-8"),
        "unicode_decode": lambda x: s.unicode_decode(x, "UTF-8"),
        "join": lambda x: s.join([x, "-", x], separator="+"),
        "join one": lambda x: s.join([x]),
        "reduce_join": s.reduce_join,
        "reduce_join rows": lambda x: s.reduce_join(x, axis=-1, separator="/"),
        "reduce_join, an axis kept": lambda x: s.reduce_join(x, axis=0, keepdims=True),
    }
    answers = _each(tf, ask, functions)
    zeros = tf.data.Dataset.from_tensor_slices([b"a b\0", b"\0", b"\0\xff\0"])
    answers |= {f"{name}, of zeros": ask(_all, zeros, f) for name, f in functions.items()}
    rows = tf.data.Dataset.from_tensor_slices([["Ab c", "de"], ["f", " g h "]])
    paths = tf.data.Dataset.from_tensor_slices(["a/cat/1.png", "b/dog/2.png"])
    return answers | {
        "a label from a path": ask(
            _all, paths, lambda path: tf.strings.split(path, "/")[-2] == ["cat", "dog"]
        ),
        "a name from a path": ask(_all, paths, lambda path: tf.strings.split(path, "/")[-1] + ".x"),
        "the spec of split": ask(lambda: paths.map(tf.strings.split).element_spec),
        "the spec of a piece": ask(lambda: paths.map(lambda p: s.split(p, "/")[0]).element_spec),
        "words": ask(_all, paths.map(lambda p: s.split(p, "/")).unbatch(), s.upper),
        "plus": ask(_all, rows, lambda x: x + np.array(["!", "?"])),
        "plus, before": ask(_all, rows, lambda x: "<" + x),
        "the first of each row": ask(_all, rows, lambda x: x[0]),
        "the last of each row": ask(_all, rows, lambda x: x[-1:]),
        "a new axis": ask(_all, rows, lambda x: x[None, ..., ::-1]),
        "never split": ask(lambda: s.split(" a b ", maxsplit=0)),
        "shapes that differ": ask(lambda: s.join([["a", "b"], ["c"]])),
        "no list": ask(lambda: s.join("ab")),
        "an axis that does not exist": ask(lambda: s.reduce_join(["a"], axis=3)),
        "axes in order": ask(lambda: s.reduce_join([["a", "b"], ["c", "d"]], [0, 1])),
        "axes in the other order": ask(lambda: s.reduce_join([["a", "b"], ["c", "d"]], [1, 0])),
    }


def substrings(tf, ask):
    """substr, with positions from both ends."""
    substr = tf.strings.substr
    cases = {
        "from the left": ("thirteen", 0, 3),
        "from the right": ("thirteen", -3, 2),
        "past the end": ("abc", 1, 9),
        "at the end": ("abc", 3, 1),
        "behind the end": ("abc", 4, 1),
        "before the start": ("abc", -4, 1),
        "a negative length": ("abc", 1, -1),
        "of several": (["abc", "defg"], 1, 2),
        "of several, at several": (["abc", "defg"], [0, -2], [1, 2]),
        "of one, at several": ("abc", [0, 1], [1, 2]),
        "shapes that differ": (["abc", "defg"], 1, [1, 2]),
        "floats": ("abc", 1.5, 1),
    }
    answers = {label: ask(substr, *case) for label, case in cases.items()}
    words = tf.data.Dataset.from_tensor_slices(["abc", "dëfg"])
    return answers | {
        "characters": ask(lambda: substr("dëfg", 1, 2, unit="UTF8_CHAR")),
        "in a map": ask(_all, words, lambda x: substr(x, 1, 2)),
        "too far in a map": ask(_all, words, lambda x: substr(x, 4, 2)),
    }


def numbers(tf, ask):
    """to_number and as_string."""
    texts = [
        "1.5",
        " 2 ",
        "1e3",
        "abc",
        "",
        "nan",
        "inf",
        "-Infinity",
        "0x10",
        "1_0",
        "+5",
        "1.",
        ".5",
        "1e400",
        "1e-50",
        "1d",
        "- 1",
        "\uff11",
    ]
    wholes = ["15", " 2 ", "1.5", "99999999999", "-5", "+5", "0x10", "007", ""]
    near = "1.00000005960464477539062500000000000000000001"
    formats = {
        "precision": {"precision": 2},
        "scientific": {"scientific": True},
        "shortest": {"shortest": True},
        "both": {"scientific": True, "shortest": True},
        "width": {"width": 12},
        "zeros": {"width": 12, "fill": "0"},
        "left": {"width": 12, "fill": "-"},
        "sign": {"width": 12, "fill": "+"},
        "space": {"fill": " "},
        "unknown fill": {"width": 5, "fill": "x"},
    }
    values = {
        "floats": [3.14159, -2.0, 1e10],
        "doubles": np.array([1 / 3, 1e300]),
        "ints": [1, -20],
        "bools": [True, False],
        "complex": 1 + 2j,
        "bytes": np.array([200], np.uint8),
    }
    to_number, as_string = tf.strings.to_number, tf.strings.as_string
    rows = tf.data.Dataset.from_tensor_slices(["1.5", "2"])
    return (
        {f"float {text!r}": ask(to_number, text) for text in texts}
        | {f"int32 {text!r}": ask(to_number, text, tf.int32) for text in wholes}
        | {f"uint64 {text!r}": ask(to_number, text, tf.uint64) for text in wholes}
        | {
            "halfway": ask(to_number, near),
            "int8": ask(to_number, "1", tf.int8),
            "in a map": ask(_all, rows, to_number),
            "in a map, as float64": ask(_all, rows, lambda x: to_number(x, tf.float64)),
            "computed with": ask(_all, rows, lambda x: to_number(x) * 2 + 1),
            "of a part": ask(_all, tf.data.Dataset.range(3), as_string),
        }
        | {
            f"{label}, {kind}": ask(as_string, value, **options)
            for label, options in {"plain": {}, **formats}.items()
            for kind, value in values.items()
        }
    )


def formatted(tf, ask):
    """strings.format."""
    format_ = tf.strings.format
    return {
        "two": ask(lambda: format_("x={} y={}", (1, tf.constant([1.5, 2.0])))),
        "a long one": ask(lambda: format_("{}", tf.range(10))),
        "all of it": ask(lambda: format_("{}", tf.range(10), summarize=-1)),
        "none": ask(lambda: format_("none", ())),
        "texts": ask(lambda: format_("{}", tf.constant(["a", "b"]))),
        "bytes": ask(lambda: format_("é{}", tf.constant([b"\xff\\", b"\0"]))),
        "too many": ask(lambda: format_("{}", (1, 2))),
        "another placeholder": ask(lambda: format_("% %", (1, 2), placeholder="%")),
    }


def unicode(tf, ask):
    """Texts that are not valid, offsets, and code points."""
    s = tf.strings
    bad = b"a\xff\xe2\x82b\xf0\x9f\x98"
    return {
        "replaced": ask(lambda: s.unicode_decode(bad, "UTF-8")),
        "ignored": ask(lambda: s.unicode_decode(bad, "UTF-8", errors="ignore")),
        "strict": ask(lambda: s.unicode_decode(bad, "UTF-8", errors="strict")),
        "by another": ask(lambda: s.unicode_decode(bad, "UTF-8", replacement_char=63)),
        "a surrogate": ask(lambda: s.unicode_decode(b"\xed\xa0\x80", "UTF-8")),
        "controls": ask(
            lambda: s.unicode_decode("a\tb\x7f", "UTF-8", replace_control_characters=True)
        ),
        "offsets": ask(lambda: s.unicode_decode_with_offsets(["hé!", ""], "UTF-8")),
        "offsets of bad bytes": ask(lambda: s.unicode_split_with_offsets(bad, "UTF-8")),
        "utf-16": ask(lambda: s.unicode_decode(b"\x00a\x00b", "UTF-16-BE")),
        "unknown encoding": ask(lambda: s.unicode_decode("a", "nope")),
        "encoded": ask(lambda: s.unicode_encode([[104, 233], [8364, 33]], "UTF-8")),
        **{
            f"encoded, of shape {shape}": ask(
                lambda shape=shape: s.unicode_encode(tf.zeros(shape, tf.int32), "UTF-8")
            )
            for shape in ([0], [2, 0], [0, 2], [2, 1, 2])
        },
        "encoded rows": ask(
            lambda: s.unicode_encode(tf.ragged.constant([[104], [233, 33]]), "UTF-8")
        ),
        "out of range": ask(lambda: s.unicode_encode([0x110000, 97], "UTF-8")),
        "out of range, ignored": ask(
            lambda: s.unicode_encode([0x110000, 97], "UTF-8", errors="ignore")
        ),
        "out of range, strict": ask(lambda: s.unicode_encode([0x110000], "UTF-8", errors="strict")),
    }


def _each(tf, ask, functions):
    answers = {}
    for name, function in functions.items():
        for kind, value in _TEXTS.items():
            answers[f"{name}, {kind}"] = ask(lambda f=function, v=value: f(tf.constant(v)))
        scalars = tf.data.Dataset.from_tensor_slices(_TEXTS["a vector"])
        answers[f"{name}, in a map"] = ask(_all, scalars, function)
        rows = tf.data.Dataset.from_tensor_slices(_TEXTS["a matrix"])
        answers[f"{name}, in a map of rows"] = ask(_all, rows, function)
    return answers


def _all(dataset, function):
    return list(dataset.map(function))
