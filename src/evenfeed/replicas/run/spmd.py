"""Compiles a function for all replicas as one SPMD program, in which each replica works on its part."""

from collections.abc import Callable, Sequence
from typing import Any, final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.device_programs import unfolded
from evenfeed.replicas.function.called_python import ignored
from evenfeed.replicas.function.closures import spread_arrays, with_swapped
from evenfeed.replicas.function.left_tracers import call_traced
from evenfeed.replicas.function.modified_arguments import GivenArguments
from evenfeed.replicas.function.outputs import Outputs, as_tensor
from evenfeed.replicas.function.staging import Staging, Unstaged, used
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.regrouping import leaves_of, packed
from evenfeed.replicas.replica_context import Replica, Site, drawing_for, noted
from evenfeed.replicas.run.needless_copies import without_needless_copies
from evenfeed.replicas.run.uneven_warning import note_even
from evenfeed.replicas.run.varying import equations_in, varying_outputs
from evenfeed.replicas.tape.replay import one_forward_pass
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.shared_variables import not_one_value


@final
class SpmdReplica(Replica):
    """All replicas at once, in code that is mapped over them.

    Args:
        site: The strategy and its replicas.
    """

    def __init__(self, site: Site) -> None:
        self.replicas = site.replicas
        self._site = site

    @property
    def index(self) -> Any:
        """Which replica runs, as a tensor."""
        return jax.lax.axis_index(self.replicas.axis)

    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        own = unfolded(self.replicas, [jnp.asarray(array) for array in arrays])
        return collective.mapped(self.replicas, self.index, own)

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function inside the program, with the values of all replicas."""
        leaves, tree = leaves_of((tuple(args), kwargs))
        whole = [_of_all(self.replicas, leaf) for leaf in leaves]
        whole_args, whole_kwargs = packed(tree, whole)
        with self._site.across():
            return own_share(self.replicas, function(*whole_args, **whole_kwargs))


def _of_all(replicas: Replicas, leaf: Any) -> Any:
    """Return the values of all replicas for an array of the current one, in mapped code."""
    if not isinstance(leaf, jax.Array):
        return leaf
    whole = replicas.gathered(unfolded(replicas, leaf))
    return PerReplica([whole[replica] for replica in range(replicas.count)])


def own_share(replicas: Replicas, value: Any) -> Any:
    """Return the current replica's share of a structure of values, in mapped code."""
    leaves, tree = leaves_of(value)
    return packed(tree, [_own_part(replicas, leaf) for leaf in leaves])


def _own_part(replicas: Replicas, leaf: Any) -> Any:
    if not isinstance(leaf, DistributedValues):
        return leaf
    if leaf.part_count != replicas.count:
        raise Unstaged("the values of other workers are not known", expected=True)
    return jnp.stack(leaf.values)[jax.lax.axis_index(replicas.axis)]


