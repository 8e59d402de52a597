"""The default step of summaries: TensorFlow's `tf.summary.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.summaries.summary_values import summary_scope, write_raw_pb
from evenfeed.summaries.summary_writers import get_step, set_step

__all__ = ["get_step", "set_step", "summary_scope", "write_raw_pb"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
