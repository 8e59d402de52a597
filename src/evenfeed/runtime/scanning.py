"""Runs a scan: a state is carried from element to element."""

from typing import Any, final

from evenfeed.core.block import Block, of_rows
from evenfeed.core.json_arrays import from_json, to_json
from evenfeed.plan.scanning import Scan
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.operator import Feed, Operator, State


@final
class CarryState(Operator):
    """Calls a function with the state and each element, for the next state and an output."""

    def __init__(self, child: Operator, node: Scan, function: RowFunction) -> None:
        self._feed = Feed(child)
        self._function = function
        self._carried: list[Any] = list(node.initial)

    def read(self, most: int) -> Block | None:
        """Return the outputs for the next elements, up to one that fails."""
        came = self._feed.read(most)
        if came is None:
            return None
        outputs = self._outputs(came)
        return of_rows(outputs) if outputs else self.read(most)

    def _outputs(self, came: Block) -> list[list[Any]]:
        outputs: list[list[Any]] = []
        count = len(self._carried)
        for index in range(came.length):
            rest = came.length - index
            parts = [*self._carried, *came.row(index)]
            try:
                result = self._function.one(parts, self._feed.number - rest)
            except Exception as error:  # noqa: BLE001 - it is raised when its turn comes
                self._feed.refuse(rest, error)
                break
            self._carried = result[:count]
            outputs.append(result[count:])
        return outputs

    def state(self) -> State:
        """Return the state that is carried, and the position."""
        return [[to_json(part) for part in self._carried], self._feed.state()]

    def restore(self, state: State) -> None:
        """Take up state and position."""
        carried, position = state
        self._carried = [from_json(part) for part in carried]
        self._feed.restore(position)

    def children(self) -> tuple[Operator, ...]:
        """Return the child."""
        return (self._feed.child,)
