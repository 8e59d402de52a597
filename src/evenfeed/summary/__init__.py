"""Summaries for TensorBoard: TensorFlow's `tf.summary`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.summaries.summary_values import audio, histogram, image, scalar, text, write
from evenfeed.summaries.summary_writers import (
    SummaryWriter,
    create_file_writer,
    create_noop_writer,
    flush,
    record_if,
    should_record_summaries,
)
from evenfeed.summary import experimental

__all__ = [
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "write",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
