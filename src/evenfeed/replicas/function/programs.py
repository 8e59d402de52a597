"""`Program`: traces a function together with its variables, compiles it, and runs it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, final

from evenfeed.core import side_effects
from evenfeed.core.callsite import where_raised
from evenfeed.core.concurrency.peers import MEETING_ERRORS
from evenfeed.core.lazy_jax import jax, jax_extend_core, jax_tree
from evenfeed.core.randomness.seeds import calling
from evenfeed.replicas import contexts
from evenfeed.replicas.containers import close_containers, open_containers
from evenfeed.replicas.context_mesh import run_apart
from evenfeed.replicas.function.called_python import calls_python, wait_for_calls
from evenfeed.replicas.function.nnx_objects import CLOSES_OVER, changes_from_outside
from evenfeed.replicas.function.on_devices import (
    copied_once,
    is_placed_on,
    on_device,
    on_first_device,
)
from evenfeed.replicas.function.outputs import as_output, is_tensor_leaf, of_one_replica
from evenfeed.replicas.function.refusals import refuses_tracing
from evenfeed.replicas.function.signatures import specs_of
from evenfeed.replicas.function.staging import (
    Incomplete,
    Staging,
    Unstaged,
    assigned_inside,
    live,
    used,
)
from evenfeed.replicas.keras_variables.keras_handles import subject_of
from evenfeed.replicas.keras_variables.loaded_keras import is_connected
from evenfeed.replicas.key_orders import flattened
from evenfeed.replicas.launch_turns import Launch, turns
from evenfeed.replicas.mesh import Replicas, replicas_of
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.replicas.run.avals import PlainArrays
from evenfeed.replicas.run.host_callback import is_done_in_python, run_unbound
from evenfeed.replicas.tape import reads
from evenfeed.replicas.tape.reads import as_read, check_recordable, is_recorded
from evenfeed.replicas.tape.replay import one_forward_pass
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.device_arrays import is_traced

_Result = TypeVar("_Result")


@final
class Program:
    """A function compiled for one signature.

    Args:
        function: Called with the arguments, traced.
        tree: The structure of the arguments.
        leaves: The leaves of the arguments. Arrays become inputs, all others constants of the program.
        tensors: The indices of the leaves that are arrays.
        creates: Trace only so that the function creates its variables. The program returns their initial values.

    Attributes:
        inputs: The shapes and dtypes of the arrays that it takes.
        closed: The closed jaxpr. Its inputs are all array arguments, then all variables.
        reads: The variables whose values it needs.
        writes: The variables that it assigns.
        result_specs: The specs of its results.
        replicas: The replicas on whose devices it runs; None to run where its arguments are.
        waits: Whether it waits for Python code or other workers while it runs.
        started: The variables whose initial values it returns, if it creates variables.
        open_shapes: The variables of unknown shape that it was traced with, and what they held.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tree: Any,
        leaves: Sequence[Any],
        tensors: Sequence[int],
        *,
        creates: bool = False,
    ) -> None:
        self._tensors = tensors
        self._creates = creates
        self._known_shardings: dict[int, Any] = {}
        self._over: Replicas | None = None
        self._device: Any = None
        self.started: list[Variable] = []
        self.open_shapes: list[tuple[Any, Any]] = []
        self.inputs = [_spec(leaves[index]) for index in tensors]
        self._is_uneven = _are_uneven(tree.unflatten(leaves))
        is_connected()
        drawn = calling.traced_draws
        specs = {variable: _spec(held) for variable, held in live.held()}
        self.closed = self._trace(function, tree, list(leaves), specs)
        self._draws = calling.traced_draws != drawn
        needed = used(self.closed.jaxpr, self.closed.jaxpr.invars)
        first, variables = len(tensors), list(specs)
        self.uses = [index for index in needed if index < first]
        self.reads: list[Any] = [variables[index - first] for index in needed if index >= first]
        self.replicas = None if self._is_uneven else self._over or self._find_replicas(leaves)
        self._takes_out = self.replicas is not None and any(p >= 0 for p in self._places)
        self._run = self._compiled(needed)
        self.calls_python = calls_python(self.closed.jaxpr)
        over = self._over or self.replicas
        self._session = over.session if over is not None and over.spans else None
        one = over is not None and over.local_count == 1 and not over.has_inner_axes
        if over is not None and over.spans and one:
            self._unflatten = partial(of_one_replica, over, self._unflatten)
        self.is_lasting = not any(map(is_traced, self.closed.consts))
        self.consts = self.placed(self.closed.consts)
        self._shape_check = self._plain_arrays(tree.unflatten(leaves), needed)
        # If only arrays go in and out, running the program should have no overhead.
        others = (
            self.consts or self.reads or self.writes or self._takes_out or self._rest is not None
        )
        self._is_simple = not others and len(self.uses) == len(tensors)
        self.waits = self._is_uneven or self.calls_python or self._session is not None
        self._in_turn = turns(self._run, waits=self.waits or not self.writes)
        # Variables without copies are on one device for code outside of programs.
        self._holds = [(v.hold, self.replicas and not hasattr(v, "replicas")) for v in self.writes]
        slow = self._session or self._draws or self._shape_check
        self._is_quick = self._is_simple and not slow

    # --- tracing ---------------------------------------------------------------------------

    def _trace(
        self, function: Callable[..., Any], tree: Any, leaves: list[Any], specs: dict[Any, Any]
    ) -> Any:
        def traced(arrays: list[Any], held: list[Any]) -> list[Any]:
            for index, array in zip(self._tensors, arrays, strict=True):
                leaves[index] = array
            args, kwargs = tree.unflatten(leaves)
            values = dict(zip(specs, held, strict=True))
            staging = Staging(values, uneven=self._is_uneven, creates=self._creates)
            with contexts.staged(staging):
                outputs = self._outputs(staging.results(function(*args, **kwargs)), staging)
            if staging.is_incomplete:
                raise Incomplete("it met a new Keras variable")
            repeated.extend(staging.repeated)
            self._over, self._device = staging.over, staging.device
            self.started = list(staging.started)
            self.open_shapes = [(v, specs[v].shape) for v in staging.open_variables if v in specs]
            return outputs

        repeated: list[tuple[Any, Any]] = []
        try:
            return one_forward_pass(
                jax.make_jaxpr(traced)(self.inputs, list(specs.values())), repeated
            )
        except Exception as error:
            if changes_from_outside(error):
                raise Unstaged(CLOSES_OVER, origin=where_raised(error)) from error
            if refuses_tracing(error):
                raise Unstaged(str(error).partition("\n")[0], origin=where_raised(error)) from error
            raise

    def _outputs(self, result: Any, staging: Staging) -> list[Any]:
        """Store the structure and the non-tensors of a result, and return the tensors."""
        opened = open_containers(result)
        leaves, tree = leaves_of(opened)
        outputs = [as_output(leaf) for leaf in leaves]
        flat, whole = flattened(tree.unflatten(outputs))
        self._unflatten: Callable[[list[Any]], Any] = whole.unflatten
        if opened is not result:
            self._unflatten = lambda outputs: close_containers(whole.unflatten(outputs))
        self.result_specs = specs_of(tree.unflatten(outputs))
        self._places = [place for leaf in outputs for place in _places_of(leaf)]
        self._computed = [i for i, leaf in enumerate(flat) if is_tensor_leaf(leaf)]
        self._rest = None if len(self._computed) == len(flat) else _without_tensors(flat)
        self.writes: list[Variable] = list(staging.written)
        return [*(flat[i] for i in self._computed), *(staging.values[v] for v in self.writes)]

    def _plain_arrays(self, arguments: Any, needed: Sequence[int]) -> PlainArrays | None:
        """Return the check for arrays that are local to each worker; None if all shapes are known to all workers."""
        self._own: list[int] = []
        over = self._over or self.replicas
        if over is None or not over.spans:
            return None
        # A scalar has only one shape. A distributed value knows the shapes of all its parts.
        own = {id(x) for x in leaves_of(arguments)[0] if is_tensor_leaf(x) and x.ndim}
        leaves = jax_tree.tree_leaves(arguments)
        places = [i for i, leaf in enumerate(self._tensors) if id(leaves[leaf]) in own]
        self._own = [i for i in places if i in needed]
        return PlainArrays(over) if self._own or any(x.ndim for x in self.closed.consts) else None

    def check_shapes(self, arrays: Sequence[Any]) -> None:
        """Raise if other workers have other shapes: running would kill their processes."""
        if self._shape_check is None:
            return
        own = [*(c for c in self.closed.consts if c.ndim), *(arrays[i] for i in self._own)]
        if not self._shape_check.are_alike(own):
            raise Unstaged("an array has a different shape on another worker", expected=True)

    def _find_replicas(self, leaves: Sequence[Any]) -> Replicas | None:
        """Return the replicas that hold one of the variables or arguments."""
        for variable in (*self.reads, *self.writes):
            if (replicas := getattr(variable, "replicas", None)) is not None:
                return replicas
        found = (replicas_of(leaves[index]) for index in self._tensors)
        return next((replicas for replicas in found if replicas is not None), None)

    def _compiled(self, needed: Sequence[int]) -> Callable[..., list[Any]]:
        closed = self.closed
        consts, count = len(closed.consts), len(closed.jaxpr.invars)

        def program(*arrays: Any) -> list[Any]:
            every: list[Any] = [0] * count
            for place, array in zip(needed, arrays[consts:], strict=True):
                every[place] = array
            body = jax_extend_core.ClosedJaxpr(closed.jaxpr, list(arrays[:consts]))
            return jax_extend_core.jaxpr_as_fun(body)(*every)

        self.evaluate = program
        # Uneven parts cannot run as one program: the trace is evaluated equation by equation.
        if self._is_uneven:
            in_python = all(map(is_done_in_python, closed.jaxpr.eqns))
            return run_apart(program if in_python else partial(run_unbound, program))
        if self.replicas is None:
            return on_device(jax.jit(program), self._device)
        return Launch(run_apart(jax.jit(program, out_shardings=self.output_shardings())))

    def output_shardings(self, *, stacked: bool = False) -> list[Any] | None:
        """Return the shardings of the outputs: else XLA would choose one for values that belong to no replica."""
        replicas = self.replicas
        if replicas is None:
            return None
        cut, whole = replicas.steps_sharding if stacked else replicas.sharding, replicas.replicated
        outputs = [cut if place == _CUT else whole for place in self._places]
        return [*outputs, *(getattr(variable, "layout", whole) for variable in self.writes)]

    # --- running ---------------------------------------------------------------------------

    def __call__(self, arrays: Sequence[Any]) -> Any:
        """Run on arrays, and assign the variables."""
        # Each line here adds to the cost of a step (benchmarks/training.py).
        if self._is_quick:
            if self.replicas is not None:
                known = self._known_shardings
                for array in arrays:
                    if id(getattr(array, "sharding", None)) not in known:
                        return self._called(arrays)
            return self._unflatten(self._run(*arrays))
        if self._session is None:
            return self._called(arrays)
        return self.across_workers(partial(self._called, arrays))

    def across_workers(self, run: Callable[[], _Result]) -> _Result:
        """Run the program, or a loop of it. If a worker is lost, that is an error, and no assignment remains."""
        if (session := self._session) is None:
            return run()
        session.peers.check()
        session.last_step.settle()
        before = [(variable, variable.held) for variable in self.writes]
        try:
            result = run()
        except MEETING_ERRORS as error:
            session.peers.reraise(error)
        if before:
            session.last_step.start(before, self.writes[0].held)
        return result

    def _called(self, arrays: Sequence[Any]) -> Any:
        self.check_shapes(arrays)
        if reads.here.listeners:
            self._check_recordable()
        if self._draws and side_effects.here.watcher is not None:
            side_effects.here.watcher.draw()
        if self._is_simple:
            return self._unflatten(self._run(*self.placed(arrays)))
        given = [arrays[index] for index in self.uses]
        return self.result(self._in_turn(self._outputs_of, given))

    def _outputs_of(self, given: list[Any]) -> list[Any]:
        placed = self.placed(given + self._held() if self.reads else given)
        if reads.here.listeners:
            placed = self._as_read(placed)
        outputs = self._run(*self.consts, *placed)
        if self.writes:
            self.commit(outputs[len(self._computed) :])
        return outputs[: len(self._computed)]

    def held(self, variables: Sequence[Any]) -> list[Any]:
        """Return what variables hold, on the devices of the program."""
        held, replicas = [variable.held for variable in variables], self.replicas
        if replicas is None:
            return held
        known = self._known_shardings
        shardings = [id(getattr(array, "sharding", None)) for array in held]
        pairs = zip(held, shardings, strict=True)
        return [x if there in known else copied_once(replicas, x) for x, there in pairs]

    def _check_recordable(self) -> None:
        """Raise if an open tape cannot follow the program, or would miss what it reads after an assignment."""
        if self.replicas is not None:
            check_recordable("a function on their arrays")
        if any(is_recorded(subject_of(variable)) for variable in self.writes):
            raise Unstaged("a tape watches a variable that it assigns", expected=True)

    def _as_read(self, given: Sequence[Any]) -> list[Any]:
        """Tell open tapes which variables the program reads."""
        count = len(self.uses)
        pairs = zip(self.reads, given[count:], strict=True)
        return [
            *given[:count],
            *(as_read(subject_of(v), x, copies=hasattr(v, "replicas")) for v, x in pairs),
        ]

    def _held(self) -> list[Any]:
        watcher = side_effects.here.watcher
        if watcher is None:
            return self.held(self.reads)
        found = [(variable, watcher.read(variable)) for variable in self.reads]
        return [v.held if x is None or hasattr(v, "replicas") else x for v, x in found]

    def commit(self, arrays: Sequence[Any]) -> None:
        watcher = side_effects.here.watcher
        trapped = [] if watcher is None else [watcher.traps(variable) for variable in self.writes]
        if watcher is not None and all(trapped):
            for variable, array in zip(self.writes, arrays, strict=True):
                watcher.write(variable, array[0] if hasattr(variable, "replicas") else array)
            return
        if is_traced(arrays[0]):  # by a `jit`, `grad` or `scan` around the function
            raise ValueError(assigned_inside(self.writes[0].name))
        if self.calls_python:
            wait_for_calls(arrays)
        for (hold, alone), array in zip(self._holds, arrays, strict=True):
            hold(on_first_device(array) if alone else array)

    def result(self, outputs: list[Any]) -> Any:
        if self._takes_out and not is_traced(outputs[0]):
            for index, place in enumerate(self._places):
                if place == 0:
                    outputs[index] = outputs[index].addressable_data(0)
                elif place > 0:  # addressable_data is the first copy of a replicated array
                    outputs[index] = outputs[index].addressable_shards[place].data
        if self._rest is not None:
            flat = list(self._rest)
            for index, array in zip(self._computed, outputs, strict=True):
                flat[index] = array
            outputs = flat
        return self._unflatten(outputs)

    def placed(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Return the arrays on the program's devices; those already there are not copied."""
        if self.replicas is not None:
            known = self._known_shardings
            for array in arrays:
                # By identity: comparing two shardings takes ten times as long.
                if id(getattr(array, "sharding", None)) not in known:
                    return [self._moved(self.replicas, each) for each in arrays]
        return arrays

    def _moved(self, replicas: Replicas, array: Any) -> Any:
        if not is_placed_on(replicas, array):
            return replicas.everywhere(array)
        self._remember(array)
        return array

    def _remember(self, array: Any) -> None:
        """Remember that arrays with this sharding need not be moved."""
        if not is_traced(array) and len(self._known_shardings) < _MAX_KNOWN:
            self._known_shardings[id(array.sharding)] = array.sharding


# The placement of an output of a program over replicas: one sharded array, one replicated array, or the index of
# the replica on whose device it is wanted.
_CUT, _WHOLE = -1, -2

_MAX_KNOWN = 64


def _places_of(leaf: Any) -> list[int]:
    if isinstance(leaf, PerReplica):
        whole = leaf.whole is not None
        return [_CUT] if whole else [i for i, v in enumerate(leaf.parts) if is_tensor_leaf(v)]
    if isinstance(leaf, DistributedValues):
        return [_WHOLE]
    return [0] if is_tensor_leaf(leaf) else []


def _without_tensors(leaves: Sequence[Any]) -> list[Any]:
    return [None if is_tensor_leaf(leaf) else leaf for leaf in leaves]


def _spec(array: Any) -> Any:
    return jax.ShapeDtypeStruct(
        array.shape, array.dtype, weak_type=getattr(array, "weak_type", False)
    )


def _are_uneven(arguments: Any) -> bool:
    """Return True if an argument has parts that are not one array."""
    leaves, _ = leaves_of(arguments)
    return any(isinstance(leaf, PerReplica) and leaf.whole is None for leaf in leaves)
