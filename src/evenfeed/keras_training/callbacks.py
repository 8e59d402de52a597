"""Callbacks that write files: the chief writes for all workers, and TensorBoard's files need no TensorFlow."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.distribution import current_replicas
from evenfeed.strategy.current import get_strategy, has_strategy
from evenfeed.summaries.summary_values import histogram, image, scalar
from evenfeed.summaries.summary_writers import create_file_writer, create_noop_writer, record_if


def _writes() -> bool:
    return not has_strategy() or get_strategy().is_chief


def _exchanged(what: str, own: Any) -> list[Any]:
    replicas = current_replicas()
    return [own] if replicas is None else replicas.session.exchange(what, own)


def _checkpointing(own: Callable[..., Any]) -> Callable[..., Any]:
    """Save on the chief. The others only note the best result, as the chief does."""

    def save(self: Any, epoch: int, batch: int | None, logs: Any) -> None:
        if _writes():
            own(self, epoch, batch, logs)
        else:
            keras_private.note_result(self, epoch, batch, logs)

    return save


def _on_chief(own: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Any) -> None:
        if _writes():
            own(self)

    return method


def _restoring(own: Callable[..., Any]) -> Callable[..., Any]:
    """Restore on all workers or on none: a worker that trains other epochs would wait for the others."""

    def on_train_begin(self: Any, logs: Any = None) -> None:
        found = _exchanged("start of BackupAndRestore", keras_private.has_backup(self))
        if len(set(found)) > 1:
            raise InvalidArgumentError(
                f"Only workers {[w for w, has in enumerate(found) if has]} find a backup in {self.backup_dir!r}.",
                fix="pass a backup_dir that all workers share.",
            )
        own(self, logs)

    return on_train_begin


def _deleting(own: Callable[..., Any]) -> Callable[..., Any]:
    """Delete the backup on the chief, before another worker can look for one again."""

    def on_train_end(self: Any, logs: Any = None) -> None:
        if _writes():
            own(self, logs)
        _exchanged("end of BackupAndRestore", None)

    return on_train_end


def _summarizing(_: object) -> property:
    def summary(self: Any) -> SimpleNamespace:
        del self
        return SimpleNamespace(
            create_file_writer=create_file_writer if _writes() else _no_writer,
            histogram=histogram,
            image=image,
            record_if=record_if,
            scalar=scalar,
        )

    return property(summary)


def _no_writer(folder: str) -> Any:
    del folder
    return create_noop_writer()


def _nothing(_: object) -> Callable[[Any], None]:
    """Leave out the drawing of the model, which TensorFlow's protos describe."""
    return lambda _: None


#: The members of callbacks that evenfeed replaces, and by what.
MEMBERS: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("ModelCheckpoint", "_save_model"): _checkpointing,
    ("BackupAndRestore", "on_train_begin"): _restoring,
    ("BackupAndRestore", "on_train_end"): _deleting,
    ("BackupAndRestore", "_save_model"): _on_chief,
    ("TensorBoard", "summary"): _summarizing,
    ("TensorBoard", "_write_keras_model_summary"): _nothing,
}
