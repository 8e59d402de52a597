"""`InputIterator`: TensorFlow 1's iterator over distributed input, which can be begun anew."""

from typing import Any, final

from evenfeed.core.iteration import Iterator
from evenfeed.feeding.distributed_dataset import DistributedDataset


@final
class InputIterator(Iterator):
    """The steps of a distributed dataset; `initialize()` begins with the first one again.

    Made by `make_dataset_iterator` and `make_input_fn_iterator` of TensorFlow 1's strategies.

    Args:
        dataset: What it reads.

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
        """The specs of what a step yields."""
        return self._dataset.element_spec

    def initialize(self) -> None:
        """Begin again with the first step."""
        self._steps.close()
        self._steps = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """What newer programs of TensorFlow 1 read in place of calling `initialize()`: it begins again too."""
        return self.initialize()

    def __next__(self) -> Any:
        return self._steps.__next__()  # next() would lose the step where Ctrl-C comes behind it
