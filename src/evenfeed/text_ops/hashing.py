"""Maps texts to buckets by the hash functions of TensorFlow, so that buckets are the same in both."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, shortened
from evenfeed.core.text.text_columns import Texts
from evenfeed.text_ops.each_text import EachText, applied
from evenfeed.text_ops.hash_functions import fingerprint64, hash64, siphash


def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """Map each text to a bucket from 0 to `num_buckets` - 1, by the fingerprint of FarmHash.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3).tolist()
        [0, 2, 2]
    """
    del name
    return applied(HashBucket("fast", _buckets(num_buckets)), input)


def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """Map each text to a bucket from 0 to `num_buckets` - 1.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.to_hash_bucket(["Hello", "TensorFlow"], 1000000007).tolist()
        [556243135, 140588495]
    """
    del name
    return applied(HashBucket("plain", _buckets(num_buckets)), input)


def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """Map each text to a bucket by a keyed hash: without the key, nobody can fill one bucket on purpose.

    Args:
        input: The texts.
        num_buckets: The number of buckets.
        key: Two integers.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2]).tolist()
        [2, 0]
    """
    del name
    numbers = to_array(key)
    if numbers.shape != (2,) or numbers.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"key must be two integers, but got {shortened(key)}.",
            fix="pass two integers, such as [1, 2].",
        )
    first, second = (int(number) % 2**64 for number in numbers)
    return applied(HashBucket("strong", _buckets(num_buckets), (first, second)), input)


@final
@dataclass(frozen=True)
class HashBucket(EachText):
    """Maps texts to buckets."""

    kind: str
    buckets: int
    key: tuple[int, int] = (0, 0)

    gives: DType = dtypes.int64

    def each(self, values: list[Any]) -> Array:
        return self.in_buffer(Texts.of(values))

    def in_buffer(self, texts: Texts) -> Array:
        hashed = self._hash(texts.reshape(-1)) % np.uint64(self.buckets)
        return hashed.astype(np.int64).reshape(texts.shape)

    def _hash(self, texts: Texts) -> Array:
        if self.kind == "strong":
            return siphash(texts, self.key)
        return fingerprint64(texts) if self.kind == "fast" else hash64(texts)


def fingerprints(texts: list[bytes]) -> Array:
    """Return the fingerprint of each text, by FarmHash."""
    return fingerprint64(Texts.of(texts))


def _buckets(number: Any) -> int:
    count = int(number)
    if count < 1:
        raise InvalidArgumentError(
            f"num_buckets must be at least 1, but got {count}.", fix="pass the number of buckets."
        )
    return count
