"""An input pipeline that is stopped in mid-epoch and goes on in another iterator, exactly.

Shuffle, map and batch run on columns: the shuffle chooses positions, the function is traced once and
runs on whole Blocks. The state is a small piece of JSON.
"""

import json

import numpy as np

import evenfeed as tf


def main() -> None:
    first = iter(pipeline())
    seen = [next(first) for _ in range(3)]
    saved = json.dumps(first.get_state())
    rest = [labels.tolist() for _, labels in first]

    again = iter(pipeline())
    again.set_state(json.loads(saved))
    resumed = [labels.tolist() for _, labels in again]

    print(f"the state has {len(saved)} characters")
    print(f"labels of the first batches: {[labels.tolist() for _, labels in seen]}")
    print(f"labels of the rest:          {resumed}")
    assert resumed == rest, "nothing is lost, nothing comes twice"


def pipeline() -> tf.data.Dataset:
    images = np.arange(20 * 4, dtype=np.uint8).reshape(20, 4)
    labels = np.arange(20, dtype=np.int32)
    return (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .shuffle(20, seed=7)
        .map(lambda image, label: (image / 255.0, label))
        .batch(4)
        .prefetch(tf.data.AUTOTUNE)
    )


if __name__ == "__main__":
    main()
