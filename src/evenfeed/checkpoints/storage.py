"""Stores checkpoints with Orbax: atomically, arrays once, and in the background on request.

A checkpoint is a folder. Orbax writes it under a temporary name and renames it when it is complete, so an
interrupted write leaves no folder of that name.
"""

import json
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from evenfeed.checkpoints.object_graph import SavedObject, read_graph
from evenfeed.checkpoints.orbax_package import orbax
from evenfeed.checkpoints.worker_files import common, place, read_own, read_shared
from evenfeed.cluster.host_exchange import StoredAgreement
from evenfeed.cluster.survival.guarded_waits import guarded
from evenfeed.core.arguments import path_of
from evenfeed.core.concurrency.peers import MEETING_ERRORS, peers
from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import (
    DataLossError,
    EvenfeedError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnimplementedError,
)
from evenfeed.core.lazy import LazyModule, logging, shutil
from evenfeed.core.lazy_jax import jax
from evenfeed.formats.bytes.filesystems import is_remote, named, naming

_ARRAYS: Final = "arrays"
_OBJECTS: Final = "objects"
_TEMPORARY: Final = ".orbax-checkpoint-tmp"
_NEW: Final = ".replacement"  # a complete checkpoint that replaces the one of that name

_NO_ROOM: Final = ("No space left", "File too large", "Disk quota exceeded")

_items: Any = LazyModule("evenfeed.checkpoints.orbax_items")


@final
@dataclass(frozen=True)
class Contents:
    """What to write.

    Attributes:
        arrays: The arrays, by key.
        graph: The objects, as text; the same on all workers.
        states: This worker's states, by the object's number.
    """

    arrays: Mapping[str, Any]
    graph: str
    states: Mapping[str, Any]


@final
class _Writer:
    """Writes one checkpoint after the other. A write in the background ends before the next one starts."""

    def __init__(self) -> None:
        self._running: Any = None
        self._path = ""
        self._ends_with_program = False

    def wait(self) -> None:
        """Wait for a write in the background. Raises its error."""
        running, self._running = self._running, None
        if running is not None:
            with _explained(self._path):
                running.close()

    def write(
        self, path: str, contents: Contents, then: Callable[[], None], *, waits: bool
    ) -> None:
        """Write a checkpoint, on all workers together.

        Args:
            path: The folder.
            contents: What to write.
            then: Called on worker 0 when the checkpoint is complete. Other workers wait for it.
            waits: Whether to return only then. Otherwise the values are copied, and a thread of Orbax writes them. A
                program that ends waits for it.
        """
        self.wait()
        module = orbax()
        target = _agreed_target(path, contents)

        def complete() -> None:
            if target != path:
                _replace(path, target)
            then()

        items = {_OBJECTS: _items.SaveText(json.dumps(contents.states), contents.graph)}
        stored = _storable(contents.arrays)
        if stored:
            items[_ARRAYS] = module.args.PyTreeSave(stored)
        handlers = {_ARRAYS: module.PyTreeCheckpointHandler(), _OBJECTS: _items.TextHandler()}
        with _explained(path):
            checkpointer = module.AsyncCheckpointer(
                module.CompositeCheckpointHandler(**handlers),
                async_options=module.options.AsyncOptions(barrier_sync_fn=_barrier),
                temporary_path_class=_items.completed_by(complete),
            )
            _with_all(lambda: checkpointer.save(target, module.args.Composite(**items)))
        self._running, self._path = checkpointer, path
        if waits:
            self.wait()
        elif not self._ends_with_program:
            # Else Python closes the pools of Orbax's threads first, and the checkpoint is lost.
            self._ends_with_program = True
            background.before_pools_close(self._finish)

    def _finish(self) -> None:
        try:
            self.wait()
        except Exception as error:  # noqa: BLE001 - the program has ended: nobody can catch it
            logging.getLogger("evenfeed").error("The last checkpoint is not complete. %s", error)

    def forget(self) -> None:
        """Do not wait for a write, in a fork, which does not have its thread."""
        self._running = None


writer: Final = _Writer()
os.register_at_fork(after_in_child=writer.forget)


def _with_all(save: Callable[[], None]) -> None:
    """Call a function that waits for all workers. Raises if one is lost."""
    return guarded(save) if place()[1] > 1 else save()


