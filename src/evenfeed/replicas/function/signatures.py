"""The arguments of a function: their order, and the `input_signature` that they are checked against."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast, final

import numpy as np

from evenfeed.core.conversion import is_tensor, shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.specs import TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.structure import NEST, Branch, flatten, opened
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.replicas.values import DistributedValues, PerReplica, PerReplicaSpec
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import held_dtype

_Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@final
class Parameters:
    """The parameters of a function. Makes `f(1, y=2)` and `f(1, 2)` the same call.

    Args:
        function: The function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.of = _signature_of(function)
        found = () if self.of is None else self.of.parameters.values()
        self._positional = [p for p in found if p.kind is p.POSITIONAL_OR_KEYWORD]
        # After a positional-only parameter, the positions of the names are unknown.
        if any(p.kind is p.POSITIONAL_ONLY for p in found):
            self._positional = []
        self.count = len(self._positional)

    @property
    def names(self) -> list[str]:
        """The names of the parameters that may be positional."""
        return [parameter.name for parameter in self._positional]

    def in_order(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        left_out: Mapping[str, Any] = MappingProxyType({}),
    ) -> _Arguments:
        """Return a call with as many positional arguments as possible, including defaults.

        Args:
            args: The positional arguments.
            kwargs: The keyword arguments.
            left_out: Values by name, to be used before the defaults.
        """
        given, rest = list(args), dict(kwargs)
        for parameter in self._positional[len(args) :]:
            if parameter.name in rest:
                given.append(rest.pop(parameter.name))
            elif parameter.name in left_out:
                given.append(left_out[parameter.name])
            elif parameter.default is not parameter.empty:
                given.append(parameter.default)
            else:
                return args, kwargs  # an argument is missing: the function itself will raise
        return tuple(given), rest


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # some C functions have no signature
        return None


@final
class InputSignature:
    """The specs that the arguments of a function must match.

    Args:
        function: The function.
        name: Its name, for errors.
        specs: One spec, or nest of specs, for each argument.
    """

    def __init__(self, function: Callable[..., Any], name: str, specs: Any) -> None:
        self._name = name
        self.specs = _checked_specs(specs)
        self._signature = inspect.signature(function)
        self._limits = self._matched()

    def _matched(self) -> dict[str, Any]:
        """Return the spec of each parameter by name. Parameters with a default may have none."""
        limits: dict[str, Any] = {}
        left = list(self.specs)
        for parameter in self._signature.parameters.values():
            if parameter.kind is parameter.VAR_POSITIONAL:
                limits[parameter.name], left = tuple(left), []
            elif left and parameter.kind is not parameter.KEYWORD_ONLY:
                limits[parameter.name] = left.pop(0)
            elif (
                parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
            ):
                raise self._error(f"input_signature has no spec for {parameter.name!r}", "add one.")
        if left:
            raise self._error(
                f"input_signature has {len(self.specs)} specs, which is {len(left)} more than there are parameters",
                "write one spec for each parameter.",
            )
        return limits

    def fit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Arguments:
        """Convert the arguments to tensors that match the signature.

        Raises:
            TypeError: They do not match.
        """
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise self._error(f"the arguments do not match: {error}", self._fix()) from None
        for name, value in bound.arguments.items():
            if name in self._limits:
                bound.arguments[name] = self._fitted(self._limits[name], value, name)
            elif not _is_default(self._signature.parameters[name], value):
                raise self._error(
                    f"{name} has no spec in input_signature, so it must keep its default, but got {shortened(value)}",
                    "leave it out, or give it a spec.",
                )
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def _fix(self) -> str:
        shown = ", ".join(f"{name}: {limit}" for name, limit in self._limits.items())
        return f"call {self._name}({shown})."

    def _fitted(self, spec: Any, value: Any, path: str) -> Any:
        branch = None if isinstance(spec, TypeSpec) else opened(spec, NEST)
        if branch is not None:
            parts = self._parts(spec, branch, value, path)
            labels = branch.labels
            fitted = [
                self._fitted(limit, part, path + label)
                for limit, part, label in zip(branch.parts, parts, labels, strict=True)
            ]
            return branch.rebuild(fitted)
        if isinstance(spec, TensorSpec):
            value = self._tensor(spec, value, path)
        if not _accepts(spec, value):
            raise self._mismatch(spec, _spec_of(value), path)
        return value

    def _parts(self, spec: Any, branch: Branch, value: Any, path: str) -> Sequence[Any]:
        own = opened(value, NEST)
        same = own is not None and own.labels == branch.labels
        if (
            own is None
            or not same
            or not (isinstance(value, type(spec)) or _both_mappings(spec, value))
        ):
            raise self._mismatch(spec, value, path)
        return own.parts

    def _tensor(self, spec: TensorSpec, value: Any, path: str) -> Any:
        """Convert Python numbers and NumPy arrays to tensors of the spec's dtype."""
        if isinstance(value, Variable):
            return value.value()
        if isinstance(value, (jax.Array, DistributedValues, TypeSpec, jax.ShapeDtypeStruct)):
            return value
        if value is None:
            raise self._mismatch(spec, None, path)
        try:
            return convert_to_tensor(value, spec.dtype)
        except (TypeError, ValueError) as error:
            raise self._mismatch(spec, value, path) from error

    def _mismatch(self, spec: Any, found: Any, path: str) -> TypeError:
        return self._error(
            f"{path} does not fit the input_signature:\n"
            f"  spec:  {spec}\n"
            f"  value: {found if isinstance(found, TypeSpec) else shortened(found)}",
            "cast or reshape the value, or change the signature; None in a shape takes any length.",
        )

    def _error(self, what: str, fix: str) -> TypeError:
        end = "" if "\n" in what else "."
        return TypeError(described(f"{self._name}: {what}{end}", fix=fix))


