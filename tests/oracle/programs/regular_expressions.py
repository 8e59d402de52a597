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


def _replaced(tf, ask, texts, patterns, rewrite, **options):
    def all_of(times, pattern):
        column = tf.constant(texts * times)
        return tf.strings.regex_replace(column, pattern, rewrite, **options)[: len(texts)]

    return {
        f"{pattern}, {'many' if times > 1 else 'few'}": ask(all_of, times, pattern)
        for pattern in patterns
        for times in (_FEW, _MANY)
    }
