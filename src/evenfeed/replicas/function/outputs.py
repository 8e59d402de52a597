"""What a traced function returned: tensors, and the rest."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Iterable
from typing import Any, final

import numpy as np

from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.containers import close_containers, open_containers
from evenfeed.replicas.function.staging import Staging, Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.replicas.run.avals import remember_alike
from evenfeed.replicas.values import PerReplica
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced


def is_tensor_leaf(leaf: Any) -> bool:
    """Tell whether a leaf of arguments or results is computed with: text and Python's values are not."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return leaf.dtype.kind not in "OSU"
    return isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct))


def as_tensor(part: Any) -> Any:
    """Return a replica's part of an argument as what can be computed with.

    Raises:
        Unstaged: It is text, None or an object: a trace that serves several replicas cannot have it.
    """
    if is_tensor_leaf(part):
        return part
    if isinstance(part, (bool, int, float, complex)):
        return convert_to_tensor(part)
    raise Unstaged("a replica's part is no tensor", expected=True)


@final
class Outputs:
    """What a replica's function returned, and which variables it assigned.

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
        """Keep what is no tensor, and return the tensors and the new values of variables."""
        self._leaves, self._tree = leaves_of(open_containers(result))
        self.written = list(staging.written)
        self.carried = staging.carried
        tensors = [leaf for leaf in self._leaves if is_tensor_leaf(leaf)]
        self._leaves = [_TENSOR if is_tensor_leaf(leaf) else leaf for leaf in self._leaves]
        return [*tensors, *(staging.values[v] for v in self.written)]

    @property
    def kind(self) -> Any:
        """What must be the same for all replicas."""
        # By identity: variables compare by their values.
        return self._tree, [leaf is _TENSOR for leaf in self._leaves], list(map(id, self.written))

    def filled(self, tensors: Iterable[Any]) -> Any:
        """Return the result with other tensors."""
        left = iter(tensors)
        leaves = [next(left) if leaf is _TENSOR else leaf for leaf in self._leaves]
        return close_containers(packed(self._tree, leaves))


_TENSOR = object()


def of_one_replica(
    replicas: Replicas, unflatten: Callable[[list[Any]], Any], outputs: list[Any]
) -> Any:
    """Return a result on a worker with one replica, whose part of a value is a tensor as in plain Python."""
    leaves, tree = leaves_of(unflatten(outputs))
    return packed(tree, [_only_part(replicas, leaf) for leaf in leaves])


def _only_part(replicas: Replicas, leaf: Any) -> Any:
    if not isinstance(leaf, PerReplica) or any(map(is_traced, leaf.opened()[0])):
        return leaf
    (part,) = leaf.values
    if isinstance(part, jax.Array):
        remember_alike(replicas, part)  # it may be passed to the next step
    return part
