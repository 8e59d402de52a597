"""Maps a function over replicas with several devices each: a batch axis for the replicas, and the rest is left to XLA.

`jax.shard_map` could leave some mesh axes to XLA too. But with JAX 0.10 on the CPU, such a program returned its input unchanged
where a value was constrained twice, and XLA ended the process in a lookup in a table that is split over two axes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from evenfeed.core.lazy_jax import jax, jax_tree


def vectorized(
    function: Callable[..., Any],
    mesh: Any,
    axes: Sequence[str],
    in_specs: Any,
    out_specs: Any,
) -> Callable[..., Any]:
    """Map a function over the points of some mesh axes, as `jax.shard_map` does.

    Args:
        function: Called with the part of one replica. Collectives over the axes work in it.
        mesh: The mesh.
        axes: The axes that replicas differ along.
        in_specs: A tree with a `PartitionSpec` for each argument: an empty one if it is the same for all replicas.
        out_specs: The same for the results.
    """
    sizes = [mesh.shape[axis] for axis in axes]
    depth = len(axes)

    def constrained(array: Any) -> Any:
        """Keep each replica's part on its devices. How it is split over them is left to XLA."""
        spec = jax.sharding.PartitionSpec
        inner = [spec.UNCONSTRAINED] * (array.ndim - depth)
        there = jax.sharding.NamedSharding(mesh, spec(*axes, *inner))
        return jax.lax.with_sharding_constraint(array, there)

    def cut(array: Any) -> Any:
        rows = array.shape[0]
        for size in sizes:
            rows //= size
        return constrained(array.reshape(*sizes, rows, *array.shape[1:]))

    def joined(array: Any) -> Any:
        rows = array.shape[depth]
        for size in sizes:
            rows *= size
        return constrained(array).reshape(rows, *array.shape[depth + 1 :])

    def mapped(*args: Any) -> Any:
        leaves, tree = jax_tree.tree_flatten(args)
        is_cut = _cut_leaves(in_specs, args)
        trees: list[Any] = []

        def one(*own: Any) -> list[Any]:
            results, out_tree = jax_tree.tree_flatten(function(*tree.unflatten(own)))
            trees.append(out_tree)
            return results

        every: Any = one
        places = tuple(0 if own else None for own in is_cut)
        for axis, size in reversed(list(zip(axes, sizes, strict=True))):
            every = jax.vmap(
                every, in_axes=places, axis_name=axis, axis_size=size, spmd_axis_name=axis
            )
        found = every(*(cut(x) if own else x for x, own in zip(leaves, is_cut, strict=True)))
        flags = _cut_leaves(out_specs, trees[0].unflatten(found))
        return trees[0].unflatten(
            [joined(x) if own else x[(0,) * depth] for x, own in zip(found, flags, strict=True)]
        )

    return mapped


def _cut_leaves(specs: Any, values: Any) -> list[bool]:
    """Return, for each leaf of some values, whether replicas have different parts of it."""
    if isinstance(specs, jax.sharding.PartitionSpec):
        return [len(specs) > 0] * len(jax_tree.tree_leaves(values))
    pairs = zip(specs, values, strict=True)
    return [flag for inner, part in pairs for flag in _cut_leaves(inner, part)]
