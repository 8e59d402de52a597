"""The face: `Dataset`, whose methods add one node to a plan; a file for each family of them."""

from evenfeed.dataset.dataset import Dataset
from evenfeed.dataset.face import plan_of, shuffle_seed
from evenfeed.dataset.sources import zipped

__all__ = ["Dataset", "plan_of", "shuffle_seed", "zipped"]
