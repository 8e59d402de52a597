"""The result of `get_concrete_function`: one program of a function, to inspect and to call."""

from collections.abc import Callable, Sequence
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.core.specs import CompositeSpec, TensorSpec, TypeSpec
from evenfeed.replicas.function.outputs import is_tensor_leaf, text_unstaged
from evenfeed.replicas.function.programs import Program
from evenfeed.replicas.function.signatures import Parameters, specs_of
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.replicas.values import PerReplica, PerReplicaSpec
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import held_dtype


def from_specs(arguments: Any) -> Any:
    """Replace the specs among the arguments by abstract arrays.

    Raises:
        OpenShapeError: A spec has an unknown length.
        Unstaged: A spec is for text, a dataset or another object that no program holds.
    """
    leaves, tree = leaves_of(arguments)
    return packed(
        tree, [_from_spec(leaf) if isinstance(leaf, TypeSpec) else leaf for leaf in leaves]
    )


def _from_spec(spec: TypeSpec) -> Any:
    if isinstance(spec, TensorSpec) and spec.dtype == dtypes.string:
        raise text_unstaged()
    if isinstance(spec, TensorSpec):
        return jax.ShapeDtypeStruct(_full(spec), held_dtype(spec.dtype))
    if isinstance(spec, CompositeSpec) and not isinstance(spec, PerReplicaSpec):
        raise Unstaged("it takes a dataset or another object", expected=True)
    first = spec.value_specs[0] if isinstance(spec, PerReplicaSpec) else None
    if (
        isinstance(spec, PerReplicaSpec)
        and isinstance(first, TensorSpec)
        and len(set(spec.value_specs)) == 1
    ):
        count = len(spec.value_specs)
        rows, *others = _full(first) or (1,)
        struct: Any = jax.ShapeDtypeStruct((rows * count, *others), held_dtype(first.dtype))
        return PerReplica(array=struct, lifted=first.shape.rank == 0, count=count)
    raise ValueError(
        described(f"No program can be traced for {spec}.", fix="pass a value instead of the spec.")
    )


class OpenShapeError(Exception):
    """Raised for a spec with an unknown length: no single program fits it."""


def _full(spec: TensorSpec) -> tuple[int, ...]:
    lengths = [length for length in spec.shape or () if length is not None]
    if len(lengths) != spec.shape.rank:
        raise OpenShapeError
    return tuple(lengths)


