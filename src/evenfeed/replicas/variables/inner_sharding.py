"""How a variable is split over the axes of a mesh."""

from collections.abc import Callable
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.array_layouts import parts_along
from evenfeed.replicas.device_shards import axes_of
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import VariableSynchronization


def inner_spec(given: Any, variable: Any, strategy: Any) -> Any:
    """Return the `PartitionSpec` of a variable, or of its copies if each replica has one; None if it is not split.

    Args:
        given: What the user passed for this variable.
        variable: The variable.
        strategy: The strategy in whose scope it is made, or None.

    Raises:
        InvalidArgumentError: It does not suit the mesh or the shape.
    """
    replicas, name, shape = variable.home, variable.name, variable.shape
    if replicas is None or not strategy.shares_variables:
        if given is None:
            return None
        raise InvalidArgumentError(
            f"The variable {name!r} has the sharding {given!r}, but no mesh with named axes.",
            fix="create it in the scope of a MeshStrategy, or leave the sharding out.",
        )
    spec = given
    if (
        given is None and shape.rank is not None
    ):  # by an unknown shape, a rule has nothing to decide
        rule: Callable[..., Any] = strategy.variable_sharding
        spec = rule(name.removesuffix(":0"), tuple(shape.as_list()))
    if spec is None:
        return None
    if isinstance(spec, jax.sharding.NamedSharding):
        spec = spec.spec
    if not isinstance(spec, jax.sharding.PartitionSpec):
        raise TypeError(
            described(
                f"The sharding of the variable {name!r} must be a PartitionSpec, but got {shortened(spec)}.",
                fix='pass jax.sharding.PartitionSpec(None, "tensor").',
            )
        )
    _check_axes(spec, variable)
    _check_spec(spec, replicas, name, shape)
    return spec


def _check_axes(spec: Any, variable: Any) -> None:
    replicas, name = variable.home, variable.name
    named = [axis for part in spec for axis in axes_of(part)]
    every = list(replicas.mesh.axis_names)
    if not set(named) <= set(every) or len(set(named)) < len(named):
        raise InvalidArgumentError(
            f"The variable {name!r} has the sharding {spec}, but the mesh has the axes {every}.",
            fix="name only axes of the mesh, and each of them once.",
        )
    on_read = variable.synchronization is VariableSynchronization.ON_READ
    if on_read and named and replicas.spans:
        raise InvalidArgumentError(
            f"The variable {name!r} is synchronized on read and has the sharding {spec}, but the mesh has devices of several "
            "processes.",
            fix="leave the sharding out.",
        )
    if on_read and set(named) & set(replicas.axes):
        inner = [axis for axis in every if axis not in replicas.axes]
        raise InvalidArgumentError(
            f"The variable {name!r} is synchronized on read, so that each replica has a copy, but its sharding {spec} names "
            f"data axes. Inside of a replica are {inner}.",
            fix="split it over those, or leave the sharding out.",
        )


def _check_spec(spec: Any, replicas: Replicas, name: str, shape: TensorShape) -> None:
    sizes = [] if shape.rank is None else shape.as_list()
    if len(spec) > len(sizes):
        found = "unknown" if shape.rank is None else sizes
        raise InvalidArgumentError(
            f"The variable {name!r} has the sharding {spec}, but its shape is {found}.",
            fix="give a variable of that shape a shorter PartitionSpec.",
        )
    for dimension, size in enumerate(sizes):
        parts = parts_along(dimension, replicas.mesh, spec)
        if size is None and parts > 1:
            raise InvalidArgumentError(
                f"Dimension {dimension} of the variable {name!r} has an unknown size, so {spec} may not split every value evenly "
                f"into {parts} parts.",
                fix="leave that dimension whole: None in the PartitionSpec; or give its size in the shape of the variable.",
            )
        if size is not None and size % parts:
            raise InvalidArgumentError(
                f"Dimension {dimension} of the variable {name!r} has size {size}, which {spec} cannot split evenly into "
                f"{parts} parts.",
                fix="leave that dimension whole: None in the PartitionSpec.",
            )
