"""The compiled loops over records, which are loaded when the first of them is called."""

from typing import TYPE_CHECKING

from evenfeed.core.lazy import Door

__all__ = ["example_kernels", "record_kernels"]

if TYPE_CHECKING:
    from evenfeed.formats.example import example_kernels
    from evenfeed.formats.tfrecord import record_kernels
else:
    example_kernels = Door("evenfeed.formats.example.example_kernels")
    record_kernels = Door("evenfeed.formats.tfrecord.record_kernels")
