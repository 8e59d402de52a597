"""Datasets as input of `fit`, `evaluate` and `predict`: on the devices ahead of each step, in the order of a plain loop."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.errors import described
from evenfeed.core.iteration import StepRun
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten, map_structure, paths
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import (
    DistributedDataset,
    DistributedIterator,
    distributed,
    replicas_fed_by,
)
from evenfeed.feeding.input_options import InputOptions
from evenfeed.feeding.meshes.global_batches import batches_of_processes
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.class_weights import weighing
from evenfeed.keras_training.distribution import current_replicas
from evenfeed.keras_training.text_inputs import TAKES_TEXT
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reducing import gathered
from evenfeed.replicas.values import PerReplica
from evenfeed.strategy.current import default_strategy
from evenfeed.tensors.device_arrays import unbound


@final
class DatasetAdapter(keras_private.DataAdapter):
    """Gives Keras the batches of a dataset as arrays on the devices.

    Keras makes iterators that it does not use. Reading starts with the first batch that is asked for, so that each epoch
    is one pass over the dataset.

    Args:
        dataset: The dataset.
        class_weight: The weight of each class, or None.
    """

    def __init__(
        self, dataset: Dataset | DistributedDataset, class_weight: dict[int, float] | None = None
    ) -> None:
        weigh = None if class_weight is None else weighing(class_weight)
        replicas = current_replicas()
        if isinstance(dataset, Dataset):
            if replicas is not None or not TAKES_TEXT.get():
                _check_numbers(dataset)
            if weigh is not None:
                dataset, weigh = dataset.map(weigh), None
            on = default_strategy().extended.replicas if replicas is None else replicas
            split = batches_of_processes if on.may_be_shared else distributed
            self._dataset = split(dataset, on, InputOptions())
        else:
            _check_replicas(dataset, replicas)
            self._dataset = dataset
        self._convert: Callable[[Any], Any] = unbound if replicas is None else _whole_on(replicas)
        self._weigh = weigh
        self._is_building = False
        self._kept: tuple[Any, DistributedIterator] | None = None

    @property
    def num_batches(self) -> int | None:
        """The number of batches, or None if it is unknown or infinite."""
        size = self._dataset.cardinality
        return None if size < 0 else size

    @property
    def batch_size(self) -> None:
        """Unknown: a dataset may have batches of any size."""

    @property
    def has_partial_batch(self) -> None:
        """Unknown."""

    @property
    def partial_batch_size(self) -> None:
        """Unknown."""

    @contextmanager
    def building(self) -> Generator[None]:
        """Keep the first batch that is read in this block, and the iterator behind it, for the next pass."""
        self._is_building = True
        try:
            yield
        finally:
            self._is_building = False

    def get_jax_iterator(self) -> Iterator[Any]:
        """Return the batches of a new pass as arrays on the devices."""
        kept, self._kept = self._kept, None
        first, steps = kept or self._started()
        if self._is_building:
            self._kept = (first, steps)
            yield self.arrays(first)
            return
        with closing(steps):
            yield from self._read(first, steps)

    def batches(self) -> "KerasBatches | None":
        """Return the batches of a new pass, which can be read several at once; None while a model is built."""
        if self._is_building:
            return None
        kept, self._kept = self._kept, None
        first, steps = kept or (None, iter(self._dataset))
        return KerasBatches(self, steps, first)

    def _started(self) -> tuple[Any, DistributedIterator]:
        steps = iter(self._dataset)
        for first in steps:
            return first, steps
        raise no_batches()

    def _read(self, first: Any, steps: DistributedIterator) -> Iterator[Any]:
        last = self.num_batches
        for number, step in enumerate(chain((first,), steps), 1):
            if number == last:
                # Keras does not ask for more, but only a pass that was read to its end fills a cache.
                next(steps, None)
            yield self.arrays(step)

    def get_numpy_iterator(self) -> Iterator[Any]:
        """Return the batches of a new pass as arrays, which NumPy can read."""
        return self.get_jax_iterator()

    @property
    def weighs(self) -> bool:
        """Whether the weights of classes are added to each batch when it is read."""
        return self._weigh is not None

    def arrays(self, step: Any) -> Any:
        """Return a step as Keras takes it."""
        batch = map_structure(self._convert, step, rules=DATA)
        if self._weigh is None:
            return batch
        return self._weigh(*batch) if isinstance(batch, tuple) else self._weigh(batch)


@final
class KerasBatches:
    """The batches of one pass, one by one or several at once.

    Args:
        adapter: The adapter.
        steps: The steps of the pass.
        first: The first step, if it was taken before.
    """

    def __init__(self, adapter: DatasetAdapter, steps: DistributedIterator, first: Any) -> None:
        self._adapter = adapter
        self._steps = steps
        self._first = first
        self._number = 0
        self._is_over = False

    def __iter__(self) -> "KerasBatches":
        return self

    def __next__(self) -> Any:
        if self._is_over:  # Keras asks again after an execution that was cut short
            raise StopIteration
        step, self._first = self._first, None
        if step is None:
            step = next(self._steps, None)
        if step is None:
            self._is_over = True
            self._steps.close()
            raise StopIteration if self._number else no_batches()
        self._count(1)
        return keras_private.placed_batch(self._adapter.arrays(step))

    def peek_run(self, most: int) -> StepRun | None:
        """Return up to `most` next batches together, as arrays with room for `most`; None to read the next by itself."""
        if self._adapter.weighs:
            return None
        first, steps = self._first, self._steps
        run = steps.peek_run(most, fills=True) if first is None else steps.as_run(first, most)
        return run and replace(run, value=self._adapter.arrays(run.value))

    def take_run(self, run: StepRun) -> bool:
        """Count batches that `peek_run` returned as read. Return False if others have read some of them."""
        if self._first is None and not self._steps.take_run(run):
            return False
        self._first = None
        self._count(run.count)
        return True

    def _count(self, more: int) -> None:
        self._number += more
        if self._number == self._adapter.num_batches:
            # Keras does not ask for more, but only a pass that was read to its end fills a cache.
            next(self._steps, None)


def no_batches() -> ValueError:
    """Return the error for a dataset without batches."""
    return ValueError(
        described(
            "The dataset has no batches.",
            fix="check its files and filters: next(iter(dataset)) should return a batch.",
        )
    )


def _whole_on(replicas: Replicas) -> Callable[[Any], Any]:
    """Return a function that makes one array of a value of a step."""

    def whole(value: Any) -> Any:
        if not isinstance(value, PerReplica):
            return value
        array = value.whole
        if array is not None:
            return array
        if value.parts[0] is None:
            return None
        # the replicas have different numbers of rows
        return replicas.everywhere(gathered(replicas, value, 0))

    return whole


def _check_numbers(dataset: Dataset) -> None:
    spec = dataset.element_spec
    for path, part in zip(paths(spec, DATA), flatten(spec, DATA), strict=True):
        if isinstance(part, TensorSpec) and part.dtype == dtypes.string:
            raise TypeError(
                described(
                    f"Keras on JAX takes numbers, but component {path or 'x'} of the dataset is {part}.",
                    fix="turn text into numbers with dataset.map: evenfeed.keras.layers has TextVectorization and "
                    "StringLookup, evenfeed.strings has to_hash_bucket_fast and to_number.",
                )
            )


def _check_replicas(dataset: DistributedDataset, replicas: Replicas | None) -> None:
    if replicas is not replicas_fed_by(dataset):
        raise ValueError(
            described(
                "The dataset is distributed over other replicas than the model.",
                fix="create and compile the model in the scope of the strategy that distributed the dataset: "
                "with strategy.scope(): ...",
            )
        )
