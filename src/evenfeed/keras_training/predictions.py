"""Predictions of several workers: gathered on each, in the order of the dataset."""

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core.batch_split import Share
from evenfeed.core.lazy_jax import jax
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import DistributedDataset
from evenfeed.keras_training.distribution import current_replicas
from evenfeed.plan.options import AutoShardPolicy, Options
from evenfeed.replicas.mesh import Replicas


class _Thread(threading.local):
    """What a thread predicts from."""

    def __init__(self) -> None:
        self.is_cut = False  # into rows for each replica, by the rule of `Share`


_here: Final = _Thread()


@contextmanager
def in_order_of(x: Any) -> Generator[Any]:
    """Let workers share the rows of each batch of a dataset in this block. Yields the dataset to read.

    Predictions follow the order of the rows, not of the files that each worker would read. With
    `AutoShardPolicy.OFF` every worker has a dataset of its own.
    """
    if isinstance(x, Dataset):
        options = Options()
        policy = x.options().experimental_distribute.auto_shard_policy
        if policy is not AutoShardPolicy.OFF:
            options.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA
            x = x.with_options(options)
        is_cut = policy is not AutoShardPolicy.OFF
    else:
        is_cut = not isinstance(x, DistributedDataset)
    before, _here.is_cut = _here.is_cut, is_cut
    try:
        yield x
    finally:
        _here.is_cut = before


def gathering(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return `make_predict_function`, with predictions gathered from all workers: Keras makes NumPy arrays of them."""

    def make_predict_function(self: Any, force: bool = False) -> Any:
        before = self.predict_function
        own(self, force)
        function, replicas = self.predict_function, current_replicas()
        if function is not before and replicas is not None and replicas.spans:
            self.predict_function = _gathering(function, replicas)
        return self.predict_function

    return make_predict_function


def _gathering(function: Callable[..., Any], replicas: Replicas) -> Callable[..., Any]:
    gather: Any = jax.jit(_same, out_shardings=replicas.replicated)

    def predict(state: Any, iterator: Iterator[Any]) -> Any:
        sizes: list[int] = []
        outputs, state = function(state, _counted(iterator, sizes))
        outputs = gather(outputs)
        if not _here.is_cut or replicas.may_be_shared:
            return outputs, state
        order = row_order(replicas, sizes)
        return jax.tree.map(partial(_reordered, order), outputs), state

    return predict


def _counted(batches: Iterator[Any], sizes: list[int]) -> Iterator[Any]:
    """Yield batches, and add the number of rows of each to `sizes`."""
    for batch in batches:
        sizes.append(jax.tree.leaves(batch)[0].shape[0])
        yield batch


def row_order(replicas: Replicas, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return where the rows of batches are if the rows of their replicas stand one after the other.

    Args:
        replicas: The replicas.
        sizes: The number of rows of each batch.
    """
    each = replicas.local_count
    shares = [
        Share(worker, replicas.count // each, each) for worker in range(replicas.count // each)
    ]
    starts = np.cumsum([0, *sizes])
    orders = [
        start + np.argsort(np.concatenate([share.offsets(rows) for share in shares]))
        for start, rows in zip(starts, sizes, strict=False)
    ]
    return np.concatenate(orders)


def _reordered(order: NDArray[np.int64], rows: Any) -> Any:
    found = np.asarray(rows)
    return found[order] if len(found) == len(order) else found


def _same(outputs: Any) -> Any:
    return outputs
