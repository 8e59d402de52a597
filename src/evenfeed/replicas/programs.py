"""Traces a function across replicas with its variables, and compiles it."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from evenfeed.core.jax_door import jax, jax_extend_core, jax_tree
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.outputs import is_tensor_leaf
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.replicas.staging import Staging, Unstaged, alive, used
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables import Variable
from evenfeed.tensors.creation import convert_to_tensor

_tree: Any = jax_tree  # whose functions have no types


def refuses_tracing(error: Exception) -> bool:
    """Tell whether `error` says that Python code needs a value that tracing does not have."""
    kinds = jax.errors
    return isinstance(
        error,
        (
            kinds.ConcretizationTypeError,
            kinds.TracerArrayConversionError,
            kinds.TracerIntegerConversionError,
            kinds.TracerBoolConversionError,
            kinds.NonConcreteBooleanIndexError,
        ),
    )


@final
class Program:
    """A function compiled for arguments of one kind.

    Args:
        function: Called with the arguments, traced.
        tree: The structure of the arguments.
        leaves: The arguments: arrays are replaced, all others are constants of the program.
        tensors: Which of them are arrays.
    """

    def __init__(
        self, function: Callable[..., Any], tree: Any, leaves: Sequence[Any], tensors: Sequence[int]
    ) -> None:
        self._tensors = tensors
        self._variables = alive()
        self._apart = _are_apart(_tree.tree_unflatten(tree, leaves))
        self.replicas = None if self._apart else _replicas_of([leaves[i] for i in tensors])
        closed = self._trace(function, tree, list(leaves))
        self._build(closed)

    def _trace(self, function: Callable[..., Any], tree: Any, leaves: list[Any]) -> Any:
        def traced(arrays: list[Any], held: list[Any]) -> list[Any]:
            for index, array in zip(self._tensors, arrays, strict=True):
                leaves[index] = array
            args, kwargs = _tree.tree_unflatten(tree, leaves)
            staging = Staging(dict(zip(self._variables, held, strict=True)), apart=self._apart)
            with contexts.staged(staging):
                result = self._outputs(function(*args, **kwargs), staging)
            self.replicas = None if self._apart else self.replicas or staging.over
            return result

        specs = [_spec(leaves[index]) for index in self._tensors]
        held = [_spec(variable.held) for variable in self._variables]
        try:
            return jax.make_jaxpr(traced)(specs, held)
        except Exception as error:
            if refuses_tracing(error):
                raise Unstaged(_first_line(error)) from error
            raise

    def _outputs(self, result: Any, staging: Staging) -> list[Any]:
        """Keep the structure of a result and what is no tensor in it, and return the tensors."""
        leaves, tree = leaves_of(result)
        settled = [_settled(leaf) for leaf in leaves]
        self._flat, self._tree = _tree.tree_flatten(_tree.tree_unflatten(tree, settled))
        self._computed = [i for i, leaf in enumerate(self._flat) if is_tensor_leaf(leaf)]
        self._written = list(staging.written)
        self._plain = self._plain_places(settled)
        arrays = [self._flat[i] for i in self._computed]
        self._flat = [None if is_tensor_leaf(leaf) else leaf for leaf in self._flat]
        return [*arrays, *(staging.values[v] for v in self._written)]

    def _plain_places(self, leaves: Sequence[Any]) -> list[int]:
        """Return which of the outputs are of no replica: they leave the program as one array."""
        places: list[int] = []
        place = 0
        for leaf in leaves:
            if isinstance(leaf, DistributedValues):
                place += len(_tree.tree_leaves(leaf))
            elif is_tensor_leaf(leaf):
                places.append(place)
                place += 1
        return places

    def _build(self, closed: Any) -> None:
        needed = used(closed.jaxpr, closed.jaxpr.invars)
        first = len(self._tensors)
        self._reads: list[Variable] = [self._variables[i - first] for i in needed if i >= first]
        if not self._apart:
            for variable in (*self._reads, *self._written):
                self.replicas = self.replicas or getattr(variable, "replicas", None)
        self._uses = [i for i in needed if i < first]
        places = [*self._uses, *(i for i in needed if i >= first)]
        del self._variables
        count = len(closed.jaxpr.invars)
        self._consts = [self._placed(const) for const in closed.consts]

        def program(constants: list[Any], *arrays: Any) -> list[Any]:
            every: list[Any] = [0] * count
            for place, array in zip(places, arrays, strict=True):
                every[place] = array
            body = jax_extend_core.ClosedJaxpr(closed.jaxpr, constants)
            return jax_extend_core.jaxpr_as_fun(body)(*every)

        # Parts that differ in shape are no one program: the trace is run step by step.
        self._run = program if self._apart else jax.jit(program)

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """Run on arrays, and let the variables hold what it assigns."""
        given = [arrays[i] for i in self._uses]
        held = [variable.held for variable in self._reads]
        if self.replicas is not None:
            given = [self._placed(array) for array in given]
            held = [self._placed(array) for array in held]
        outputs = self._run(self._consts, *given, *held)
        if self._written:
            for variable, array in zip(self._written, outputs[len(self._computed) :], strict=True):
                variable.hold(array)
        return self._result(outputs)

    def _result(self, outputs: list[Any]) -> Any:
        flat: list[Any] = list(self._flat)
        for index, array in zip(self._computed, outputs, strict=False):
            flat[index] = array
        if self.replicas is not None:
            for place in self._plain:
                index = self._computed[place]
                flat[index] = flat[index].addressable_data(0)
        return _tree.tree_unflatten(self._tree, flat)

    def _placed(self, array: Any) -> Any:
        """Return an array on the devices of the program, itself where it lies there."""
        replicas = self.replicas
        if replicas is None or array.sharding in replicas.shardings:
            return array
        return replicas.everywhere(array)


def _settled(leaf: Any) -> Any:
    """Return a result as a function returns it: Python's numbers become tensors."""
    if isinstance(leaf, Variable):
        return leaf.value()
    if isinstance(leaf, (bool, int, float, complex, np.ndarray, np.generic, str, bytes)):
        return convert_to_tensor(leaf)
    return leaf


def _spec(array: Any) -> Any:
    return jax.ShapeDtypeStruct(
        array.shape, array.dtype, weak_type=getattr(array, "weak_type", False)
    )


def _are_apart(arguments: Any) -> bool:
    """Tell whether a value among the arguments has parts that are not one array."""
    leaves, _ = leaves_of(arguments)
    return any(isinstance(leaf, PerReplica) and leaf.whole is None for leaf in leaves)


def _replicas_of(arrays: Sequence[Any]) -> Replicas | None:
    """Return the replicas that hold one of the arrays; None where all lie on single devices."""
    for array in arrays:
        mesh = getattr(array.sharding, "mesh", None)
        if mesh is not None and mesh.size > 1:
            return Replicas(list(mesh.devices.flat))
    return None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
