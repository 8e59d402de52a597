"""Splits the result of a traced function into tensors and other objects, and puts it together again."""

from collections.abc import Callable, Iterable
from typing import Any, cast, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy_jax import jax
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import Specified
from evenfeed.core.tensor_types import HostText
from evenfeed.replicas.containers import close_containers, open_containers
from evenfeed.replicas.function.staging import Staging, Unstaged
from evenfeed.replicas.keras_variables.keras_handles import is_keras_variable
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.replicas.run.avals import remember_alike
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced, unbound

HOST_ARRAYS: Any = (np.ndarray, np.generic)


def is_tensor_leaf(leaf: Any) -> bool:
    """Return True if a leaf is an input or output of a program. Text and Python values are not."""
    if isinstance(leaf, HOST_ARRAYS):
        return leaf.dtype.kind not in "OSU"
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct))


def as_output(leaf: Any) -> Any:
    """Return a leaf of the result as a tensor: a compiled function returns Python numbers as tensors."""
    if isinstance(leaf, Variable):
        return leaf.value()
    if is_keras_variable(leaf):
        return leaf.value
    if isinstance(leaf, (bool, int, float, complex, str, bytes, *HOST_ARRAYS)):
        return convert_to_tensor(leaf)
    # A program cannot return arrays that the function made and that are committed to several devices.
    if isinstance(leaf, PerReplica) and leaf.whole is None:
        return PerReplica(leaf.values, replicas=leaf.replicas, shapes=leaf.shapes)
    return unbound(leaf)


def is_text_leaf(leaf: Any) -> bool:
    """Return True for a tensor of text, which no program can hold. A str or bytes is a constant."""
    if isinstance(leaf, HostText):
        return True
    return isinstance(leaf, np.ndarray) and cast("Array", leaf).dtype.kind in "OSU"


def text_unstaged() -> Unstaged:
    """Return the reason why a function of text runs as plain Python."""
    return Unstaged("it takes text", expected=True)


def as_tensor(part: Any) -> Any:
    """Return a replica's part of an argument as a tensor.

    Raises:
        Unstaged: It is text, None or an object. A trace for several replicas cannot hold it.
    """
    if is_tensor_leaf(part):
        return part
    if isinstance(part, (bool, int, float, complex)):
        return convert_to_tensor(part)
    raise Unstaged("a replica's part is not a tensor", expected=True)


@final
class Outputs:
    """The result of a replica's function, and the variables that it assigned.

    Attributes:
        written: The variables.
        carried: How many of the last tensors are the state of objects that the caller keeps.
    """

    def __init__(self) -> None:
        self.written: list[Variable] = []
        self.carried = 0
        self._tree: Any = None
        self._leaves: list[Any] = []

    def of(self, result: Any, staging: Staging) -> list[Any]:
        """Store the non-tensors, and return the tensors and the new values of variables.

        Raises:
            Unstaged: The result has text, or a ragged or sparse tensor, and each of several replicas returns its own.
        """
        self._leaves, self._tree = leaves_of(open_containers(result))
        if _has_several(staging) and any(map(_is_on_host, self._leaves)):
            raise Unstaged("it returns a tensor of the host", expected=True)
        self.written = list(staging.written)
        self.carried = staging.carried
        tensors = [leaf for leaf in self._leaves if is_tensor_leaf(leaf)]
        self._leaves = [_TENSOR if is_tensor_leaf(leaf) else leaf for leaf in self._leaves]
        return [*tensors, *(staging.values[v] for v in self.written)]

    @property
    def kind(self) -> Any:
        """The structure of the result and the assigned variables, which must be the same on all replicas."""
        # By identity: variables compare by their values.
        return self._tree, [leaf is _TENSOR for leaf in self._leaves], list(map(id, self.written))

    def filled(self, tensors: Iterable[Any]) -> Any:
        """Return the result with other tensors."""
        left = iter(tensors)
        leaves = [next(left) if leaf is _TENSOR else leaf for leaf in self._leaves]
        return close_containers(packed(self._tree, leaves))


_TENSOR = object()


def _has_several(staging: Staging) -> bool:
    return staging.within is not None and staging.within.count > 1


def _is_on_host(leaf: Any) -> bool:
    """Return True for a tensor that no program can return. A trace has one, where each replica returns its own."""
    return is_text_leaf(leaf) or isinstance(leaf, (RaggedTensor, SparseTensor))


def of_one_replica(
    replicas: Replicas, unflatten: Callable[[list[Any]], Any], outputs: list[Any]
) -> Any:
    """Return a result on a worker with one replica, as plain tensors in place of per-replica values."""
    leaves, tree = leaves_of(unflatten(outputs))
    return packed(tree, [_only_part(replicas, leaf) for leaf in leaves])


def _only_part(replicas: Replicas, leaf: Any) -> Any:
    if not isinstance(leaf, PerReplica) or any(map(is_traced, leaf.opened()[0])):
        return leaf
    (part,) = leaf.values
    if isinstance(part, jax.Array):
        remember_alike(replicas, part)  # it may be passed to the next step
    return part


def is_value(leaf: Any) -> bool:
    """Return True if a compiled function may take and return a leaf as it is."""
    return isinstance(leaf, (*_VALUES, jax.Array)) or is_keras_variable(leaf)


_VALUES = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    np.ndarray,
    np.generic,
    DistributedValues,
    Variable,
    Specified,
)
