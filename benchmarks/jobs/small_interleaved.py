"""2,000 TFRecord files of ten records, interleaved four at a time, in batches of 128."""

from small_files import variants
from timing import main

VARIANTS = variants(
    lambda tf, names: tf.data.Dataset.from_tensor_slices(names).interleave(
        tf.data.TFRecordDataset, cycle_length=4
    )
)

if __name__ == "__main__":
    main(VARIANTS)
