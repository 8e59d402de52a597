"""Feeds a PyTorch model: each rank of torch.distributed reads its own rows, and batches share memory by DLPack.

    python examples/pytorch.py
    torchrun --nproc-per-node 2 examples/pytorch.py

The losses are those of one process, whatever the number of ranks. Needs PyTorch.
"""

import os

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

import evenfeed as tf

ROWS, BATCH, EPOCHS = 512, 64, 5


def batches_of(context: tf.distribute.InputContext) -> tf.data.Dataset:
    """Return the batches of one rank: every rank shuffles alike, and takes other rows of each global batch."""
    x = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(np.float32)
    y = x @ np.array([1.5, -0.5, 2.0], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(ROWS, seed=1)
    mine = dataset.shard(context.num_input_pipelines, context.input_pipeline_id)
    size = context.get_per_replica_batch_size(BATCH)
    return mine.batch(size, drop_remainder=True)  # all ranks make equally many steps


class Rows(IterableDataset):
    """An evenfeed dataset for what wants a DataLoader, such as a trainer of another library."""

    def __init__(self, dataset: tf.data.Dataset) -> None:
        self.dataset = dataset

    def __iter__(self):
        for x, y in self.dataset:
            yield torch.from_dlpack(x), torch.from_dlpack(y)

    def __len__(self) -> int:
        return len(self.dataset)


def main() -> None:
    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    if ranks > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    context = tf.distribute.InputContext(ranks, rank, ranks)
    loader = DataLoader(Rows(batches_of(context)), batch_size=None)  # evenfeed has made the batches

    for epoch in range(EPOCHS):
        total = torch.zeros(())
        for x, y in loader:
            assert isinstance(x, torch.Tensor)
            loss = torch.nn.functional.mse_loss(model(x)[:, 0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach()
        if ranks > 1:
            dist.all_reduce(total)
        if rank == 0:
            print(f"epoch {epoch}: loss {float(total) / ranks / len(loader):.5f}, {ranks} ranks")
    assert float(total) / ranks / len(loader) < 0.01
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
