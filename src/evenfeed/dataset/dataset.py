"""The public `Dataset` class, assembled from the mixins that define its methods."""

from abc import ABCMeta
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn

from evenfeed.core.names.other_libraries import IN_DATASET
from evenfeed.dataset.caching import Caching
from evenfeed.dataset.face import Face
from evenfeed.dataset.files import FromFiles
from evenfeed.dataset.functions import Functions
from evenfeed.dataset.grouping import Grouping
from evenfeed.dataset.ordering import Ordering
from evenfeed.dataset.packing import Packing
from evenfeed.dataset.rejection_resample import Resampling
from evenfeed.dataset.sources import Sources


def _missing(owner: Any, kind: str, name: str) -> NoReturn:
    """Raise an AttributeError that says what to write, if people from other libraries look for the name."""
    advice = f". {IN_DATASET[name]}" if name in IN_DATASET else ""
    raise AttributeError(f"{kind} has no attribute {name!r}{advice}", name=name, obj=owner)


class _DatasetClass(ABCMeta):
    """The class of `Dataset`: explains the class methods that are missing."""

    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            _missing(cls, f"type object {cls.__name__!r}", name)


class Dataset(
    Sources,
    FromFiles,
    Caching,
    Functions,
    Ordering,
    Grouping,
    Packing,
    Resampling,
    metaclass=_DatasetClass,
):
    """A lazy sequence of elements: nothing is read until you iterate over it.

    Datasets are immutable: each method returns a new one. Elements are NumPy arrays, or tuples and
    dicts of them.

    Examples:
        >>> import evenfeed as tf
        >>> dataset = tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0, 3.0]}).batch(2)
        >>> [batch["x"].tolist() for batch in dataset]
        [[1.0, 2.0], [3.0]]
    """

    # Programs add attributes, such as the class names of a folder. New datasets do not inherit them, as in TensorFlow.
    __slots__ = ("__dict__",)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in dir(
                type(self)
            ):  # a property whose user function raised an AttributeError: raise that one
                return object.__getattribute__(self, name)
            _missing(self, f"{type(self).__name__!r} object", name)


Face.dataset_class = Dataset

# Python names the class of a method in its errors: `Dataset.batch() got an unexpected keyword argument`.
for _family in Dataset.__mro__[1:-1]:
    for _member in vars(_family).values():
        _function = getattr(_member, "__func__", _member)  # of a static method or a class method
        if isinstance(_function, FunctionType):
            _function.__module__, _function.__qualname__ = __name__, f"Dataset.{_function.__name__}"
