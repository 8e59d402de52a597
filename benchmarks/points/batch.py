"""200,000 rows of 32 floats: shuffle, map, batch, over the size of a batch."""

from measuring import main
from pipelines import Pipeline, variants

VARIANTS = variants(lambda batch: Pipeline(200_000, 32, batch))

if __name__ == "__main__":
    main(VARIANTS)
