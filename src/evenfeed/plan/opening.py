"""Datasets that are made while another is read."""

from dataclasses import KW_ONLY, dataclass, field
from typing import ClassVar

from evenfeed.core.seeds import seed_of_opening
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Passes


@dataclass(frozen=True)
class Opens(Node):
    """A node that reads datasets which are made on the way, of elements or of files.

    What is random in those follows from the seed, the pass and their number: the same in a pass that is
    resumed, and on all workers.
    """

    _: KW_ONLY
    seed: tuple[int, ...] = field(default_factory=seed_of_opening, compare=False, repr=False)
    passes: Passes = field(default_factory=Passes, compare=False, repr=False)

    reshuffle: ClassVar[bool] = True  # each pass has numbers of its own
