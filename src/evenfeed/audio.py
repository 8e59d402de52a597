"""Sounds: TensorFlow's `tf.audio`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.formats.audio_files import decode_wav, encode_wav

__all__ = ["decode_wav", "encode_wav"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
