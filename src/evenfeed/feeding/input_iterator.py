"""The iterator of TensorFlow 1's strategies, which can be restarted."""

from typing import Any, final

from evenfeed.core.iteration import Iterator, StepRun
from evenfeed.feeding.distributed_dataset import DistributedDataset
from evenfeed.feeding.step_meters import DistributedStats


@final
class InputIterator(Iterator):
    """An iterator over a distributed dataset that `initialize()` restarts.

    `make_dataset_iterator` and `make_input_fn_iterator` of TensorFlow 1's strategies return it.

    Args:
        dataset: The dataset to read.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> iterator = strategy.make_dataset_iterator(tf.data.Dataset.range(8).batch(4))
        >>> iterator.get_next().array.tolist()
        [0, 1, 2, 3]
        >>> iterator.initialize()
        >>> strategy.experimental_run(lambda x: x * 10, iterator).array.tolist()
        [0, 10, 20, 30]
    """

    def __init__(self, dataset: DistributedDataset) -> None:
        self._dataset = dataset
        self._steps = iter(dataset)

    @property
    def element_spec(self) -> Any:
        """The spec of a step."""
        return self._dataset.element_spec

    def initialize(self) -> None:
        """Restart at the first step."""
        self._steps.close()
        self._steps = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """Restart at the first step. Newer TensorFlow 1 programs read this instead of calling `initialize()`."""
        return self.initialize()

    def __next__(self) -> Any:
        return self._steps.__next__()  # with next(), a Ctrl-C right after it would lose the step

    def peek_run(self, most: int, *, fills: bool = False) -> StepRun | None:
        return self._steps.peek_run(most, fills=fills)

    def take_run(self, run: StepRun) -> bool:
        return self._steps.take_run(run)

    def return_run(self, run: StepRun) -> None:
        self._steps.return_run(run)

    def get_state(self) -> dict[str, Any]:
        return self._steps.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        self._steps.set_state(state)

    def stats(self) -> DistributedStats:
        """Return what each stage has done since the last start. See `DistributedIterator.stats`."""
        return self._steps.stats()
