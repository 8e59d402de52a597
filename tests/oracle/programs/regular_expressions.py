"""Regular expressions, on few texts and on columns that are long enough for compiled loops."""

_FEW, _MANY = 1, 300


def repeated_groups(tf, ask):
    """A repeated group that may take no text, and prefers that or not."""
    texts = ["xaa", "baab", "xab", "aaa", ""]
    patterns = [
        "x(|a)*", "x(|a)*b?", "x(a??)*", "b(|a)+", "x(a*?)*", "x(a|b*)*", "b(a*)+?", "b(|a){2}", "b(|a){1,3}",
        "b(a?){2,3}?", "b(?:|a|b)*",
    ]  # fmt: skip
    return _replaced(tf, ask, texts, patterns, "-")


def first_matches(tf, ask):
    """Only the first match, where the text around it decides, and in text that is not ASCII or not UTF-8."""
    texts = ["aéab", "ab cd", "", "a\nb", "é", b"a\xff b", b"\x00a", b"\xff", "日本 a-b", "  x"]
    patterns = [
        r"\w\pL\b|a", r"\b", r"\B", "^", "$", "(?m)^b|a$", "(?m)$", r"a\b|ab", r"\b(?:|\n)", "b*", "", "é|b", r"\Ba|\z", ".",
        "a|ab", r"\Qab",
    ]  # fmt: skip
    return {
        f"{rewrite}, {label}": answer
        for rewrite in ("X", r"[\0]", r"\\\0\0")
        for label, answer in _replaced(
            tf, ask, texts, patterns, rewrite, replace_global=False
        ).items()
    } | {
        f"groups, {label}": answer
        for label, answer in _replaced(
            tf, ask, texts, [r"(\w)\b(.)"], r"<\2\1\0>", replace_global=False
        ).items()
    }


def open_quotes(tf, ask):
    r"""A quote that begins with \Q ends with \E or with the pattern."""
    texts = ["abc", "a.c", "a|c", "(", "\\", "xabc", "a\\E"]
    patterns = [
        r"\Qabc",
        r"\Qa.c",
        r"\Qa|c",
        r"\Q(",
        "\\Q\\",
        r"x|\Qabc",
        r"\Qa\Eb\Qc",
        r"\Qa\E.c",
        r"\Q",
        r"\\Qabc",
    ]
    return _replaced(tf, ask, texts, patterns, r"<\0>") | {
        f"whole {pattern}": ask(tf.strings.regex_full_match, texts, pattern) for pattern in patterns
    }


def _replaced(tf, ask, texts, patterns, rewrite, **options):
    def all_of(times, pattern):
        column = tf.constant(texts * times)
        return tf.strings.regex_replace(column, pattern, rewrite, **options)[: len(texts)]

    return {
        f"{pattern}, {'many' if times > 1 else 'few'}": ask(all_of, times, pattern)
        for pattern in patterns
        for times in (_FEW, _MANY)
    }
