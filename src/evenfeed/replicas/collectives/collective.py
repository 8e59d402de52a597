"""`Collective`: the contract of an operation that all replicas perform together, in each way to run them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.callback_meetings import Seat


class Collective(ABC):
    """One call of a collective. Each replica passes its arrays, and all get the same list of results.

    A single replica is not asked: it gets its own arrays.

    All ways to run it must agree: `tests/laws/test_collectives_agree.py` checks that for every subclass in this folder.
    """

    has_gradient: ClassVar[bool] = True  # in all ways to run it

    @classmethod
    @abstractmethod
    def every_form(cls) -> "Sequence[Collective]":
        """Return an example of each form of the collective, such as one for each reduce operation."""

    @abstractmethod
    def check(self, tensor: Any) -> None:
        """Raise if a tensor cannot be passed. Strings stay on the host, for example."""

    @abstractmethod
    def eager(self, seat: Seat, arrays: Sequence[Any]) -> list[Any]:
        """Return the results of a replica that runs as plain Python.

        It meets the other replicas at its seat, mostly with `bind_eager`, which gradients go through.
        """

    @abstractmethod
    def mapped(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        """Return the results in a program that is mapped over the replicas, with collectives of `jax.lax`.

        Args:
            replicas: The replicas.
            index: The index of the running replica, as a tensor.
            arrays: Its arrays.
        """

    def uneven(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        """Return the results if other arrays of the program differ in shape between replicas.

        The program is then cut where it calls `jax.lax`. By default, this is `mapped`: it must give each replica
        the same results, from arrays of one shape.

        Raises:
            Unstaged: It depends on the shapes of other replicas. The function then runs as plain Python.
        """
        return self.mapped(replicas, index, arrays)

    @abstractmethod
    def if_equal(self, arrays: Sequence[Any], count: int) -> list[Any]:
        """Return the results if `count` replicas pass equal arrays. One replica stands for all while it creates variables."""
