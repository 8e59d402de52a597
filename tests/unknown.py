"""A node whose number of elements is not known before it is read."""

from dataclasses import dataclass

from evenfeed.core.cardinality import UNKNOWN
from evenfeed.core.specs import TensorSpec
from evenfeed.plan.node import Node


@dataclass(frozen=True)
class UnknownSize(Node):
    element_spec = TensorSpec([], "int64")
    size = UNKNOWN
