"""The `Dataset` class. Each method adds a node to the plan; each module holds one group of methods."""

from evenfeed.dataset.dataset import Dataset
from evenfeed.dataset.face import plan_of, shuffle_seed
from evenfeed.dataset.sources import zipped

__all__ = ["Dataset", "plan_of", "shuffle_seed", "zipped"]
