"""Prefetches steps: a thread reads them and copies them to the devices ahead of the training step."""

from collections.abc import Callable, Sequence
from typing import Any, Final, final

from evenfeed.core.concurrency.prefetching import WAIT_SECONDS
from evenfeed.core.iteration import StepRun
from evenfeed.feeding.ahead.agreed_runs import AgreedRuns
from evenfeed.feeding.ahead.shared_steps import MeasuredSteps, SharedSteps
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.host_steps import Column, HostSteps
from evenfeed.feeding.placing import StepPlacing
from evenfeed.feeding.step_meters import StepMeter, devices_fed_by
from evenfeed.live.watching import watching

_JOIN: Final = 1.0  # seconds to wait for a thread that may be inside a user function


@final
class StepsAhead:
    """The steps of a dataset on the devices, with up to `depth` steps prefetched.

    The thread starts when the first step is taken. It ends when this object is closed or garbage-collected,
    when the interpreter exits, or when a step fails. After a failure, taking the next step restarts it.

    Attributes:
        take: Returns the next step, or raises its error. Raises StopIteration if there are no more steps.
        peek: Returns up to some next steps together, or None; the position stays (see `Iterator.peek_run`).
        take_run: Counts steps that `peek` returned as taken. Returns False if another thread took some of them.
        return_run: Undoes `take_run`.
        meter: Measures the steps; None if nothing does.

    Args:
        make: Returns the reader of the rows.
        place: Copies them to the devices.
        depth: The number of steps to prefetch. With 0 there is no thread.
        topic: Exchanges messages with the other workers, so that all take the same steps together; None if there are none.
    """

    def __init__(
        self,
        make: Callable[[], HostSteps],
        place: Callable[[Sequence[Column]], Any],
        depth: int,
        topic: Topic | None = None,
    ) -> None:
        self.meter = StepMeter(devices_fed_by(place)) if watching.is_on else None
        self._make = make if self.meter is None else self.meter.measured_steps(make)
        self._place = place
        self._depth = depth
        self._runs = None if topic is None else AgreedRuns(topic)
        self._share(self._make())

    def _share(self, steps: HostSteps) -> None:
        if self.meter is None:
            shared = SharedSteps(steps, self._place, self._depth, runs=self._runs)
        else:
            shared = MeasuredSteps(steps, self._place, self._depth, self.meter, self._runs)
        self._shared = shared
        shared.stop_with(self)
        # Bound here, because every step of a training loop calls them.
        self.take: Callable[[], Any] = shared.take
        self.peek: Callable[..., StepRun | None] = shared.peek
        self.take_run: Callable[[StepRun], bool] = shared.take_run
        self.return_run: Callable[[StepRun], bool] = shared.return_run

    def as_run(self, step: Any, most: int) -> StepRun | None:
        """Return a step that was taken as a run of one step with room for `most`; None if it is uneven."""
        return self._place.again(step, most) if isinstance(self._place, StepPlacing) else None

    def state(self) -> Any:
        """Return the position after the last step that was taken."""
        return self._shared.position()

    def restore(self, state: Any) -> None:
        """Restore a position. The thread restarts with the next step.

        If restoring fails, the position stays the same.
        """
        before = self.state()
        # A thread that is still inside a user function keeps the old reader; nobody takes its steps.
        steps = self._shared.steps if self._shared.ended_by(_JOIN) else self._make()
        try:
            steps.restore(state)
        except BaseException:
            steps.restore(before)
            raise
        finally:
            self._share(steps)

    def close(self) -> None:
        """Stop the thread and those of the dataset, and free the prefetched steps."""
        if self._runs is not None:
            self._runs.close()
        ended = self._shared.ended_by(WAIT_SECONDS)
        self._shared.steps.close()  # the thread may be waiting for a thread of the dataset
        if not ended:
            self._shared.ended_by(_JOIN)
