"""2,000 Parquet files of ten rows, shuffled, in batches of 128."""

from small_parquet import variants
from timing import main

VARIANTS = variants(lambda rows: rows.shuffle(10_000))

if __name__ == "__main__":
    main(VARIANTS)
