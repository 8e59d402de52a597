"""Which strategy is current, and in which context code runs."""

from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.replica_context import ReplicaContext
from evenfeed.strategy.default import default_strategy
from evenfeed.strategy.strategy import Strategy


def get_strategy() -> Strategy:
    """Return the strategy whose scope or run the code is in, or else the default one."""
    level = contexts.frame()
    return default_strategy() if level is None else level.strategy


def has_strategy() -> bool:
    """Tell whether the code is in the scope or the run of a strategy other than the default one."""
    level = contexts.frame()
    return level is not None and not level.strategy.is_default


def in_cross_replica_context() -> bool:
    """Tell whether the code runs for all replicas of a strategy together, as in its scope."""
    level = contexts.frame()
    return level is not None and level.context is None


def get_replica_context() -> ReplicaContext | None:
    """Return the context of the replica that runs; None across replicas.

    Without a strategy it is that of the default one, which has one replica.
    """
    level = contexts.frame()
    return default_strategy().replica_context() if level is None else level.context


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Make a strategy current from here on, without a block; None ends that.

    Raises:
        RuntimeError: The code is inside of a scope.
    """
    if contexts.here.frames:
        raise RuntimeError(
            described(
                "experimental_set_strategy must not be called inside of scope() or run().",
                fix="call it before, or use `with strategy.scope():` alone.",
            )
        )
    if strategy is not None and not isinstance(strategy, Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            described(
                f"A strategy is needed, but got {shortened(strategy)}.", fix="pass one, or None."
            )
        )
    chosen: Any = None
    if strategy is not None and strategy is not default_strategy():
        chosen = Frame(strategy, strategy.extended.replicas)
    contexts.here.chosen = chosen