@contextmanager
def _explained(path: str) -> Generator[None]:
    """Raise the cause of an error in a write: a lost worker, or a disk that is full."""
    try:
        yield
    except EvenfeedError:
        raise
    except OSError as error:
        raise named(path, error) from error
    except MEETING_ERRORS as error:
        if any(text in str(error) for text in _NO_ROOM):
            raise ResourceExhaustedError(
                f"The checkpoint {path} cannot be written: {error}",
                fix="make room on the disk, or save to another one. Earlier checkpoints are complete.",
            ) from error
        peers.reraise(error)


@final
class _Exchanges:
    """What the workers tell each other, in the same order on all of them: no two writes run at a time."""

    def __init__(self) -> None:
        self._numbers = count()
        self._last = ""

    def next(self, text: str, patience: float | None = None) -> list[str]:
        """Return the texts of all workers."""
        agreement = StoredAgreement(*place(), patience)
        key = f"evenfeed/checkpoint/{next(self._numbers)}"
        heard = agreement.exchange(key, text, lambda: False)
        if self._last:
            agreement.forget(self._last)  # everyone has read it
        self._last = key
        return heard


_exchanges: Final = _Exchanges()


def _barrier(*, key: str, timeout_ms: int) -> None:
    """Wait for all workers. Raises if one is lost, which a barrier of JAX does not notice."""
    if place()[1] > 1:
        _exchanges.next(key, timeout_ms / 1000)


