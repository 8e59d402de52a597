"""Which elements come, and in which order."""

from typing import TYPE_CHECKING

from evenfeed.core.arguments import (
    whole_number,
)
from evenfeed.dataset.face import Face, dataset_of, plans_of, shuffle_seed
from evenfeed.plan.buffering import AUTOTUNE, Prefetch
from evenfeed.plan.checking import Ignored, IgnoreErrors, Unique
from evenfeed.plan.combining import Concatenate
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.ordering import SHARD_HINT, HintedShard, Repeat, Shard, Shuffle, Skip, Take

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class Ordering(Face):
    """Which elements come, and in which order."""

    __slots__ = ()

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset":
        """Play the dataset `count` times; without end where `count` is None or negative.

        A round without elements counts like any other. Without a count it is the last one.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        del name
        return dataset_of(Repeat(self._plan, -1 if count is None else whole_number(count, "count")))

    def take(self, count: int, name: str | None = None) -> "Dataset":
        """Keep the first `count` elements; all of them where `count` is -1.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5).take(2)]
            [0, 1]
        """
        del name
        return dataset_of(Take(self._plan, whole_number(count, "count")))

    def skip(self, count: int, name: str | None = None) -> "Dataset":
        """Leave out the first `count` elements; all of them where `count` is -1.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5).skip(3)]
            [3, 4]
        """
        del name
        return dataset_of(Skip(self._plan, whole_number(count, "count")))

    def shard(self, num_shards: int, index: int, name: str | None = None) -> "Dataset":
        """Keep every `num_shards`-th element from `index` on.

        With `evenfeed.data.experimental.SHARD_HINT` for both, and `AutoShardPolicy.HINT`, distribution puts
        the number of workers and the worker's own number here.

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
        """Bring the elements into a random order, each drawn from the next `buffer_size`.

        Args:
            buffer_size: How many elements to draw from; as many as there are for a uniform order. A
                dataset of arrays is shuffled by position: nothing is copied into a buffer.
            seed: Makes the order the same in every run of the program, together with the global one.
            reshuffle_each_iteration: Whether each pass has an order of its own.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(100).shuffle(100, seed=7)
            >>> sorted(int(x) for x in dataset) == list(range(100))
            True
        """
        del name
        size = whole_number(buffer_size, "buffer_size")
        again = reshuffle_each_iteration is not False
        return dataset_of(Shuffle(self._plan, size, shuffle_seed(seed), reshuffle=again))

    def enumerate(self, start: int = 0, name: str | None = None) -> "Dataset":
        """Put a count before each element.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices([10, 20]).enumerate(start=5)
            >>> [(int(i), int(x)) for i, x in dataset]
            [(5, 10), (6, 20)]
        """
        del name
        return dataset_of(Enumerate(self._plan, whole_number(start, "start")))

    def concatenate(self, dataset: "Dataset", name: str | None = None) -> "Dataset":
        """Let the elements of another dataset follow those of this one.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).concatenate(tf.data.Dataset.range(7, 9))]
            [0, 1, 7, 8]
        """
        del name
        return dataset_of(Concatenate(self._plan, *plans_of([dataset])))

    def unique(self, name: str | None = None) -> "Dataset":
        """Leave out elements that came before; they have one part, of int32, int64 or text.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.from_tensor_slices([1, 37, 2, 37, 2, 1]).unique()]
            [1, 37, 2]
        """
        del name
        return dataset_of(Unique(self._plan))

    def prefetch(self, buffer_size: int | None, name: str | None = None) -> "Dataset":
        """Read elements ahead in a thread, while those before are being used.

        Args:
            buffer_size: How many; `AUTOTUNE` (or None) keeps two reads of the consumer's length ready.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(3).prefetch(tf.data.AUTOTUNE)]
            [0, 1, 2]
        """
        del name
        size = AUTOTUNE if buffer_size is None else whole_number(buffer_size, "buffer_size")
        return dataset_of(Prefetch(self._plan, size))

    def ignore_errors(
        self,
        log_warning: bool = False,
        name: str | None = None,
        *,
        max_total: int | None = None,
        max_consecutive: int | None = None,
    ) -> "Dataset":
        """Leave out elements that fail, and go on behind them.

        How many were left out, and which: `ignored_errors()`.

        Args:
            log_warning: Log each error, as a warning of the logger "evenfeed".
            name: Taken for compatibility.
            max_total: Let an error through once so many were ignored in a pass.
            max_consecutive: Let an error through once so many were ignored one behind the other.

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
        """Return what `ignore_errors`, the nearest one, left out in all passes so far.

        It has the number of elements, `count`, and `skipped`: the file, the byte and the reason of each.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.TFRecordDataset(["/none.tfrecord"]).ignore_errors()
            >>> list(dataset)
            []
            >>> [(file, offset, reason[:13]) for file, offset, reason in dataset.ignored_errors().skipped]
            [('/none.tfrecord', None, 'NotFoundError')]
        """
        found = (node for node in self._plan.walk() if isinstance(node, IgnoreErrors))
        nearest = next(found, None)
        return Ignored() if nearest is None else nearest.ignored
