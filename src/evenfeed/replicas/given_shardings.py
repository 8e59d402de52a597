"""The shardings that users pass for batches: checked, with a mesh, and one for each component."""

from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.structure import DATA, flatten, opened, outline
from evenfeed.replicas.device_shards import axes_of, check_devices


def sharding_for_each(given: Any, structure: Any) -> list[Any]:
    """Return one sharding for each component. One for a branch of the structure is for all components below it."""
    branch, below = opened(structure, DATA), opened(given, DATA)
    if below is None:
        return [given] * len(flatten(structure, DATA))
    if branch is None or below.labels != branch.labels:
        raise InvalidArgumentError(
            f"The shardings, {outline(given, DATA)}, do not have the structure of the elements, "
            f"{outline(structure, DATA)}.",
            fix="pass one sharding for all components, or one for each, in the same tuples and dicts.",
        )
    pairs = zip(below.parts, branch.parts, strict=True)
    return [one for part, inner in pairs for one in sharding_for_each(part, inner)]


def resolved(given: Any, mesh: Any) -> Any:
    """Return a `NamedSharding` with devices for what a user passes.

    Raises:
        TypeError: It is something else.
        InvalidArgumentError: It has no mesh, or does not suit it.
    """
    _check_places(getattr(given, "spec", given))
    if isinstance(given, jax.sharding.NamedSharding):
        if isinstance(given.mesh, jax.sharding.Mesh):
            check_devices(given.mesh)
            return given
        given = given.spec  # of an abstract mesh, which has no devices
    if not isinstance(given, jax.sharding.PartitionSpec):
        raise TypeError(
            described(
                f"A sharding must be a NamedSharding or a PartitionSpec, but got {shortened(given)}.",
                fix='pass jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data")).',
            )
        )
    chosen: Any = jax.sharding.get_mesh() if mesh is None else mesh
    if not isinstance(chosen, jax.sharding.Mesh) or chosen.empty:
        raise InvalidArgumentError(
            f"{given} needs a mesh, which says on which devices its axes are.",
            fix="pass mesh=..., or a NamedSharding(mesh, spec), or call jax.set_mesh(mesh) first.",
        )
    check_devices(chosen)
    named = [axis for part in given for axis in axes_of(part)]
    if not set(named) <= set(chosen.axis_names) or len(set(named)) < len(named):
        raise InvalidArgumentError(
            f"The sharding {given} does not suit a mesh with the axes {list(chosen.axis_names)}.",
            fix="name only axes of the mesh, and each of them once.",
        )
    return jax.sharding.NamedSharding(chosen, given)


def _check_places(spec: Any) -> None:
    if not isinstance(spec, jax.sharding.PartitionSpec):
        return
    if spec.unreduced or spec.reduced:
        raise InvalidArgumentError(
            f"{spec} has unreduced or reduced axes, but batches are no partial sums.",
            fix="leave unreduced= and reduced= out: axes that are not named hold copies.",
        )
    if spec.UNCONSTRAINED in tuple(spec):
        raise InvalidArgumentError(
            f"{spec} leaves a dimension unconstrained, but batches need to know which devices hold what.",
            fix="name the mesh axes that split the dimension, or write None if none does.",
        )