def run_mapped(site: Site, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Trace a function for one replica, and add it for all replicas to the current trace.

    Args:
        site: The strategy and its replicas.
        function: The user function.
        args: Its arguments. Per-replica values are split, others are passed to each replica as they are.
        kwargs: Its keyword arguments.
    """
    outer = contexts.here.stagings[-1]
    replicas = outer.over = site.replicas
    note_even(function)
    whole_arguments = GivenArguments(args, kwargs)
    given, tree = leaves_of((tuple(args), kwargs))
    as_one = [_as_one(leaf, replicas) for leaf in given]
    cut = [i for i, leaf in enumerate(as_one) if isinstance(leaf, PerReplica)]
    variables: list[Any] = [v for v in outer.values if getattr(v, "replicas", None) is replicas]
    inputs: list[Any] = [leaf.array if isinstance(leaf, Mirrored) else leaf for leaf in as_one]
    spread = spread_arrays(function, inputs)
    found = Outputs()
    repeated: list[tuple[Any, Any]] = []

    def traced(parts: list[Any], copies: list[Any], whole: list[Any]) -> Any:
        values = {**outer.values, **dict(zip(variables, copies, strict=True))}
        staging = Staging(values, replicas)
        stand = {id(array): own for array, own in zip(spread, whole, strict=True)}
        own_leaves = [stand.get(id(leaf), leaf) for leaf in inputs]
        for index, part in zip(cut, parts, strict=True):
            own_leaves[index] = part
        own_args, own_kwargs = packed(tree, own_leaves)
        own = with_swapped(function, lambda x: stand.get(id(x), x)) if stand else function
        with site.inside(SpmdReplica(site)), contexts.staged(staging), drawing_for(replicas):
            result = call_traced(own, own_args, own_kwargs, whole_arguments)
            repeated.extend(staging.repeated)
            return found.of(result, staging)

    struct = jax.ShapeDtypeStruct
    parts = [_part_spec(inputs[i], replicas.count) for i in cut]
    copies = [struct(outer.values[v].shape[1:], outer.values[v].dtype) for v in variables]
    whole = [struct(x.shape, x.dtype, weak_type=x.aval.weak_type) for x in spread]
    doing = noted(f"while its function was traced for all {replicas.count} replicas.")
    with doing, replicas.tracing():
        closed = jax.make_jaxpr(traced, axis_env=replicas.axis_env)(parts, copies, whole)
    _check_callbacks(replicas, closed.jaxpr)
    closed = one_forward_pass(closed, repeated)
    if not replicas.spans:  # the constants of a trace may differ between workers
        last = len(parts) + len(copies)
        closed = without_needless_copies(closed, replicas.axes, frozenset(range(last)))
    return _add(outer, replicas, closed, found, [inputs[i] for i in cut], variables, spread)


def _check_callbacks(replicas: Replicas, jaxpr: Any) -> None:
    """Raise for a callback that JAX cannot map over replicas with several devices each."""
    if not replicas.has_inner_axes:
        return
    inside = (each for one in jaxpr.eqns for each in equations_in(one))
    if any(e.primitive.name == "pure_callback" and not e.params["vmap_method"] for e in inside):
        raise NotImplementedError(
            described(
                "The step calls jax.pure_callback without vmap_method, but on a mesh with axes inside of a replica, JAX maps "
                "the step over the replicas.",
                fix='pass vmap_method="sequential": Python is then called once for each replica.',
            )
        )


def _as_one(leaf: Any, replicas: Replicas) -> Any:
    """Return an argument for the single trace of all replicas. Joins the parts of a value that the function made.

    Raises:
        Unstaged: The parts cannot be one array.
    """
    if not isinstance(leaf, PerReplica) or leaf.whole is not None:
        return leaf
    if replicas.spans:  # the function itself made it, and other workers may have other parts
        raise Unstaged("the values of other workers are not known", expected=True)
    if all(part is leaf.parts[0] for part in leaf.parts):
        return leaf.parts[0]
    parts = [as_tensor(part) for part in leaf.values]
    if len({(part.shape, part.dtype) for part in parts}) > 1:
        raise Unstaged("the parts of a value differ in shape or dtype", expected=True)
    scalars = not parts[0].shape
    rows = jnp.stack(parts) if scalars else jnp.concatenate(parts)
    array = jax.lax.with_sharding_constraint(rows, replicas.sharding)
    return PerReplica(array=array, lifted=scalars, count=replicas.count)


def _part_spec(value: PerReplica, count: int) -> Any:
    shape = value.array.shape
    own = () if value.is_lifted else (shape[0] // count, *shape[1:])
    return jax.ShapeDtypeStruct(own, value.array.dtype)


def _add(  # noqa: PLR0913, PLR0917 - the two sides of one program
    outer: Staging,
    replicas: Replicas,
    closed: Any,
    found: Outputs,
    cut: Sequence[PerReplica],
    variables: Sequence[Any],
    whole: Sequence[Any],
) -> Any:
    """Call the traced function for all replicas, in the current trace."""
    consts = list(closed.consts)
    jaxpr = closed.jaxpr
    last = len(cut) + len(variables)  # of the inputs that differ between replicas
    needed = used(jaxpr, jaxpr.invars)
    lifted = [index >= len(cut) or cut[index].is_lifted for index in needed if index < last]
    rows = [*(value.array for value in cut), *(outer.values[v] for v in variables), *whole]
    given = [rows[index] for index in needed]
    tensors = len(jaxpr.outvars) - len(found.written)
    shared = {len(cut) + index for index, variable in enumerate(variables) if variable.is_shared}
    own_inputs = frozenset(range(last)) - shared
    written: list[Any] = list(found.written)
    differ = varying_outputs(jaxpr, replicas.axes, own_inputs)
    _check_shared(written, differ[tensors:])
    if replicas.spans:
        # What is the same on all replicas of one worker may differ between workers. The state of a worker's own
        # objects stays local to it.
        own = tensors - found.carried
        differ[:own] = [True] * own

    has_effects = _has_effects(jaxpr, replicas) and not replicas.has_inner_axes

    def local(constants: list[Any], mark: Any, *own: Any) -> tuple[list[Any], list[Any]]:
        if has_effects:
            # XLA runs calls without arguments on the first device only, or refuses them in a loop, unless the program
            # also has one whose argument comes from outside.
            jax.debug.callback(ignored, mark)
        every: list[Any] = [0] * len(jaxpr.invars)
        for place, (index, value) in enumerate(zip(needed, own, strict=True)):
            every[index] = value[0] if place < len(lifted) and lifted[place] else value
        body = jax_extend_core.ClosedJaxpr(jaxpr, constants)
        outputs = jax_extend_core.jaxpr_as_fun(body)(*every)
        tops = unfolded(replicas, outputs[:tensors])
        results = [_row(o) if d else o for o, d in zip(tops, differ, strict=False)]
        return results, [o[None] for o in outputs[tensors:]]

    spec = jax.sharding.PartitionSpec
    results, stacks = replicas.mapped(
        local,
        (spec(), spec(), *(replicas.spec if index in own_inputs else spec() for index in needed)),
        (
            [replicas.spec if d else spec() for d in differ[:tensors]],
            [spec() if v.is_shared else replicas.spec for v in written],
        ),
    )(consts, jnp.zeros(()) if has_effects else None, *given)
    for variable, stack in zip(written, stacks, strict=True):
        outer.write(variable, stack)
    return found.filled(
        PerReplica(array=r, lifted=not out.aval.shape, count=replicas.count)
        if d
        else Mirrored(array=r, count=replicas.count)
        for r, d, out in zip(results, differ, jaxpr.outvars, strict=False)
    )


def _has_effects(jaxpr: Any, replicas: Replicas) -> bool:
    # JAX also counts as an effect that it uses the axes of the replicas, as every collective does.
    return any(getattr(effect, "name", None) not in replicas.axes for effect in jaxpr.effects)


def _check_shared(written: Sequence[Any], differ: Sequence[bool]) -> None:
    """Raise if replicas assign different values to a variable that they share."""
    for variable, is_own in zip(written, differ, strict=True):
        if variable.is_shared and is_own:
            raise ValueError(not_one_value(variable.name))


def _row(value: Any) -> Any:
    return value[None] if value.ndim == 0 else value
