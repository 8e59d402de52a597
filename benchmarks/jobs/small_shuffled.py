"""2,000 TFRecord files of ten records, shuffled, in batches of 128."""

from small_files import variants
from timing import main

VARIANTS = variants(lambda tf, names: tf.data.TFRecordDataset(names).shuffle(10_000))

if __name__ == "__main__":
    main(VARIANTS)
