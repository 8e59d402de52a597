"""Regular expressions that run as automata match what RE2 matches, text by text."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import evenfeed as tf
from evenfeed.text_ops import automata, patterns
from evenfeed.text_ops.patterns import RegexFullMatch, RegexReplace

ATOMS = [
    "a",
    "b",
    r"\d",
    r"\w",
    r"\S",
    ".",
    "[ab]",
    "[^a]",
    "[a-c1]",
    "(a|ab)",
    "(?:b|)",
    r"\.",
    "(a*|b)",
    "(|a)",
    "(a??)",
    "(a*?)",
    "(?:(|b)*|a)",
]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "{2,}"]
PIECES = st.tuples(st.sampled_from(ATOMS), st.sampled_from(REPEATS)).map("".join)
PATTERNS = st.lists(
    st.lists(PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=3
).map("|".join)
TEXTS = st.text(alphabet="ab1. c\né", max_size=12)


def column(texts):
    """Return many texts, so that compiled loops are worth it."""
    return np.array([text.encode() for text in texts] * (1 + 256 // len(texts)), object)


@settings(max_examples=250, deadline=None)
@example(pattern="b(|a)*", texts=["baa"], everywhere=True)
@example(pattern="b(|a)*c?", texts=["baac"], everywhere=True)
@example(pattern="b(a??)*", texts=["baa"], everywhere=True)
@example(pattern="b(|a)+", texts=["baa"], everywhere=False)
@given(pattern=PATTERNS, texts=st.lists(TEXTS, min_size=1, max_size=6), everywhere=st.booleans())
def test_an_automaton_replaces_and_matches_what_re2_does(pattern, texts, everywhere):
    values = column(texts)
    replace = RegexReplace(pattern.encode(), b"-", everywhere)
    assert replace.of(values).tolist() == replace.each(values.tolist()).tolist()
    match = RegexFullMatch(pattern.encode())
    assert match.of(values).tolist() == match.each(values.tolist()).tolist()


@pytest.mark.parametrize(
    "pattern",
    ["<[^>]+>", r"\s+", "[a-z]+?x", "a{2,3}", "(?:ab|a)c?", r"[^a-zA-Z0-9 ]", r"\d+\.\d*"],
)
def test_common_patterns_run_as_automata(pattern):
    assert automata.searching(pattern.encode()) is not None


@pytest.mark.parametrize(
    "pattern",
    ["x(|a)*", "x(|a)*b?", "x(a??)*", "b(|a)+", "b(a*)+?", "b(|a){2}", "^a", "a$", r"\bword", "(?i)a", "(?P<x>a)", "[[:alpha:]]", r"\pL", r"\x41", "é", "a*", "", "a{1000}", r"\Qa\E"],
)  # fmt: skip
def test_other_patterns_are_left_to_re2(pattern):
    assert automata.searching(pattern.encode()) is None


def test_a_text_that_would_be_searched_again_and_again_is_left_to_re2(monkeypatch):
    """Each `a` may start a match, and none does: an automaton alone would read n² bytes."""
    searched = []
    by_re2 = RegexReplace._by_re2
    monkeypatch.setattr(
        RegexReplace,
        "_by_re2",
        lambda self, texts: searched.append(len(texts)) or by_re2(self, texts),
    )
    texts = column(["ab", "a" * 5000, "aab"])
    found = RegexReplace(b"a+b", b"-", everywhere=True).of(texts)
    assert found.tolist()[:3] == [b"-", b"a" * 5000, b"-"]
    assert searched == [len(texts) // 3]


def test_a_rewrite_with_groups_is_left_to_re2():
    found = tf.strings.regex_replace(column(["a1", "b2"]), r"(\w)(\d)", r"\2\1")
    assert found.tolist()[:2] == [b"1a", b"2b"]


def test_results_that_need_much_memory_are_left_to_re2(monkeypatch):
    monkeypatch.setattr(patterns, "_MOST_RESERVED", 10)
    found = tf.strings.regex_replace(column(["abc"]), "b", "x" * 20)
    assert found.tolist()[0] == b"a" + b"x" * 20 + b"c"


def test_a_first_match_with_the_whole_match_and_the_ninth_group_says_what_to_write():
    pattern = "(a)" * 9
    with pytest.raises(tf.errors.UnimplementedError, match=r"\(\?:\.\.\.\)"):
        tf.strings.regex_replace("a" * 9, pattern, r"\0\9", replace_global=False)
    found = tf.strings.regex_replace("a" * 10, pattern, r"\9-", replace_global=False)
    assert found.item() == b"a-a"
