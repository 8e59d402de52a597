"""How many elements there are: a count, or one of TensorFlow's two special values."""

from typing import Final

INFINITE: Final = -1
UNKNOWN: Final = -2