def _storable(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arrays as Orbax takes them. Empty ones are not stored: their shape is in the graph."""
    _, workers = place()
    return {
        key: np.asarray(array) if workers > 1 and _is_local(array) else array
        for key, array in arrays.items()
        if array.size
    }


def _is_local(array: Any) -> bool:
    """Return True for an array that every worker has: worker 0 writes it."""
    return isinstance(array, jax.Array) and array.is_fully_addressable


def _agreed_target(path: str, contents: Contents) -> str:
    """Return the folder to write to, after the workers have compared what they are about to save."""
    index, workers = place()
    if index == 0:
        _clear(path)
    exists = os.path.exists(path)
    if workers > 1:
        heard = _exchanges.next(json.dumps([path, sorted(contents.arrays), exists]))
        theirs: list[list[Any]] = [json.loads(text) for text in heard]
        _check_same(path, theirs)
        exists = theirs[0][2]
    return f"{path}{_NEW}" if exists else path


def _check_same(path: str, theirs: list[list[Any]]) -> None:
    for worker, (other, keys, _) in enumerate(theirs):
        if other != theirs[0][0]:
            raise InvalidArgumentError(
                f"All workers save one checkpoint together, but worker 0 saves to {theirs[0][0]}, and worker {worker} "
                f"to {other}.",
                fix="pass the same path on all workers: each value is written once.",
            )
        if keys != theirs[0][1]:
            differ = sorted(set(keys) ^ set(theirs[0][1]))
            raise InvalidArgumentError(
                f"Worker 0 and worker {worker} save different values to {path}: {', '.join(differ[:3])}.",
                fix="make the same Checkpoint on all workers.",
            )


def _clear(path: str) -> None:
    """Create the parent folder, and delete what interrupted writes left behind."""
    folder, name = os.path.split(path)
    with naming(folder):
        os.makedirs(folder, exist_ok=True)
        entries = os.listdir(folder)
    for entry in entries:
        if entry.startswith((f"{name}{_TEMPORARY}", f"{name}{_NEW}{_TEMPORARY}")):
            shutil.rmtree(os.path.join(folder, entry), ignore_errors=True)
    # A complete replacement may be the only copy.
    _finish_replacing(path)


def _replace(path: str, new: str) -> None:
    old = f"{path}{_TEMPORARY}-old"
    os.rename(path, old)
    os.rename(new, path)
    shutil.rmtree(old, ignore_errors=True)


def _finish_replacing(path: str) -> None:
    """Complete a replacement that was interrupted between its two renames, or drop one that was not begun."""
    new = f"{path}{_NEW}"
    if os.path.isdir(new):
        if os.path.exists(path):
            shutil.rmtree(new, ignore_errors=True)
        else:
            with suppress(FileNotFoundError):  # another worker did it
                os.rename(new, path)


def delete(path: str) -> None:
    """Delete a checkpoint. An interrupted deletion leaves no folder of its name."""
    gone = f"{path}{_TEMPORARY}-deleted"
    with suppress(FileNotFoundError):
        os.rename(path, gone)
        shutil.rmtree(gone, ignore_errors=True)


def exists(path: str) -> bool:
    """Return True if there is a complete checkpoint at a path."""
    return os.path.isdir(os.path.join(path, _OBJECTS)) or os.path.isdir(
        os.path.join(f"{path}{_NEW}", _OBJECTS)
    )


def named_path(path: Any) -> str:
    """Return a path as text."""
    return path_of(path, "The path of a checkpoint", 'pass a path such as "folder/ckpt".')


def checked_path(path: Any) -> str:
    """Return the absolute path of a checkpoint, or of the beginning of its name."""
    text = named_path(path)
    if is_remote(text):
        raise UnimplementedError(
            f"Checkpoints are saved to local or mounted file systems, but got {text}.",
            fix="mount the bucket, or use orbax.checkpoint.CheckpointManager with evenfeed.train.experimental."
            "SaveIterator(iterator).",
        )
    return os.path.abspath(text)


@final
class Stored:
    """A checkpoint on disk.

    Args:
        path: Its folder.

    Raises:
        NotFoundError: There is no checkpoint.
    """

    def __init__(self, path: str) -> None:
        self.path = checked_path(path)
        if not os.path.exists(self.path):
            _finish_replacing(self.path)
        if not exists(self.path):
            raise _not_found(self.path)

    @cached_property
    def objects(self) -> list[SavedObject]:
        """The objects, the root first."""
        with self._undamaged():
            return read_graph(read_shared(self._folder(_OBJECTS)), self.path)

    @cached_property
    def _states(self) -> list[dict[str, Any]]:
        with self._undamaged():
            return [json.loads(text) for text in read_own(self._folder(_OBJECTS))]

    def state(self, number: int) -> Any:
        """Return this worker's state of an object."""
        with self._undamaged():
            found = [states[str(number)] for states in self._states]
        return common(found, self.path)

    def read(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Read arrays.

        Args:
            wanted: The keys. For each the sharding of a `jax.Array`, or None for a NumPy array.
        """
        infos = {info.key: info for saved in self.objects for info in saved.arrays.values()}
        empty = {key: np.zeros(infos[key].shape, infos[key].dtype) for key in wanted}
        stored = {key: where for key, where in wanted.items() if empty[key].size}
        if not stored:
            return empty
        module = orbax()
        how = {key: _how(module, where) for key, where in stored.items()}
        request = module.args.PyTreeRestore(
            item=dict.fromkeys(stored, 0), restore_args=how, partial_restore=True
        )
        # Not through a Checkpointer, which would wait for the other workers.
        folder = Path(self._folder(_ARRAYS))
        try:
            found = module.PyTreeCheckpointHandler().restore(folder, args=request)
        except Exception as error:
            raise self._damaged(error) from error
        return empty | found

    @contextmanager
    def _undamaged(self) -> Generator[None]:
        """Raise DataLossError if files are missing, or hold something else than was written."""
        try:
            yield
        except EvenfeedError:
            raise
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DataLossError:
        return DataLossError(
            f"The checkpoint {self.path} cannot be read: {error}", fix="restore an earlier one."
        )

    def _folder(self, item: str) -> str:
        return os.path.join(self.path, item)


def _how(module: Any, where: Any) -> Any:
    if where is None:
        return module.RestoreArgs(restore_type=np.ndarray)
    return module.ArrayRestoreArgs(sharding=where)


def _not_found(path: str) -> Exception:
    if os.path.exists(f"{path}.index"):
        return UnimplementedError(
            f"TensorFlow wrote the checkpoint {path}; evenfeed cannot read its files.",
            fix="in a program with TensorFlow, save the values with numpy.savez, and assign them to the variables here.",
        )
    if os.path.isdir(path):
        return NotFoundError(
            f"The folder {path} is not a checkpoint that evenfeed.train.Checkpoint saved.",
            fix="pass evenfeed.train.latest_checkpoint(folder); read other Orbax checkpoints with orbax.checkpoint.",
        )
    return NotFoundError(
        f"There is no checkpoint at {path}.",
        fix="pass the path that save returned, or evenfeed.train.latest_checkpoint(folder).",
    )
