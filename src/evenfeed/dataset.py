"""The face: `Dataset`, whose methods add one node to a plan."""

from collections.abc import Iterator
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number, yes_or_no
from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import described
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.runtime.elements import ElementIterator


@final
class Dataset:
    """A sequence of elements, described step by step and read only when iterated over.

    A dataset never changes: each method returns a new one. Elements are NumPy arrays, or tuples and
    dicts of them.

    Examples:
        >>> import evenfeed as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0]}).batch(2)
        >>> [batch["x"].tolist() for batch in dataset]
        [[1.0, 2.0], [3.0]]
    """

    __slots__ = ("_plan",)

    def __init__(self, plan: Node) -> None:
        if not isinstance(plan, Node):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"A Dataset is not made of {type(plan).__name__} directly.",
                    fix="call Dataset.from_tensor_slices(value) or another Dataset.from_… method.",
                )
            )
        self._plan = plan

    @staticmethod
    def range(*args: int, output_type: object = dtypes.int64, name: str | None = None) -> "Dataset":
        """Count like Python's range: `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5, 0, -2)]
            [5, 3, 1]
        """
        del name
        if not 1 <= len(args) <= 3:
            raise ValueError(
                described(
                    f"range takes one to three numbers, but got {len(args)}.",
                    fix="call range(stop), range(start, stop) or range(start, stop, step).",
                )
            )
        numbers = [whole_number(arg, "an argument of range") for arg in args]
        start, stop = numbers[:2] if len(numbers) > 1 else (0, numbers[0])
        return Dataset(Range(start, stop, *numbers[2:], dtype=dtypes.as_dtype(output_type)))

    @staticmethod
    def from_tensors(tensors: object, name: str | None = None) -> "Dataset":
        """Make a dataset of one element: the value itself.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.from_tensors(([1.0], [2])).element_spec
            (TensorSpec(shape=(1,), dtype=tf.float32, name=None),
             TensorSpec(shape=(1,), dtype=tf.int32, name=None))
        """
        del name
        return Dataset(Tensor(*_arrays(tensors)))

    @staticmethod
    def from_tensor_slices(tensors: object, name: str | None = None) -> "Dataset":
        """Make a dataset of the rows of one array, or of a structure of arrays of one length.

        Arrays are not copied. A list becomes an array; a tuple or a dict is a structure.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"]))
            >>> [(int(x), bytes(y.item())) for x, y in dataset]
            [(1, b'a'), (2, b'b')]
        """
        del name
        return Dataset(TensorSlice(*_arrays(tensors)))

    def repeat(self, count: int | None = None, name: str | None = None) -> "Dataset":
        """Play the dataset `count` times; without end where `count` is None or negative.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(2).repeat(2)]
            [0, 1, 0, 1]
        """
        del name
        return Dataset(Repeat(self._plan, -1 if count is None else whole_number(count, "count")))

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Stack consecutive elements into batches along a new leading axis.

        Args:
            batch_size: Number of elements in a full batch, over all replicas.
            drop_remainder: Drop a short last batch, so that every batch has one shape and XLA
                compiles once.
            num_parallel_calls: Taken for compatibility: batches are cut from columns.
            deterministic: Taken for compatibility: the order is always kept.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> [b.tolist() for b in tf.data.Dataset.range(5).batch(2)]
            [[0, 1], [2, 3], [4]]
        """
        del num_parallel_calls, deterministic, name
        size = whole_number(batch_size, "batch_size")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        return Dataset(Batch(self._plan, size, drop_remainder=drop))

    @property
    def element_spec(self) -> Any:
        """The specs of an element's parts, in the structure of an element."""
        return self._plan.element_spec

    def cardinality(self) -> np.int64 | int:
        """Return how many elements there are, `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.range(5).batch(2).cardinality()
            np.int64(3)
        """
        size = self._plan.size
        return np.int64(size) if size < 2**63 else size  # exact also where 64 bits do not suffice

    def as_numpy_iterator(self) -> Iterator[Any]:
        """Iterate over the elements as plain NumPy values: scalar text as bytes.

        Examples:
            >>> import evenfeed as tf
            >>> list(tf.data.Dataset.from_tensor_slices(["a", "b"]).as_numpy_iterator())
            [b'a', b'b']
        """
        return (map_structure(_unwrapped, element, rules=DATA) for element in self)

    def __iter__(self) -> ElementIterator:
        return ElementIterator(self._plan)

    def __len__(self) -> int:
        size = self._plan.size
        if size in (INFINITE, UNKNOWN):
            kind = "endless" if size == INFINITE else "not known before it is read"
            raise TypeError(
                described(
                    f"The dataset has no len(): its length is {kind}.",
                    fix="ask cardinality(), which has a value for both cases.",
                )
            )
        return size

    def __bool__(self) -> bool:
        return True  # a dataset is a value, however many elements it has

    def __repr__(self) -> str:
        return f"<_{type(self._plan).__name__}Dataset element_spec={self.element_spec!r}>"


def plan_of(dataset: Dataset) -> Node:
    """Return the plan behind the face."""
    return dataset._plan  # pyright: ignore[reportPrivateUsage] - the door for the layers above


def _arrays(value: object) -> tuple[Any, list[Array | None]]:
    """Return the structure of `value`, and its parts as arrays."""
    return value, [None if part is None else to_array(part) for part in flatten(value, DATA)]


def _unwrapped(part: Any) -> Any:
    return part if part is None or part.ndim else part[()]
