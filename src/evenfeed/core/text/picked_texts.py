"""Picks texts of a constant by indices that a traced function computes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import bytes_array
from evenfeed.core.traced.kernel_stages import Kernel, results_of

# Longer tables would have to be compared with each other in every trace.
_LONGEST: Final = 1 << 14


def picked(texts: Array, indices: object) -> Any:
    """Record that a vector of texts is indexed; None if it is long, or the indices do not follow from an element."""
    if len(texts) > _LONGEST:
        return None
    found = results_of(PickTexts(tuple(texts.tolist())), indices)
    return None if found is None else found[0]


@final
@dataclass(frozen=True)
class PickTexts(Kernel):
    """Returns the texts at indices."""

    texts: tuple[bytes, ...]

    stays_on_host: ClassVar[bool] = True

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        return [TensorSpec(given[0].shape, dtypes.string)]

    def run(self, *columns: Column) -> list[Column]:
        indices = columns[0]
        if isinstance(indices, list):
            return [[self._at(np.asarray(row)) for row in indices]]
        return [self._at(np.asarray(indices))]

    def _at(self, indices: Array) -> Array:
        if indices.size and not 0 <= indices.min() <= indices.max() < len(self.texts):
            raise InvalidArgumentError(
                f"gather got an index from {indices.min()} to {indices.max()}, but there are "
                f"{len(self.texts)} entries.",
                fix="pass indices that are at least 0 and below the length.",
            )
        return self._table.take(indices)

    @cached_property
    def _table(self) -> Array:
        return bytes_array(list(self.texts))
