"""Experimental names: TensorFlow's `tf.train.experimental`, and saving iterators with Orbax's `CheckpointManager`."""

from typing import TYPE_CHECKING

from evenfeed.checkpoints.own_states import PythonState
from evenfeed.core.publish import members_of, publish, refusal

if TYPE_CHECKING:
    from evenfeed.checkpoints.orbax_items import IteratorHandler, RestoreIterator, SaveIterator

__all__ = ["IteratorHandler", "PythonState", "RestoreIterator", "SaveIterator"]

publish(__name__, ["PythonState"], globals())

if not TYPE_CHECKING:
    _missing = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )

    # Imports Orbax only when one of its handlers is first used.
    __getattr__ = members_of("evenfeed.checkpoints.orbax_items", __name__, _missing)
