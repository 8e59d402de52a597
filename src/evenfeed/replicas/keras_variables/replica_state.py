"""`ReplicaState`: the Keras variables of one replica while it runs its function, and how they become one again.

A Keras variable has one value for all replicas. A replica reads and assigns a copy, which lasts as long as its
function. Then the copies are combined: metrics are summed, statistics averaged, and what an optimizer assigned is the
same everywhere, because gradients are summed first.
"""

import functools
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax_extend_core, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.all_reduce import AllReduce
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.from_first import FromFirst
from evenfeed.replicas.function.nnx_objects import single_value
from evenfeed.replicas.function.staging import check_place, trace_state
from evenfeed.replicas.keras_variables.keras_handles import KerasHandle, known, staged_value
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.replica_context import Replica
from evenfeed.replicas.tape.recording import current_trace
from evenfeed.tensors.device_arrays import unbound

# Keras's name for what a stateful recurrent layer keeps of each row: a mean over rows of several replicas is wrong.
_STATE: Final = "rnn_state"


class _Thread(threading.local):
    """The state of the replica that a thread runs."""

    def __init__(self) -> None:
        self.state: ReplicaState | None = None


here = _Thread()


@final
class ReplicaState:
    """The Keras variables of one replica.

    Args:
        replica: The replica.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._values: dict[KerasHandle, Any] = {}
        self._written: dict[KerasHandle, Collective | None] = {}
        self._is_agreed = False
        self._trace = current_trace()
        self._rest = trace_state()

    @property
    def replica(self) -> Replica:
        """The replica."""
        return self._replica

    @property
    def is_agreed(self) -> bool:
        """Whether the block that runs assigns the same on all replicas."""
        return self._is_agreed

    def read(self, handle: KerasHandle) -> Any:
        """Return the replica's copy of a variable."""
        if handle not in self._values:
            # Not in the trace of a loop, such as that of a recurrent layer: the copy outlives it.
            with jax_extend_core.set_current_trace(self._trace):
                self._values[handle] = self._first(handle)
        return self._values[handle]

    def _first(self, handle: KerasHandle) -> Any:
        """Return the copy that a replica starts with. Copies that are summed start with the value on one replica."""
        value = staged_value(handle) if contexts.staging() is not None else self._own(handle.held)
        if handle.variable.aggregation != "sum":
            return value
        return jnp.where(self._replica.index == 0, value, jnp.zeros_like(value))

    def _own(self, value: Any) -> Any:
        """Return a value on the device of the replica that runs as plain Python."""
        if len(value.sharding.device_set) > 1:
            value = value.addressable_data(0)
        return unbound(self._replica.replicas.to_replica(value, self._replica.place))

    def write(self, handle: KerasHandle, value: Any) -> None:
        """Assign the replica's copy of a variable."""
        check_place(self._rest, handle.name)
        self.read(handle)
        self._values[handle] = value
        self._written[handle] = None if self._is_agreed else _combination(handle.variable)

    @contextmanager
    def agreed(self) -> Generator[None]:
        """Run a block that assigns the same on all replicas."""
        before, self._is_agreed = self._is_agreed, True
        contexts.here.agreed = True
        try:
            yield
        finally:
            self._is_agreed = contexts.here.agreed = before

    @contextmanager
    def active(self) -> Generator[None]:
        """Run the replica's function."""
        before, here.state = here.state, self
        try:
            yield
        finally:
            here.state = before

    def combined(self) -> tuple[list[KerasHandle], list[Any]]:
        """Return the assigned variables, with the value that all replicas have agreed on."""
        values = {handle: self._values[handle] for handle in self._written}
        for collective in dict.fromkeys(self._written.values()):
            if collective is not None:
                group = [handle for handle, own in self._written.items() if own == collective]
                found = self._replica.perform(collective, [values[handle] for handle in group])
                values.update(zip(group, found, strict=True))
        return list(values), list(values.values())


def _combination(variable: Any) -> Collective | None:
    """Return the collective that combines the copies of a variable; None if they must be equal."""
    match variable.aggregation:
        case "sum":
            return AllReduce(ReduceOp.SUM)
        case "only_first_replica":
            return FromFirst()
        case "mean":
            return AllReduce(ReduceOp.MEAN)
        case _:  # the statistics of layers say nothing, and are averaged in TensorFlow
            is_float = "float" in str(variable.dtype)
            is_statistic = is_float and not variable.trainable and variable.name != _STATE
            return AllReduce(ReduceOp.MEAN) if is_statistic else None


@final
class _Assigned:
    """The variables that a function assigned on the replicas."""

    def __init__(self) -> None:
        self.handles: list[KerasHandle] = []


def run_with_state(
    run: Callable[..., Any], function: Callable[..., Any], replicas: Replicas
) -> Any:
    """Run a function on several replicas, and assign the Keras variables that it assigns.

    Args:
        run: Takes the function to run; returns what the replicas return.
        function: The user function.
        replicas: The replicas.
    """
    assigned = _Assigned()

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        context = contexts.replica_context()
        assert context is not None
        state = ReplicaState(context.replica)
        with state.active():
            result = function(*args, **kwargs)
        assigned.handles, values = state.combined()
        level = contexts.staging()
        if level is not None:
            level.carried += len(values)
        return result, values

    result, values = run(called)
    for handle, value in zip(assigned.handles, values, strict=True):
        found = single_value(value, replicas)
        if found is None:
            raise _disagreement(handle)
        assign(handle, found)
    return result


def _disagreement(handle: KerasHandle) -> ValueError:
    return ValueError(
        described(
            f"The replicas have assigned different values to the Keras variable {handle.name!r}, which has one value "
            "for all of them.",
            fix="combine them first, with evenfeed.distribute.get_replica_context().all_reduce; or create the variable "
            'with aggregation="mean" or "sum".',
        )
    )


def current_value(variable: Any) -> Any:
    """Return the value of a variable on this replica or in this trace; None for its own, outside of both."""
    if here.state is not None:
        return here.state.read(known.of(variable))
    return None if contexts.staging() is None else staged_value(known.of(variable))


def assign(handle: KerasHandle, value: Any) -> None:
    """Assign a variable on this replica, in this trace, or itself."""
    level = contexts.staging()
    if here.state is not None:
        here.state.write(handle, value)
    elif level is not None:
        staged_value(handle)
        level.write(handle, value)
    else:
        handle.hold(value)


def summed_over_replicas(gradients: Sequence[Any]) -> list[Any]:
    """Return the sums of gradients over all replicas; None stays None."""
    assert here.state is not None
    places = [i for i, gradient in enumerate(gradients) if gradient is not None]
    given = [gradients[i] for i in places]
    found = here.state.replica.perform(AllReduce(ReduceOp.SUM), given) if given else []
    summed = list(gradients)
    for place, total in zip(places, found, strict=True):
        summed[place] = total
    return summed
