"""2,000 TFRecord files of ten records, one after the other, in batches of 128."""

from small_files import variants
from timing import main

VARIANTS = variants(lambda tf, names: tf.data.TFRecordDataset(names))

if __name__ == "__main__":
    main(VARIANTS)
