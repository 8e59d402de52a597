"""The numbers of a range: shuffle, map, batch 1024, over the number of rows."""

from measuring import main
from pipelines import Pipeline, variants

VARIANTS = variants(lambda rows: Pipeline(rows, width=0, batch=1024))

if __name__ == "__main__":
    main(VARIANTS)
