"""Access to the parts of a distributed value, as one array or separately, for reduce and gather."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.device_programs import unfolded
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.run.avals import Aval, aval_of, avals_of_all
from evenfeed.replicas.run.host_callback import call_on_host
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.mirrored_variables import DistributedVariable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced


def has_parts(value: Any) -> bool:
    """Return True if a value has one part for each replica."""
    return isinstance(value, (DistributedValues, DistributedVariable))


def meets_workers(replicas: Replicas) -> bool:
    """Return True if this worker only has some of the parts and must exchange them with others."""
    return replicas.spans and contexts.staging() is None


def spread(replicas: Replicas, value: Any) -> Any:
    """In a traced function, turn a plain value of each worker into a per-replica value."""
    level = contexts.staging()
    if level is None or level.within is not None or not replicas.spans:
        return value
    if not level.uneven and whole_of(value) is not None:
        return value
    if level.uneven or isinstance(value, PerReplica):
        raise Unstaged("it combines values that are local to each worker", expected=True)
    tensor: Any = value.array if isinstance(value, Mirrored) else convert_to_tensor(value)
    spec = jax.sharding.PartitionSpec
    rows = replicas.mapped(_with_rows, spec(), replicas.spec)(unfolded(replicas, tensor))
    return PerReplica(array=rows, lifted=tensor.ndim == 0, count=replicas.count)


def _with_rows(own: Any) -> Any:
    return own if own.ndim else own[None]


# --- one array of all parts -------------------------------------------------------------------


def whole_of(value: Any) -> tuple[Any, int, bool] | None:
    """Return the parts as one array, their number, and True if the array has a replica axis."""
    if isinstance(value, DistributedVariable):
        return value.stack, value.replicas.count, True
    if isinstance(value, PerReplica) and _is_on_all_devices(value.whole, value):
        return value.whole, value.replica_count, value.is_lifted
    return None


def _is_on_all_devices(array: Any, value: PerReplica) -> bool:
    """Return True if a value has an array with a device per replica or more. A restored one may have fewer."""
    if array is None or is_traced(array):
        return array is not None
    sharding = getattr(array, "sharding", None)  # a NumPy array has none
    return sharding is not None and len(sharding.device_set) >= value.replica_count


def part_shape(array: Any, count: int, stacked: bool) -> tuple[int, ...]:
    """Return the shape of one part of the array of all parts."""
    return array.shape[1:] if stacked else (array.shape[0] // count, *array.shape[1:])


def stack_of(array: Any, count: int, stacked: bool) -> Any:
    """Return the array of all parts with a leading replica axis."""
    return array if stacked else array.reshape(count, *part_shape(array, count, stacked))


def computed(replicas: Replicas, array: Any, compute: Callable[..., Any], kind: Any) -> Any:
    """Compute a replicated result from the array of all parts, in one program."""
    # In a traced function the computation becomes part of the function's program.
    if is_traced(array) or contexts.staging() is not None:
        result = compute(array, *kind)
        # Otherwise XLA might shard the result.
        return jax.lax.with_sharding_constraint(result, replicas.replicated)
    mesh = getattr(array.sharding, "mesh", replicas.mesh)
    make = partial(_program, mesh, compute, kind)
    return replicas.session.program((mesh, compute, kind), make)(array).addressable_data(0)


def _program(mesh: Any, compute: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def program(array: Any) -> Any:
        return compute(array, *kind)

    return jax.jit(program, out_shardings=everywhere)


# --- separate parts ---------------------------------------------------------------------------


def is_uneven(value: Any) -> bool:
    """Return True if the value is traced as separate parts, one per device, of any shapes."""
    level = contexts.staging()
    return (
        level is not None
        and level.uneven
        and isinstance(value, PerReplica)
        and not value.is_open
        and value.whole is None
        and bool(value.parts)
        and all(is_traced(part) for part in value.parts)
    )


def afterwards(call: Callable[[Any], Any], like: Any, value: PerReplica) -> Any:
    """Call a function on a value when the traced program runs, in a host callback.

    Args:
        call: The function.
        like: The shape and dtype of its result.
        value: Its argument.
    """
    replicas, shapes = value.replicas, value.shapes

    def done(*parts: Any) -> list[Any]:
        return [call(PerReplica(parts, replicas=replicas, shapes=shapes))]

    return call_on_host(done, [like], *value.parts)[0]


def tensors_of(replicas: Replicas, value: Any) -> list[Any]:
    """Return the parts of this worker's replicas. A plain value is the part of each replica."""
    if not has_parts(value):
        _check_owned(replicas, value)
        parts = [value] * replicas.local_count
    else:
        # A program cannot contain arrays that are committed to different devices.
        parts = value.parts if contexts.staging() is None else value.values
    return [convert_to_tensor(part) for part in parts]


def _check_owned(replicas: Replicas, value: Any) -> None:
    """Raise for a plain value if workers share replicas: each may have another value for the same replica."""
    if replicas.are_shared:
        raise InvalidArgumentError(
            f"The processes share replicas, so a process's own value, {shortened(value)}, belongs to no replica.",
            fix="pass a per-replica value, such as a result of strategy.run; or combine the values of processes with "
            "jax.experimental.multihost_utils.process_allgather.",
        )


def avals_of(replicas: Replicas, value: Any, parts: Sequence[Any]) -> list[Aval]:
    """Return the shape and dtype of the parts of all replicas.

    Workers exchange them, unless the value knows them already. Every worker can then check all parts, so
    a bad part on one worker raises on all of them.
    """
    if isinstance(value, PerReplica) and value.shapes is not None:
        return [Aval(shape, str(parts[0].dtype)) for shape in value.shapes]
    avals = avals_of_all(replicas, [parts])[0] if meets_workers(replicas) else map(aval_of, parts)
    return [aval for aval in avals if aval is not None]


def on_first(replicas: Replicas, part: Any) -> Any:
    """Copy a part to this worker's first device. In a program, JAX chooses the device."""
    if is_traced(part) or replicas.is_lone or contexts.staging() is not None:
        return part
    return replicas.to_replica(part, 0)


def no_axis(shape: Sequence[int], axis: int) -> str:
    """Return the error message for a part without the given axis."""
    return f"A part of shape {tuple(shape)} has no axis {axis}."


def check_one_dtype(avals: Sequence[Aval]) -> None:
    """Check that all parts have the same dtype."""
    names = [aval.dtype for aval in avals]
    if len(set(names)) > 1:
        raise InvalidArgumentError(
            f"The replicas' parts have different dtypes: {names}.",
            fix="return the same dtype from every replica, with evenfeed.cast.",
        )
