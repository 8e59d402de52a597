"""Dtypes, and conversions between them: TensorFlow's `tf.dtypes`."""

from typing import TYPE_CHECKING

from evenfeed.core.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,  # noqa: A004 - TensorFlow's name
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int4,
    int8,
    int16,
    int32,
    int64,
    string,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.casting import cast, complex, saturate_cast  # noqa: A004 - TensorFlow's names

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex64",
    "complex128",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "saturate_cast",
    "string",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

publish(__name__, ["cast", "complex", "saturate_cast"], globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