class _WithoutProgram:
    """A function for one signature that has no single program.

    Args:
        name: The name of the function.
        call: Calls it.
        arguments: Its arguments, or their specs.
        parameters: Its parameters.

    Attributes:
        name: The name of the function.
    """

    def __init__(
        self, name: str, call: Callable[..., Any], arguments: Any, parameters: Parameters | None
    ) -> None:
        self.name = name
        self._call = call
        self._arguments = specs_of(arguments)
        self._parameters = parameters
        self._names = [] if parameters is None else parameters.names

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments: specs of tensors, and values of constants."""
        return _signature(self._arguments, self._names)


@final
class DrivenFunction(_WithoutProgram):
    """A function for one signature that runs as plain Python, because it cannot be compiled as a single program.

    Created by `get_concrete_function`. Its calls of `strategy.run` are compiled.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function.

        Args:
            args: The arguments.
            kwargs: The keyword arguments.
        """
        return self._call(*args, **kwargs)

    def __repr__(self) -> str:
        return (
            f"<ConcreteFunction {self.name}{self.structured_input_signature[0]!r}, as plain Python>"
        )


@final
class OpenFunction(_WithoutProgram):
    """A function for specs with unknown lengths. Each combination of lengths is compiled when it is first called.

    Created by `get_concrete_function`.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program for these lengths.

        Args:
            args: All arguments, or only the tensors among them.
            kwargs: The keyword arguments.
        """
        expected, own_tree = leaves_of(self._arguments)
        leaves, tree = leaves_of((args, kwargs))
        if tree != own_tree and self._parameters is not None:
            call = _completed(self._parameters, self._arguments, args, kwargs)
            ordered, its_tree = leaves_of(call)
            if its_tree != own_tree and kwargs:
                raise _wrong_names(self, kwargs)
            leaves, tree = (ordered, its_tree) if its_tree == own_tree else (leaves, tree)
        tensors = [leaf for leaf in expected if isinstance(leaf, TypeSpec)]
        if tree != own_tree and len(leaves) == len(tensors):
            given = iter(leaves)
            leaves = [next(given) if isinstance(x, TypeSpec) else x for x in expected]
        elif tree != own_tree:
            raise _wrong_number(self, len(tensors), len(leaves))
        pairs = enumerate(zip(expected, leaves, strict=True))
        args, kwargs = packed(own_tree, [self._checked(index, *pair) for index, pair in pairs])
        return self._call(*args, **kwargs)

    def _checked(self, index: int, expected: Any, value: Any) -> Any:
        if isinstance(expected, TensorSpec):
            return _fitting(self.name, index, expected, value)
        if not isinstance(expected, TypeSpec):
            _check_constant(self.name, expected, value)
        return value

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.name}{self.structured_input_signature[0]!r}, compiled for each shape>"


@final
class ConcreteFunction:
    """A function traced for one signature. Created by `get_concrete_function`.

    Attributes:
        name: The name of the function.
    """

    def __init__(
        self, name: str, program: Program, arguments: Any, parameters: Parameters | None
    ) -> None:
        self.name = name
        self._program = program
        self._tree = jax_tree.tree_structure(arguments)
        self._constants = [
            None if is_tensor_leaf(leaf) else leaf for leaf in jax_tree.tree_leaves(arguments)
        ]
        self._arguments = specs_of(arguments)
        self._parameters = parameters
        self._names = [] if parameters is None else parameters.names

    @property
    def structured_input_signature(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and keyword arguments: specs of tensors, and values of constants."""
        return _signature(self._arguments, self._names)

    @property
    def structured_outputs(self) -> Any:
        """The specs of the results."""
        return self._program.result_specs

    @property
    def inputs(self) -> list[TensorSpec]:
        """The specs of the tensors that it takes, in order."""
        return [TensorSpec(array.shape, array.dtype) for array in self._program.inputs]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that it reads or assigns."""
        return tuple(dict.fromkeys([*self._program.reads, *self._program.writes]))

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """The trainable ones among `variables`."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def jaxpr(self) -> Any:
        """The closed jaxpr. Its inputs are the tensors, then all variables."""
        return self._program.closed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Args:
            args: All arguments, or only the tensors among them.
            kwargs: The keyword arguments.
        """
        leaves, tree = jax_tree.tree_flatten((args, kwargs))
        if tree != self._tree and self._parameters is not None:
            call = _completed(self._parameters, self._arguments, args, kwargs)
            ordered, its_tree = jax_tree.tree_flatten(call)
            if its_tree != self._tree and kwargs:
                raise _wrong_names(self, kwargs)
            leaves, tree = (ordered, its_tree) if its_tree == self._tree else (leaves, tree)
        if tree == self._tree:
            leaves = self._without_constants(leaves)
        if len(leaves) != len(self._program.inputs):
            raise _wrong_number(self, len(self._program.inputs), len(leaves))
        self._check_variables()
        inputs = enumerate(zip(self.inputs, leaves, strict=True))
        try:
            return self._program([_fitting(self.name, index, *pair) for index, pair in inputs])
        except Unstaged as reason:
            raise InvalidArgumentError(
                f"{self.name} cannot run on these arguments: {reason.why}.",
                fix="call the function itself.",
            ) from None

    def _check_variables(self) -> None:
        for variable, shape in self._program.open_shapes:
            if variable.held.shape != shape:
                raise InvalidArgumentError(
                    f"The variable {variable.name!r} has another shape than when {self.name} was traced.",
                    fix="call the function itself, which traces another program.",
                )

    def _without_constants(self, leaves: Sequence[Any]) -> list[Any]:
        tensors: list[Any] = []
        for constant, leaf in zip(self._constants, leaves, strict=True):
            if constant is None:
                tensors.append(leaf)
            else:
                _check_constant(self.name, constant, leaf)
        return tensors

    def __repr__(self) -> str:
        args, kwargs = self.structured_input_signature
        shown = [*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())]
        return f"<ConcreteFunction {self.name}({', '.join(shown)}) -> {self.structured_outputs!r}>"


def _wrong_number(
    function: ConcreteFunction | OpenFunction, expected: int, given: int
) -> TypeError:
    return TypeError(
        described(
            f"{function.name} was traced for {expected} tensors, but got {given}.",
            fix=f"pass {function.structured_input_signature}.",
        )
    )


def _completed(
    parameters: Parameters,
    traced: tuple[tuple[Any, ...], dict[str, Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call in order, with the constants that it leaves out: those of the trace, not the defaults."""
    positional, by_name = traced
    constants = {**dict(zip(parameters.names, positional, strict=False)), **by_name}
    constants = {name: x for name, x in constants.items() if _is_constant(x)}
    ordered, rest = parameters.in_order(args, kwargs, constants)
    return ordered, {**{name: x for name, x in constants.items() if name in by_name}, **rest}


def _wrong_names(function: ConcreteFunction | OpenFunction, kwargs: dict[str, Any]) -> TypeError:
    return TypeError(
        described(
            f"The arguments of {function.name} do not fit those that it was traced with. By name, it got {', '.join(kwargs)}.",
            fix=f"pass {function.structured_input_signature}.",
        )
    )


def _is_constant(argument: Any) -> bool:
    return not any(isinstance(leaf, TypeSpec) for leaf in leaves_of(argument)[0])


def _check_constant(name: str, constant: Any, value: Any) -> None:
    if value is not constant and value != constant:
        raise TypeError(
            described(
                f"{name} was traced with {shortened(constant)}, but got {shortened(value)}.",
                fix="leave it out, or trace another program with get_concrete_function.",
            )
        )


def _fitting(name: str, index: int, spec: TensorSpec, value: Any) -> Any:
    """Return a value as a tensor of a spec, or raise."""
    tensor: Any = value if isinstance(value, jax.Array) else convert_to_tensor(value, spec.dtype)
    if not spec.is_compatible_with(TensorSpec(tensor.shape, tensor.dtype)):
        raise InvalidArgumentError(
            f"Tensor {index} of {name} does not fit the program:\n"
            f"  spec:  {spec}\n"
            f"  value: {TensorSpec(tensor.shape, tensor.dtype)}",
            fix="call the function itself, which traces another program.",
        )
    return tensor


def _signature(
    arguments: tuple[tuple[Any, ...], dict[str, Any]], parameters: Sequence[str]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    args, kwargs = arguments
    names = [*parameters, *[None] * len(args)]
    positional = tuple(_named(arg, name) for arg, name in zip(args, names, strict=False))
    return positional, {name: _named(value, name) for name, value in kwargs.items()}


def _named(spec: Any, name: str | None) -> Any:
    return TensorSpec.from_spec(spec, name) if isinstance(spec, TensorSpec) else spec
