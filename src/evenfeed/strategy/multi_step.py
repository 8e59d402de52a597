"""TensorFlow 1's loop of steps: `extended.experimental_run_steps_on_iterator`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from evenfeed.core.errors import OutOfRangeError, described
from evenfeed.core.iteration import Iterator
from evenfeed.replicas import contexts
from evenfeed.replicas.function.plain_python import drive
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.run.loops_of_steps import check_steps, outcomes, owner_of
from evenfeed.replicas.run.many_steps import NEXT_STEP

if TYPE_CHECKING:
    from evenfeed.strategy.strategy import Strategy


@final
class MultiStepContext:
    """Collects the outputs of the last of several steps. `experimental_run_steps_on_iterator` passes it to the step.

    Args:
        strategy: The strategy.
        outputs: The outputs before the first step.

    Attributes:
        last_step_outputs: The outputs of the last step, by name.
        non_tensor_outputs: Other values, by name.
        run_op: None: the steps have been run.
    """

    def __init__(self, strategy: "Strategy", outputs: dict[str, Any] | None = None) -> None:
        self._strategy = strategy
        self.last_step_outputs: dict[str, Any] = dict(outputs or {})
        self.non_tensor_outputs: dict[str, Any] = {}
        self.run_op: None = None

    def set_last_step_output(
        self, name: str, output: Any, reduce_op: ReduceOp | str | None = None
    ) -> None:
        """Set an output of the step.

        Args:
            name: Its name.
            output: A per-replica value or a tensor.
            reduce_op: How to reduce it over the replicas; None to keep it as it is.

        Raises:
            ValueError: A replica calls it.
        """
        if contexts.replica_context() is not None:
            raise ValueError(
                described(
                    f"The output {name!r} is set inside a replica, but it belongs to all replicas.",
                    fix="return it from the function that is passed to run, and set what run returns.",
                )
            )
        if reduce_op is not None:
            output = self._strategy.reduce(reduce_op, output, axis=None)
        self.last_step_outputs[name] = output

    def set_non_tensor_output(self, name: str, output: Any) -> None:
        """Set an output that is not a tensor."""
        self.non_tensor_outputs[name] = output


def run_steps_on_iterator(
    strategy: "Strategy",
    fn: Callable[..., Any],
    iterator: Iterator,
    iterations: int,
    initial_loop_values: dict[str, Any] | None,
) -> MultiStepContext:
    """Run a step several times; return the context with the outputs of the last one."""
    check_steps(iterator, iterations)
    owner = owner_of(strategy.extended.replicas)
    result = MultiStepContext(strategy, initial_loop_values)

    def run(batch: Any) -> dict[str, Any]:
        step = MultiStepContext(strategy, initial_loop_values)
        fn(step, batch)
        result.non_tensor_outputs.update(step.non_tensor_outputs)
        return step.last_step_outputs

    def body(number: Any) -> Any:
        del number
        return (), run(next(NEXT_STEP))

    def alone(value: Any) -> Any:
        return drive(owner, run, (value,), {})

    done = 0
    for count, loop, found in outcomes(
        owner, body, iterator, iterations, collects=False, alone=alone
    ):
        done += count
        result.last_step_outputs = found if loop is None else loop.program.result(found)[1]
    if done < iterations:
        raise OutOfRangeError(
            f"The data has ended after {done} of {iterations} steps.",
            fix="repeat the dataset, or pass the number of steps that are left.",
        )
    return result
