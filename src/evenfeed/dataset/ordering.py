"""Methods that select or reorder elements: repeat, take, skip, shard, shuffle, prefetch, ignore_errors."""

import warnings
from typing import TYPE_CHECKING, Any

from evenfeed.core.arguments import (
    whole_number,
)
from evenfeed.core.callsite import where_called
from evenfeed.dataset.debug_mode import mode
from evenfeed.dataset.face import Face, dataset_of, plans_of, shuffle_seed
from evenfeed.plan.buffering import AUTOTUNE, Prefetch
from evenfeed.plan.checking import IgnoreErrors, Unique
from evenfeed.plan.combining import Concatenate
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.ordering import SHARD_HINT, HintedShard, Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.templates import as_part, counted_by_part
from evenfeed.runtime.live_state import Ignored, ignored_in

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class Ordering(Face):
    """Methods that select or reorder elements."""

    __slots__ = ()

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset":
        """Repeat the dataset.

        An empty round counts as a round. If there are infinitely many rounds, an empty one ends the dataset.

        Args:
            count: The number of rounds; infinite if None or negative.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        del name
        return dataset_of(Repeat(self._plan, -1 if count is None else _count(count)))

    def take(self, count: int, name: str | None = None) -> "Dataset":
        """Keep the first `count` elements.

        Args:
            count: The number of elements to keep; -1 for all.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5).take(2)]
            [0, 1]
        """
        del name
        return dataset_of(Take(self._plan, _count(count)))

    def skip(self, count: int, name: str | None = None) -> "Dataset":
        """Skip the first `count` elements.

        Args:
            count: The number of elements to skip; -1 for all.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5).skip(3)]
            [3, 4]
        """
        del name
        return dataset_of(Skip(self._plan, _count(count)))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> "Dataset":
        """Keep every `num_shards`-th element, starting at `index`.

        If both are `evenfeed.data.experimental.SHARD_HINT` and the policy is `AutoShardPolicy.HINT`, a
        distributed dataset fills in the number of workers and the worker's index.

        Args:
            num_shards: The number of shards.
            index: The shard to keep, from 0 to `num_shards - 1`.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(7).shard(3, 1)]
            [1, 4]
        """
        del name
        shards, number = whole_number(num_shards, "num_shards"), whole_number(index, "index")
        if shards == SHARD_HINT:
            return dataset_of(HintedShard(self._plan))
        return dataset_of(Shard(self._plan, shards, number))

    def shuffle(
        self,
        buffer_size: int,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = True,
        name: str | None = None,
    ) -> "Dataset":
        """Shuffle the elements by drawing each one at random from a buffer of the next `buffer_size`.

        Args:
            buffer_size: The number of elements to draw from; at least the cardinality for a uniform
                shuffle. A dataset of arrays is shuffled by position, without copying into a buffer.
            seed: Combined with the global seed; makes the order the same in every run.
            reshuffle_each_iteration: Use a different order in each pass.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(100).shuffle(100, seed=7)
            >>> sorted(int(x) for x in dataset) == list(range(100))
            True
        """
        del name
        if buffer_size is True:
            _warn_of_one_element()
        size = whole_number(buffer_size, "buffer_size")
        again = reshuffle_each_iteration is not False
        return dataset_of(Shuffle(self._plan, size, shuffle_seed(seed), reshuffle=again))

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset":
        """Pair each element with its index.

        Args:
            start: The index of the first element.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices([10, 20]).enumerate(start=5)
            >>> [(int(i), int(x)) for i, x in dataset]
            [(5, 10), (6, 20)]
        """
        del name
        return dataset_of(Enumerate(self._plan, whole_number(start, "start")))

    def concatenate(self, dataset: "Dataset", name: str | None = None) -> "Dataset":
        """Append the elements of another dataset.

        Args:
            dataset: A dataset with a compatible element spec.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9))]
            [0, 1, 7, 8]
        """
        del name
        return dataset_of(Concatenate(self._plan, *plans_of([dataset])))

    def unique(self, name: str | None = None) -> "Dataset":
        """Drop elements that have occurred before.

        Elements must have a single component, of dtype int32, int64 or string.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()]
            [1, 37, 2]
        """
        del name
        return dataset_of(Unique(self._plan))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> "Dataset":
        """Read elements ahead in a thread, while the consumer works on earlier ones.

        Args:
            buffer_size: The number of elements to read ahead. `AUTOTUNE` or None keeps two reads of
                the consumer's size ready.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(3).prefetch(tf.data.AUTOTUNE)]
            [0, 1, 2]
        """
        del name
        size = AUTOTUNE if buffer_size is None else whole_number(buffer_size, "buffer_size")
        ahead = Prefetch(self._plan, size)
        return dataset_of(ahead.child if mode.is_debugging else ahead)

    def ignore_errors(
        self,
        log_warning: bool = False,
        name: str | None = None,
        *,
        max_total: int | None = None,
        max_consecutive: int | None = None,
    ) -> "Dataset":
        """Drop elements that raise an error, and continue with the next one.

        `ignored_errors()` returns how many elements were dropped, and why.

        Args:
            log_warning: Log each error as a warning, to the logger "evenfeed".
            name: Accepted for compatibility; ignored.
            max_total: The number of errors to ignore in a pass; the next one is raised.
            max_consecutive: The number of consecutive errors to ignore; the next one is raised.

        Examples:
            >>> import evenfeed as tf
            >>> spec = tf.TensorSpec([], tf.int32)
            >>> dataset = tf.data.Dataset.from_generator(lambda: [1, "x", 3], output_signature=spec)
            >>> dataset = dataset.ignore_errors()
            >>> [int(x) for x in dataset], dataset.ignored_errors().count
            ([1, 3], 1)
        """
        del name
        return dataset_of(
            IgnoreErrors(
                self._plan,
                log_warning=log_warning,
                max_total=max_total,
                max_consecutive=max_consecutive,
            )
        )

    def ignored_errors(self) -> Ignored:
        """Return the errors that the last `ignore_errors` has ignored, over all passes so far.

        Returns:
            An object with the number of dropped elements, `count`, and with `skipped`: the file, the
            byte offset and the reason of each.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.TFRecordDataset(["/none.tfrecord"]).ignore_errors()
            >>> list(dataset)
            []
            >>> [(file, offset, reason[:13]) for file, offset, reason in dataset.ignored_errors().skipped]
            [('/none.tfrecord', None, 'NotFoundError')]
        """
        return ignored_in(self._plan)


def _count(value: Any) -> int:
    """Return a count of elements, which may be a placeholder for a part of an element."""
    found = counted_by_part(as_part(value))
    return whole_number(value, "count") if found is None else found


def _warn_of_one_element() -> None:
    """Warn about `shuffle(True)`, which other libraries have. In TensorFlow, it is a buffer of one element."""
    origin = where_called()
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    text = "shuffle(True) draws from a buffer of 1 element, so it keeps the order: pass buffer_size=len(dataset)."
    warnings.warn_explicit(text, UserWarning, filename, line)
