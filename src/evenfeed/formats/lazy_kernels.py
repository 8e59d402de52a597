"""The compiled loops over records, imported on their first call."""

from typing import TYPE_CHECKING

from evenfeed.core.lazy import LazyModule

__all__ = ["example_kernels", "record_kernels"]

if TYPE_CHECKING:
    from evenfeed.formats.example import example_kernels
    from evenfeed.formats.tfrecord import record_kernels
else:
    example_kernels = LazyModule("evenfeed.formats.example.example_kernels")
    record_kernels = LazyModule("evenfeed.formats.tfrecord.record_kernels")
