"""The compiled loops over records, which are loaded when the first of them is called."""

from typing import TYPE_CHECKING

from evenfeed.core.doors import Door

__all__ = ["example_kernels", "record_kernels"]

if TYPE_CHECKING:
    from evenfeed.formats import example_kernels, record_kernels
else:
    example_kernels = Door("evenfeed.formats.example_kernels")
    record_kernels = Door("evenfeed.formats.record_kernels")