def _both_mappings(spec: Any, value: Any) -> bool:
    return isinstance(spec, Mapping) and isinstance(value, Mapping)


def _checked_specs(specs: Any) -> tuple[Any, ...]:
    if not isinstance(specs, (list, tuple)):
        raise TypeError(
            described(
                f"input_signature must be a list or a tuple, but got {shortened(specs)}.",
                fix="write input_signature=[spec].",
            )
        )
    given = cast("Sequence[Any]", specs)
    wrong = [leaf for leaf in flatten(given, NEST) if not isinstance(leaf, TypeSpec)]
    if wrong:
        raise TypeError(
            described(
                f"input_signature must consist of specs, but got {shortened(wrong[0])}.",
                fix="write evenfeed.TensorSpec(shape, dtype); give Python values a default instead.",
            )
        )
    return tuple(cast("Sequence[Any]", specs))


def _is_default(parameter: inspect.Parameter, value: Any) -> bool:
    same = value is parameter.default
    return same or (isinstance(value, (bool, int, float, str)) and value == parameter.default)


def _accepts(spec: TypeSpec, value: Any) -> bool:
    if isinstance(spec, PerReplicaSpec):
        return _accepts_parts(spec, value)
    if isinstance(value, DistributedValues):
        return False
    found = _spec_of(value)
    return isinstance(found, TypeSpec) and _fits(spec, found)


def _fits(spec: TypeSpec, found: TypeSpec) -> bool:
    """Return True if a spec matches, or matches the narrower dtype that JAX uses without 64 bits."""
    return spec.is_compatible_with(found) or _held_spec(spec).is_compatible_with(found)


def _held_spec(spec: TypeSpec) -> TypeSpec:
    """Return the spec with the dtype that JAX uses for it."""
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(spec.shape, held_dtype(spec.dtype), spec.name)


def _accepts_parts(spec: PerReplicaSpec, value: Any) -> bool:
    if not isinstance(value, DistributedValues) or value.part_count != len(spec.value_specs):
        return False
    found = _part_specs(value)
    return all(_fits(own, part) for own, part in zip(spec.value_specs, found, strict=True))


def _part_specs(value: DistributedValues) -> Sequence[TypeSpec]:
    """Return the specs of the parts, without splitting a value that is one array."""
    if isinstance(value, PerReplica) and value.whole is not None:
        shape = value.array.shape
        own = () if value.is_lifted else (shape[0] // value.replica_count, *shape[1:])
        return [TensorSpec(own, value.array.dtype)] * value.part_count
    return [type_spec_from_value(part) for part in value.parts]


def specs_of(value: Any) -> Any:
    """Replace the tensors in a structure by their specs; leave everything else as it is."""
    leaves, tree = leaves_of(value)
    return packed(
        tree,
        [
            _spec_of(x) if isinstance(x, DistributedValues) or is_tensor_leaf(x) else x
            for x in leaves
        ],
    )


def _spec_of(value: Any) -> Any:
    """Return the spec of a value, or the value itself if it has none."""
    if isinstance(value, TypeSpec):
        return value
    array: Any = value.array if isinstance(value, Mirrored) else getattr(value, "whole", value)
    if not isinstance(getattr(array, "dtype", np.dtype(int)), np.dtype):  # a jax.random key
        return jax.ShapeDtypeStruct(array.shape, array.dtype)
    if isinstance(value, DistributedValues):
        return PerReplicaSpec(*_part_specs(value))
    if is_tensor(value) or isinstance(value, jax.ShapeDtypeStruct):
        return TensorSpec(value.shape, value.dtype)
    try:
        return type_spec_from_value(value)
    except TypeError:
        return value
