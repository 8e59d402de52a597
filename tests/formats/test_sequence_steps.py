from itertools import count

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example import sequence_steps
from evenfeed.formats.example.features import wanted_of
from evenfeed.formats.example.sequence_steps import steps_at_once

T = tf.train
CONTEXT = {
    "label": tf.io.FixedLenFeature([], tf.int64),
    "tags": tf.io.VarLenFeature(tf.string),
}
LISTS = {
    "ids": tf.io.FixedLenSequenceFeature([], tf.int64),
    "points": tf.io.FixedLenSequenceFeature([2], tf.float32, allow_missing=True, default_value=7),
    "words": tf.io.VarLenFeature(tf.string),
    "rows": tf.io.RaggedFeature(tf.string, value_key="words", row_splits_dtype=tf.int64),
}


def numbers(*values):
    return T.Feature(int64_list=T.Int64List(value=values))


def floats(*values):
    return T.Feature(float_list=T.FloatList(value=values))


def texts(*values):
    return T.Feature(bytes_list=T.BytesList(value=values))


def sequence(context=None, **lists):
    steps = {name: T.FeatureList(feature=held) for name, held in lists.items()}
    return T.SequenceExample(
        context=T.Features(feature=context or {}), feature_lists=T.FeatureLists(feature_list=steps)
    ).SerializeToString()


def record(row):
    lists = {
        "ids": [numbers(row**step) for step in range(row % 6)],
        "words": [texts(*[b"w" * n for n in range((row + step) % 4)]) for step in range(row % 5)],
        "other": [floats(1.5)] * (row % 3),
    }
    if row % 4:
        lists["points"] = [floats(row, step / 4) for step in range(row % 7)]
    if row % 9 == 1:
        lists["words"].append(T.Feature())
    return sequence({"label": numbers(row), "tags": texts(*[b"t"] * (row % 3))}, **lists)


RECORDS = [record(row) for row in range(300)]


def turned(serialized):
    """Return a record whose feature lists are before its context."""
    lists = T.SequenceExample.FromString(serialized)
    context = T.SequenceExample(context=lists.context).SerializeToString()
    lists.ClearField("context")
    return lists.SerializeToString() + context


def shown(value):
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    if isinstance(value, tuple):
        return list(map(shown, value))
    if isinstance(value, tf.SparseTensor):
        return [np.asarray(part).tolist() for part in (value.indices, value.values, value.shape)]
    if isinstance(value, tf.RaggedTensor):
        return [str(value.row_splits.dtype), value.to_list()]
    return [str(value.dtype), np.asarray(value).tolist()]


def outcome(records, context=CONTEXT, lists=LISTS):
    try:
        return shown(tf.io.parse_sequence_example(records, context, lists))
    except InvalidArgumentError as error:
        return error.message


def outcome_one_by_one(records, context=CONTEXT, lists=LISTS):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequence_steps, "is_worth_it", lambda rows: False)
        return outcome(records, context, lists)


def test_feature_lists_at_once_are_those_one_by_one():
    assert steps_at_once(Texts.of(RECORDS), wanted_of(LISTS)) is not None
    assert outcome(RECORDS) == outcome_one_by_one(RECORDS)


@pytest.mark.parametrize(("context", "lists"), [(CONTEXT, None), (None, LISTS)])
def test_either_part_is_parsed_alone(context, lists):
    assert outcome(RECORDS, context, lists) == outcome_one_by_one(RECORDS, context, lists)


def test_sequences_written_otherwise_are_read_among_others():
    unknown = b"\x1a\x01a"
    records = [*RECORDS, turned(RECORDS[7]), RECORDS[8] + unknown, RECORDS[9] + RECORDS[10], b""]
    lists = {key: LISTS[key] for key in ("points", "words")}
    context = {"tags": CONTEXT["tags"]}
    assert steps_at_once(Texts.of(records), wanted_of(lists)) is not None
    assert outcome(records, context, lists) == outcome_one_by_one(records, context, lists)


@pytest.mark.parametrize(
    "wrong",
    [
        sequence({"label": numbers(1)}, ids=[texts(b"a")]),
        sequence({"label": numbers(1)}, ids=[numbers(1, 2)]),
        sequence({"label": numbers(1)}, ids=[T.Feature()]),
        sequence({"label": numbers(1)}, ids=[], words=[numbers(3)]),
        sequence({"label": numbers(1)}, words=[]),
        sequence({"label": texts(b"a")}, ids=[]),
        sequence({}, ids=[]),
        RECORDS[5][:-1],
        b"\x0a\x05",
        b"a",
    ],
    ids=count(),  # the bytes differ: protobuf writes features in any order
)
@pytest.mark.parametrize(("context", "lists"), [(CONTEXT, LISTS), (CONTEXT, None), (None, LISTS)])
def test_the_first_sequence_that_is_wrong_is_named(wrong, context, lists):
    records = [*RECORDS, wrong, *RECORDS[:3], b"broken"]
    found = outcome(records, context, lists)
    assert found == outcome_one_by_one(records, context, lists)
    assert "ecord 30" in found


@pytest.mark.parametrize("seed", range(30))
def test_what_loops_read_is_what_protobuf_reads_whichever_byte_is_changed(seed):
    chance = np.random.default_rng(seed)
    records = list(RECORDS)
    for row in chance.integers(0, len(records), 1 + seed % 2).tolist():
        damaged = bytearray(records[row])
        damaged[chance.integers(len(damaged))] = chance.integers(256)
        records[row] = bytes(damaged)
    assert outcome(records) == outcome_one_by_one(records)
