"""Methods of a strategy that older programs call. TensorFlow 2 has them, but does not describe them."""

from collections.abc import Callable
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import distributed_from_function
from evenfeed.feeding.input_iterator import InputIterator
from evenfeed.feeding.input_options import InputContext, InputOptions, InputReplicationMode


class OlderMethods:
    """Older names of what a strategy does, and iterators that need no loop."""

    def unwrap(self: Any, value: Any) -> tuple[Any, ...]:
        """Return the parts of a value on this worker, as `experimental_local_results` does."""
        return self.experimental_local_results(value)

    def group(self: Any, value: Any, name: str | None = None) -> Any:
        """Return the part of a value if there is one, else None: everything has been computed without a graph."""
        parts = self.experimental_local_results(value)
        return parts[0] if len(parts) == 1 and name is None else None

    def make_dataset_iterator(self: Any, dataset: Dataset) -> InputIterator:
        """Return an iterator over a dataset whose global batches are split over the replicas."""
        return InputIterator(self.experimental_distribute_dataset(dataset))

    def make_input_fn_iterator(
        self: Any,
        input_fn: Callable[[InputContext], Dataset],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> InputIterator:
        """Return an iterator over the dataset that a function returns, with one batch per replica in each step.

        A last step with too few batches is dropped.

        Args:
            input_fn: Called with an InputContext. Returns a dataset.
            replication_mode: PER_WORKER.
        """
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise ValueError(
                described(
                    f"replication_mode must be PER_WORKER, but got {shortened(replication_mode)}.",
                    fix="use distribute_datasets_from_function with InputOptions.",
                )
            )
        options = InputOptions()
        return InputIterator(
            distributed_from_function(input_fn, self.extended.replicas, options, fills=False)
        )
