"""The parts of a value on all replicas: as one array, or each by itself, and where they are known."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import AXIS, Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.collectives import unfolded
from evenfeed.replicas.run.avals import Look, look_of, looks_of_all
from evenfeed.replicas.run.host_callback import later
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.mirrored_variables import DistributedVariable
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced


def has_parts(value: Any) -> bool:
    """Tell whether a value has a part for each replica."""
    return isinstance(value, (DistributedValues, DistributedVariable))


def meets_workers(replicas: Replicas) -> bool:
    """Tell whether the parts at hand are those of one worker among others."""
    return replicas.spans and contexts.staging() is None


def spread(replicas: Replicas, value: Any) -> Any:
    """Return what each worker has of its own, in a function that is traced, as a value of all replicas."""
    level = contexts.staging()
    if level is None or level.within is not None or not replicas.spans:
        return value
    if not level.apart and whole_of(value) is not None:
        return value
    if level.apart or isinstance(value, PerReplica):
        raise Unstaged("it brings together what each worker has of its own", expected=True)
    tensor: Any = value.array if isinstance(value, Mirrored) else convert_to_tensor(value)
    spec = jax.sharding.PartitionSpec
    rows = jax.shard_map(
        _with_rows,
        mesh=replicas.mesh,
        in_specs=spec(),
        out_specs=spec(AXIS),
        check_vma=False,
    )(unfolded(replicas, tensor))
    return PerReplica(array=rows, lifted=tensor.ndim == 0, count=replicas.count)


def _with_rows(own: Any) -> Any:
    return own if own.ndim else own[None]


# --- one array of all parts -------------------------------------------------------------------


def whole_of(value: Any) -> tuple[Any, int, bool] | None:
    """Return the parts as one array, how many, and whether they have an axis of their own in it."""
    if isinstance(value, DistributedVariable):
        return value.stack, value.replicas.count, True
    if isinstance(value, PerReplica) and _lies_apart(value.whole, value):
        return value.whole, value.replica_count, value.is_lifted
    return None


def _lies_apart(array: Any, value: PerReplica) -> bool:
    """Return True unless the array of a value came back from a file, or from the host, to fewer devices."""
    if array is None or is_traced(array):
        return array is not None
    return isinstance(array, jax.Array) and len(array.sharding.device_set) == value.replica_count


def part_shape(array: Any, count: int, stacked: bool) -> tuple[int, ...]:
    """Return the shape of a part of an array of all."""
    return array.shape[1:] if stacked else (array.shape[0] // count, *array.shape[1:])


def stack_of(array: Any, count: int, stacked: bool) -> Any:
    """Return an array of all parts with an axis for the replicas."""
    return array if stacked else array.reshape(count, *part_shape(array, count, stacked))


def computed(replicas: Replicas, array: Any, compute: Callable[..., Any], kind: Any) -> Any:
    """Compute from an array of all parts what all replicas know then, in one program."""
    # One that a function captures is a part of the function's program.
    if is_traced(array) or contexts.staging() is not None:
        result = compute(array, *kind)
        # Else XLA might leave each device a piece of the result.
        return jax.lax.with_sharding_constraint(result, replicas.replicated)
    program = _program(getattr(array.sharding, "mesh", replicas.mesh), compute, kind)
    return program(array).addressable_data(0)


@lru_cache(maxsize=256)
def _program(mesh: Any, compute: Callable[..., Any], kind: Any) -> Any:
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())

    def program(array: Any) -> Any:
        return compute(array, *kind)

    return jax.jit(program, out_shardings=everywhere)


# --- parts that are no one array --------------------------------------------------------------


def is_apart(value: Any) -> bool:
    """Tell whether the parts of a traced value lie on devices of their own, one shape or not."""
    return (
        isinstance(value, PerReplica)
        and not value.is_open
        and value.whole is None
        and bool(value.parts)
        and all(is_traced(part) for part in value.parts)
        and contexts.staging() is not None
        and contexts.staging().apart
    )


def afterwards(call: Callable[[Any], Any], like: Any, value: PerReplica) -> Any:
    """Call a function on a value when the trace is run; `like` has the shape and dtype of the result."""
    replicas, shapes = value.replicas, value.shapes

    def done(*parts: Any) -> list[Any]:
        return [call(PerReplica(parts, replicas=replicas, shapes=shapes))]

    return later(done, [like], *value.parts)[0]


def tensors_of(replicas: Replicas, value: Any) -> list[Any]:
    """Return the parts of this worker's replicas; a plain value is the part of each."""
    if not has_parts(value):
        parts = [value] * replicas.local_count
    else:
        # A program cannot have arrays in it that are bound to several devices.
        parts = value.parts if contexts.staging() is None else value.values
    return [convert_to_tensor(part) for part in parts]


def looks_of(replicas: Replicas, value: Any, parts: Sequence[Any]) -> list[Look]:
    """Return what the parts of all replicas look like.

    Workers tell each other, unless the value knows it. Each then checks the parts of all: what is wrong
    on one worker raises on every one.
    """
    if isinstance(value, PerReplica) and value.shapes is not None:
        return [Look(shape, str(parts[0].dtype)) for shape in value.shapes]
    looks = looks_of_all(replicas, [parts])[0] if meets_workers(replicas) else map(look_of, parts)
    return [look for look in looks if look is not None]


def on_first(replicas: Replicas, part: Any) -> Any:
    """Return a part on the device of this worker's first replica; in a program JAX chooses the place."""
    if is_traced(part) or replicas.count == 1 or contexts.staging() is not None:
        return part
    return replicas.to_replica(part, 0)


def no_axis(shape: Sequence[int], axis: int) -> str:
    """Say that a part has no such axis."""
    return f"A part of the shape {tuple(shape)} has no axis {axis}."


def check_one_dtype(looks: Sequence[Look]) -> None:
    """Refuse parts of several dtypes."""
    names = [look.dtype for look in looks]
    if len(set(names)) > 1:
        raise InvalidArgumentError(
            f"The replicas' parts have several dtypes: {names}.",
            fix="let every replica return the same dtype, with evenfeed.cast.",
        )
