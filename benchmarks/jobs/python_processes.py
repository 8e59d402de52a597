"""The job of `python_calls` in two processes. The limit is a plain loop in one."""

from typing import Any

from python_calls import BATCH, ROWS, limit, rows, tokens
from timing import main, rate


def evenfeed(seconds: float) -> dict[str, float]:
    """Ask for two processes."""
    import evenfeed as tf

    spec = tf.TensorSpec([], tf.int64)
    dataset = tf.data.Dataset.range(ROWS).map(tokens, 2, output_signature=spec, processes=True)
    return rate(dataset.batch(BATCH), rows, seconds, step=8)


def grain(seconds: float) -> dict[str, float]:
    """Let two of Grain's processes read."""
    import grain

    dataset = grain.MapDataset.range(ROWS).map(tokens).to_iter_dataset().batch(BATCH)
    options = grain.MultiprocessingOptions(num_workers=2)
    return rate(dataset.mp_prefetch(options), rows, seconds, step=8)


def torch(seconds: float) -> dict[str, float]:
    """Let two workers of a DataLoader call it."""
    from torch.utils.data import DataLoader, Dataset

    class Tokens(Dataset):
        """The rows by number."""

        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, index: int) -> Any:
            return tokens(index)

    return rate(DataLoader(Tokens(), BATCH, num_workers=2), rows, seconds, step=8)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "Grain": grain, "torch": torch}

if __name__ == "__main__":
    main(VARIANTS)
