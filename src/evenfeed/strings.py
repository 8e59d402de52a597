"""Functions on text: TensorFlow's `tf.strings`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.text_ops.characters import length, lower, strip, substr, upper
from evenfeed.text_ops.hashing import to_hash_bucket, to_hash_bucket_fast, to_hash_bucket_strong
from evenfeed.text_ops.ngrams import ngrams, unsorted_segment_join
from evenfeed.text_ops.numerals import as_string, format, to_number  # noqa: A004 - TensorFlow's name
from evenfeed.text_ops.patterns import regex_full_match, regex_replace
from evenfeed.text_ops.splitting import bytes_split, join, reduce_join, split
from evenfeed.text_ops.unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_encode,
    unicode_split,
    unicode_split_with_offsets,
    unicode_transcode,
)

__all__ = [
    "as_string",
    "bytes_split",
    "format",
    "join",
    "length",
    "lower",
    "ngrams",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_decode",
    "unicode_decode_with_offsets",
    "unicode_encode",
    "unicode_split",
    "unicode_split_with_offsets",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "Use Python strings inside evenfeed.py_function.")
