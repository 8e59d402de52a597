"""`Dataset`: all families of its methods together."""

from evenfeed.dataset.face import Face
from evenfeed.dataset.files import FromFiles
from evenfeed.dataset.functions import Functions
from evenfeed.dataset.grouping import Grouping
from evenfeed.dataset.ordering import Ordering
from evenfeed.dataset.rejection_resample import Resampling
from evenfeed.dataset.sources import Sources


class Dataset(Sources, FromFiles, Functions, Ordering, Grouping, Resampling):
    """A sequence of elements, described step by step and read only when iterated over.

    A dataset never changes: each method returns a new one. Elements are NumPy arrays, or tuples and
    dicts of them.

    Examples:
        >>> import evenfeed as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0]}).batch(2)
        >>> [batch["x"].tolist() for batch in dataset]
        [[1.0, 2.0], [3.0]]
    """

    __slots__ = ()


Face.whole = Dataset
