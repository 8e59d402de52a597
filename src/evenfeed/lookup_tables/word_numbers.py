"""Finds the number of each word of a vocabulary, for texts in a buffer, without a Python object for each text."""

from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.text_columns import Texts

if TYPE_CHECKING:
    from evenfeed.core.text import text_loops
else:
    text_loops = LazyModule("evenfeed.core.text.text_loops")


@final
class WordNumbers:
    """A hash table of words, which are numbered in order. It is built when it is first used."""

    def __init__(self, words: list[bytes]) -> None:
        self._words = words

    def of(self, texts: Texts) -> Positions:
        """Return the number of each text, in the shape of the texts; -1 for others."""
        found = np.empty(texts.size, np.int64)
        starts, stops = texts.starts.reshape(-1), texts.stops.reshape(-1)
        keys, slots = self._table
        text_loops.look_up((texts.data, starts, stops), keys, slots, found)
        return found.reshape(texts.shape)

    @cached_property
    def _table(self) -> tuple[tuple[Array, Positions], Array]:
        """The packed words and where each starts and the last ends, and the slots of the hash table."""
        keys = Texts.of(self._words)
        ends = np.append(np.int64(0), keys.stops)
        # Words are found in random order: a small table stays in the cache of a core.
        slots = np.full(1 << (2 * len(keys)).bit_length(), -1, np.int32)
        text_loops.fill_slots(keys.data, ends, slots)
        return (keys.data, ends), slots

    def __reduce__(self) -> tuple[type["WordNumbers"], tuple[list[bytes]]]:
        return WordNumbers, (self._words,)
