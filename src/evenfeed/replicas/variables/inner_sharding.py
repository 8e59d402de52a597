"""How each replica's copy of a variable is split over the axes inside of a replica."""

from collections.abc import Callable
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.array_layouts import parts_along
from evenfeed.replicas.mesh import Replicas, axes_of


def inner_spec(given: Any, variable: Any) -> Any:
    """Return the `PartitionSpec` of a variable's copies over the inner axes of a mesh; None if they are not split.

    Args:
        given: What the user passed for this variable.
        variable: The variable.

    Raises:
        InvalidArgumentError: It does not suit the mesh or the shape.
    """
    replicas, name, shape = variable.home, variable.name, variable.shape
    if replicas is None or not replicas.has_inner_axes:
        if given is None:
            return None
        raise _not_split(given, replicas, name)
    spec = given
    if (
        given is None and shape.rank is not None
    ):  # by an unknown shape, a rule has nothing to decide
        rule: Callable[..., Any] = variable.distribute_strategy.variable_sharding
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
    _check_spec(spec, replicas, name, shape)
    return spec


def _not_split(given: Any, replicas: Replicas | None, name: str) -> InvalidArgumentError:
    if replicas is None:
        return InvalidArgumentError(
            f"The variable {name!r} has the sharding {given}, but no mesh with axes inside of a replica.",
            fix="create it in the scope of a MeshStrategy, or leave the sharding out.",
        )
    return InvalidArgumentError(
        f"The variable {name!r} has the sharding {given}, but each replica has a single device: the mesh is "
        f"{dict(replicas.mesh.shape)}, and its data axes are {list(replicas.axes)}.",
        fix="leave the sharding out; or create the variable in the scope of a MeshStrategy whose data_axes leave out the axes "
        "that split it.",
    )


def _check_spec(spec: Any, replicas: Replicas, name: str, shape: TensorShape) -> None:
    sizes = [] if shape.rank is None else shape.as_list()
    inner = [axis for axis in replicas.mesh.axis_names if axis not in replicas.axes]
    if not {axis for part in spec for axis in axes_of(part)} <= set(inner):
        raise InvalidArgumentError(
            f"The variable {name!r} has the sharding {spec}, but only the axes {inner} are inside of a replica.",
            fix="split it over those. To split it over a data axis, leave that axis out of data_axes, and split the rows over "
            "it in the step, with jax.lax.with_sharding_constraint.",
        )
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
