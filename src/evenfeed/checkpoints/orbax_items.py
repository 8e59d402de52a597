"""The handlers through which Orbax saves what is not an array. Imported at first use, because it imports Orbax."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from evenfeed.checkpoints.orbax_package import orbax
from evenfeed.checkpoints.orbax_waits import end_waits_at_losses
from evenfeed.checkpoints.worker_files import common, read_own, write_own
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.iteration import Iterator

__all__ = ["IteratorHandler", "RestoreIterator", "SaveIterator"]

_orbax: Any = orbax()  # its types are incomplete
_Handler: Any = _orbax.CheckpointHandler
_Args: Any = _orbax.args.CheckpointArgs

end_waits_at_losses()


def completed_by(then: Callable[[], None]) -> Any:
    """Return a class of temporary folders that call `then` when they have their final name.

    Orbax has a callback of its own, but calls it before that.
    """

    class Completed(_orbax.path.atomicity.AtomicRenameTemporaryPath):
        async def finalize(self) -> None:
            await super().finalize()  # pyright: ignore[reportUnknownMemberType]
            then()

    return Completed


@final
class TextHandler(_Handler):
    """Writes a text for all workers, and one of each worker's own."""

    def save(self, directory: Any, args: Any) -> None:
        """Write the texts of this worker."""
        write_own(str(directory), args.own, args.shared)

    def restore(self, directory: Any, args: Any) -> None:
        """Do nothing: `storage.py` reads the files itself."""
        del directory, args


@_orbax.args.register_with_handler(TextHandler, for_save=True, for_restore=True)
@final
@dataclass
class SaveText(_Args):
    """The texts to write."""

    own: str
    shared: str


@final
class IteratorHandler(_Handler):
    """Saves the position of an iterator in a step of Orbax's `CheckpointManager`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> import jax.numpy as jnp
        >>> import orbax.checkpoint as ocp
        >>> from evenfeed.train.experimental import RestoreIterator, SaveIterator
        >>> iterator = iter(tf.data.Dataset.range(5))
        >>> first = next(iterator)
        >>> with tempfile.TemporaryDirectory() as folder, ocp.CheckpointManager(folder) as manager:
        ...     saved = manager.save(1, args=ocp.args.Composite(
        ...         model=ocp.args.StandardSave({"w": jnp.ones(3)}), data=SaveIterator(iterator)))
        ...     manager.wait_until_finished()
        ...     again = iter(tf.data.Dataset.range(5))
        ...     found = manager.restore(1, args=ocp.args.Composite(data=RestoreIterator(again)))
        >>> saved, int(next(again)), found.data is again
        (True, 1, True)
    """

    def save(self, directory: Any, args: "SaveIterator") -> None:
        """Write this worker's position."""
        write_own(str(directory), args.text)

    def restore(self, directory: Any, args: "RestoreIterator") -> Iterator:
        """Move the iterator to this worker's position, and return it."""
        states = [json.loads(text) for text in read_own(str(directory))]
        args.iterator.set_state(common(states, str(directory)))
        return args.iterator


@_orbax.args.register_with_handler(IteratorHandler, for_save=True)
@final
@dataclass
class SaveIterator(_Args):
    """Asks Orbax to save the position of an iterator, as it is when this object is created.

    Args:
        iterator: What `iter(dataset)` returned, for a dataset or a distributed dataset.
    """

    iterator: Iterator
    text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        # Now: Orbax may write it later, in another thread, when the iterator has moved on.
        self.text = json.dumps(_checked(self.iterator).get_state())


@_orbax.args.register_with_handler(IteratorHandler, for_restore=True)
@final
@dataclass
class RestoreIterator(_Args):
    """Asks Orbax to move an iterator to the saved position.

    Args:
        iterator: An iterator over a dataset that was built as the saved one was.
    """

    iterator: Iterator

    def __post_init__(self) -> None:
        _checked(self.iterator)


def _checked(iterator: object) -> Iterator:
    if isinstance(iterator, Iterator):
        return iterator
    raise TypeError(
        described(
            f"Only iterators have a position, but got {shortened(iterator)}.",
            fix="pass what iter(dataset) returns, and take the elements from that object.",
        )
    )
