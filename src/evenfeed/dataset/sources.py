"""Methods that create datasets from values in memory, generators, and other datasets."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import (
    whole_number,
)
from evenfeed.core.conversion import shortened, to_array, to_component
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.dataset.face import Face, dataset_of, plan_of, plans_of, shuffle_seed
from evenfeed.plan.choosing import Choose, Counter, Random, Sample
from evenfeed.plan.combining import Zip
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Take
from evenfeed.plan.sources import FromGenerator, Range, Tensor, TensorSlice, signature_of
from evenfeed.plan.templates import (
    PartHandle,
    as_part,
    counted_parts,
    sliced_parts,
    whole_parts,
)
from evenfeed.plan.windows import DatasetBatch, DatasetLike, DatasetSpec, ElementValue

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class Sources(Face):
    """Methods that create datasets from values in memory, generators, and other datasets."""

    __slots__ = ()

    @staticmethod
    def range(*args: int, output_type: object = dtypes.int64, name: str | None = None) -> "Dataset":
        """Create a dataset of evenly spaced integers, like Python's `range`.

        Args:
            args: `stop`; `start, stop`; or `start, stop, step`.
            output_type: The dtype of the elements.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.range(5, 0, -2)]
            [5, 3, 1]
        """
        del name
        if not 1 <= len(args) <= 3:
            raise ValueError(
                described(
                    f"range takes one to three integers, but got {len(args)} arguments.",
                    fix="call range(stop), range(start, stop) or range(start, stop, step).",
                )
            )
        kind = dtypes.as_dtype(output_type)
        given: list[Any] = list(map(as_part, args))
        numbers: list[Any] = [
            arg if isinstance(arg, PartHandle) else whole_number(arg, "an argument of range")
            for arg in given
        ]
        if (counted := counted_parts(numbers, kind)) is not None:
            return dataset_of(counted)
        start, stop = numbers[:2] if len(numbers) > 1 else (0, numbers[0])
        return dataset_of(Range(start, stop, *numbers[2:], dtype=kind))

    @staticmethod
    def from_tensors(tensors: object, name: str | None = None) -> "Dataset":
        """Create a dataset with a single element, the given value.

        Args:
            tensors: An array, a ragged or sparse tensor, a dataset, an Optional, or a tuple or dict of
                them.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> tf.data.Dataset.from_tensors(([1.0], [2])).element_spec
            (TensorSpec(shape=(1,), dtype=tf.float32, name=None),
             TensorSpec(shape=(1,), dtype=tf.int32, name=None))
        """
        del name
        structure, values = _element(tensors)
        return dataset_of(whole_parts(structure, values) or Tensor(structure, values))

    @staticmethod
    def from_tensor_slices(tensors: object, name: str | None = None) -> "Dataset":
        """Create a dataset of the slices of arrays along their first axis.

        Arrays are not copied. A list becomes an array; a tuple or a dict is a structure.

        Args:
            tensors: An array, a ragged or sparse tensor, or a structure of them with the same first
                dimension.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"]))
            >>> [(int(x), bytes(y.item())) for x, y in dataset]
            [(1, b'a'), (2, b'b')]
        """
        del name
        structure, values = _rows(tensors)
        return dataset_of(sliced_parts(structure, values) or TensorSlice(structure, values))

    @staticmethod
    def from_generator(
        generator: Callable[..., Iterable[Any]],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> "Dataset":
        """Create a dataset of the elements that a generator function yields.

        Each pass calls the function again. Elements are pulled only on demand. A restored iterator
        calls the function and skips the elements before its position, so the function should yield
        the same elements in the same order each time.

        Args:
            generator: A function that yields elements, or returns an iterable of them. Elements have
                the structure of `output_signature`.
            output_types: The dtypes of the components; deprecated in favour of `output_signature`.
            output_shapes: The shapes that go with `output_types`.
            args: Arguments for the function, passed as arrays.
            output_signature: A `TensorSpec`, or a tuple or dict of them. Yielded values are cast to it;
                a value that does not fit raises an error when it is read. Use `RaggedTensorSpec`,
                `SparseTensorSpec`, `DatasetSpec` and `OptionalSpec` for values other than arrays.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> def squares():
            ...     for i in range(3):
            ...         yield i, i * i
            >>> spec = tf.TensorSpec([], tf.int32)
            >>> dataset = tf.data.Dataset.from_generator(squares, output_signature=(spec, spec))
            >>> [(int(x), int(y)) for x, y in dataset]
            [(0, 0), (1, 1), (2, 4)]
        """
        del name
        specs = signature_of(output_types, output_shapes, output_signature)
        signature = map_structure(_with_face, specs, rules=DATA)
        given = () if args is None else tuple(to_array(arg) for arg in args)
        return dataset_of(FromGenerator(generator, signature, given))

    @staticmethod
    def counter(
        start: Any = 0, step: Any = 1, dtype: object = dtypes.int64, name: str | None = None
    ) -> "Dataset":
        """Create an infinite dataset that counts from `start` in steps of `step`.

        Args:
            start: The first element.
            step: The difference between consecutive elements.
            dtype: The dtype of the elements.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.counter(5, -2).take(3)]
            [5, 3, 1]
        """
        del name
        kind = dtypes.as_dtype(dtype)
        first, by = to_array(start, kind).item(), to_array(step, kind).item()
        return dataset_of(Counter(first, by, dtype=kind))

    @staticmethod
    def random(
        seed: int | None = None,
        rerandomize_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Create an infinite dataset of random 32-bit integers.

        Args:
            seed: Combined with the global seed; makes the numbers the same in every run.
            rerandomize_each_iteration: Draw different numbers in each pass.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> first, second = tf.data.Dataset.random(seed=4), tf.data.Dataset.random(seed=4)
            >>> list(first.take(3)) == list(second.take(3))
            True
        """
        del name
        return dataset_of(Random(shuffle_seed(seed), reshuffle=bool(rerandomize_each_iteration)))

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset":
        """Combine the elements of several datasets, until the shortest one ends.

        Args:
            args: Datasets, or a single (nested) tuple or dict of them.
            datasets: The same structure as a keyword argument.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 12)
            >>> [(int(x), int(y)) for x, y in tf.data.Dataset.zip(a, b)]
            [(0, 10), (1, 11)]
        """
        del name
        return zipped(_one_structure(args, datasets))

    @staticmethod
    def choose_from_datasets(
        datasets: "Sequence[Dataset]",
        choice_dataset: "Dataset",
        stop_on_empty_dataset: bool = True,
    ) -> "Dataset":
        """Create a dataset that takes each element from the dataset selected by `choice_dataset`.

        Args:
            datasets: Datasets with compatible element specs.
            choice_dataset: Indices into `datasets`, as int64 scalars.
            stop_on_empty_dataset: Stop when an exhausted dataset is selected. If False, skip that choice.

        Examples:
            >>> import evenfeed as tf
            >>> words = [tf.data.Dataset.from_tensors(word).repeat() for word in ("tick", "tock")]
            >>> dataset = tf.data.Dataset.choose_from_datasets(words, tf.data.Dataset.range(2))
            >>> list(dataset.as_numpy_iterator())
            [b'tick', b'tock']
        """
        parts = plans_of(datasets)
        (choices,) = plans_of([choice_dataset])
        return dataset_of(Choose(parts, choices, stop_on_empty=stop_on_empty_dataset))

    @staticmethod
    def sample_from_datasets(
        datasets: "Sequence[Dataset]",
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> "Dataset":
        """Create a dataset that takes each element from a randomly drawn dataset.

        Args:
            datasets: Datasets with compatible element specs.
            weights: The probability of each dataset: one float per dataset, or a dataset with such a
                vector for each draw. Uniform by default. A dataset with weight 0 is never drawn.
            seed: Combined with the global seed; makes the draws the same in every run.
            stop_on_empty_dataset: Stop when an exhausted dataset is drawn, so that the mixture follows
                the weights. If False, continue with the other datasets.
            rerandomize_each_iteration: Make different draws in each pass.

        Examples:
            >>> import evenfeed as tf
            >>> a, b = tf.data.Dataset.range(3), tf.data.Dataset.range(100, 103)
            >>> mixed = tf.data.Dataset.sample_from_datasets([a, b], weights=[0.5, 0.5], seed=1)
            >>> sorted(int(x) for x in mixed)
            [0, 1, 2, 100, 101, 102]
        """
        parts = plans_of(datasets)
        if not isinstance(weights, Face.dataset_class):
            parts, weights = _weighted(parts, weights)
            if len(parts) == 1:
                return dataset_of(parts[0])
        given: Any = plan_of(weights) if isinstance(weights, Face.dataset_class) else weights
        again = bool(rerandomize_each_iteration)
        sample = Sample(
            parts, given, shuffle_seed(seed), stop_on_empty=stop_on_empty_dataset, reshuffle=again
        )
        return dataset_of(sample)


def _weighted(parts: tuple[Node, ...], weights: Any) -> tuple[tuple[Node, ...], tuple[float, ...]]:
    """Return the datasets with a positive weight and their weights; an empty dataset if there are none."""
    given = np.ones(len(parts)) if weights is None else to_array(weights)
    if given.dtype.kind != "f":
        raise TypeError(
            described(f"weights must be floats, but got {given.dtype}.", fix="pass [0.5, 0.5].")
        )
    if given.shape != (len(parts),):
        raise ValueError(
            described(
                f"Expected {len(parts)} weights, one per dataset, but got shape {given.shape}.",
                fix="pass one weight for each dataset, such as [0.5, 0.5].",
            )
        )
    pairs = [pair for pair in zip(parts, given.tolist(), strict=True) if pair[1] > 0]
    if sum(weight for _, weight in pairs) == np.inf:
        raise InvalidArgumentError(
            f"The weights must have a finite sum, but got {given.tolist()}.",
            fix="divide the weights by the largest one.",
        )
    if not pairs and parts:
        return (Take(parts[0], 0),), (1.0,)
    return tuple(part for part, _ in pairs), tuple(weight for _, weight in pairs)


def _one_structure(args: tuple[Any, ...], datasets: Any) -> Any:
    """Return the structure of datasets passed to `zip`, by position or as `datasets`."""
    given = args if datasets is None else (datasets,)
    if given and (datasets is None or not args):
        return given[0] if len(given) == 1 else given
    raise TypeError(
        described(
            "zip got datasets both by position and as `datasets`."
            if given
            else "zip got no datasets.",
            fix="pass all of them by position, zip(a, b), or all by name, zip(datasets=(a, b)).",
        )
    )


def zipped(structure: Any) -> "Dataset":
    """Zip all datasets in a structure."""
    parts = flatten(structure, DATA)
    for part in parts:
        if not isinstance(part, Face.dataset_class):
            raise TypeError(
                described(
                    f"zip expects datasets, but got {shortened(part)}.",
                    fix="pass datasets, or a tuple or dict of them; a list would become a tensor.",
                )
            )
    return dataset_of(Zip(structure, tuple(map(plan_of, parts))))


def _element(value: object) -> tuple[Any, list[Any]]:
    """Return the structure of `value` and its components."""
    return value, [_part(as_part(leaf)) for leaf in _leaves(value)]


def _part(leaf: object) -> Any:
    if leaf is None or isinstance(leaf, ElementValue | PartHandle):
        return leaf
    datasets = _datasets(leaf)
    return to_component(leaf) if datasets is None else DatasetBatch(datasets)


def _rows(value: object) -> tuple[Any, list[Any]]:
    """Return the structure of `value` and its components."""
    return value, [None if leaf is None else _row_parts(as_part(leaf)) for leaf in _leaves(value)]


def _row_parts(leaf: object) -> Any:
    if isinstance(leaf, RaggedTensor | SparseTensor | PartHandle):
        return leaf
    datasets = _datasets(leaf)
    return to_component(leaf) if datasets is None else datasets


def _datasets(leaf: object) -> list[Any] | None:
    """Return the datasets of a DatasetBatch or of a list of datasets; None for anything else."""
    if isinstance(leaf, DatasetBatch):
        return leaf.datasets
    parts = cast("list[Any]", leaf) if type(leaf) is list else []
    return parts if parts and all(isinstance(part, DatasetLike) for part in parts) else None


def _with_face(spec: Any) -> Any:
    return spec.with_face(Face.dataset_class) if isinstance(spec, DatasetSpec) else spec


def _leaves(value: object) -> list[object]:
    return flatten(value, DATA)
