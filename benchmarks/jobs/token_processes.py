"""The job of `tokens` with the tokenizer in two processes. The limit is plain Python in one."""

from typing import Any

import numpy as np
from timing import main, rate
from tokens import batches, limit, lines, tokenized


def evenfeed(seconds: float) -> dict[str, float]:
    """Call the tokenizer in two processes."""
    import evenfeed as tf

    data = tf.data.Dataset.from_tensor_slices(lines()).repeat()
    spec = tf.TensorSpec([None], tf.int32)
    rows = data.map(tokenized, 2, output_signature=spec, processes=True)
    return rate(batches(rows), np.size, seconds, 4)


def torch(seconds: float) -> dict[str, float]:
    """Let two workers of a DataLoader call the tokenizer; rows of tokens are cut from what they return."""
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Rows(IterableDataset):
        """Rows of tokens; each worker takes every other line."""

        def __iter__(self) -> Any:
            info = get_worker_info()
            own = [line.encode() for line in lines()][info.id :: info.num_workers]
            held, count = list[Any](), 0
            while True:
                for line in own:
                    held.append(tokenized(line))
                    count += len(held[-1])
                    if count >= 1024:
                        flat = np.concatenate(held)
                        yield flat[:1024]
                        held, count = [flat[1024:]], count - 1024

    return rate(DataLoader(Rows(), 8, num_workers=2), lambda batch: batch.numel(), seconds, 4)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "torch": torch}

if __name__ == "__main__":
    main(VARIANTS)
