"""64 MB of rows: shuffle, map, batch 64, over the number of floats in a row. A row counts its bytes."""

from measuring import main
from pipelines import Pipeline, variants

BYTES = 1 << 26


def pipeline(width: int) -> Pipeline:
    """Return the pipeline for rows of so many floats."""
    return Pipeline(min(10**6, BYTES // (4 * width)), width, batch=64, weight=4 * width)


VARIANTS = variants(pipeline)

if __name__ == "__main__":
    main(VARIANTS)
