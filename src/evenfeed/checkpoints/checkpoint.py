"""`Checkpoint`: saves and restores objects by the names of their attributes."""

import os
from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from evenfeed.checkpoints.array_values import Slot, is_device_array, is_tree_of_arrays
from evenfeed.checkpoints.checkpoint_options import CheckpointOptions, call_back
from evenfeed.checkpoints.object_graph import array_key, live_objects, written
from evenfeed.checkpoints.orbax_package import orbax
from evenfeed.checkpoints.restoring import Restoration
from evenfeed.checkpoints.state_file import update_checkpoint_state
from evenfeed.checkpoints.statuses import LoadStatus, NothingStatus
from evenfeed.checkpoints.storage import Contents, Stored, checked_path, named_path, writer
from evenfeed.checkpoints.tracking import ArrayInfo, ArrayLeaf, Tracked, children_of, tracked
from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.dataset import Dataset
from evenfeed.replicas import contexts
from evenfeed.replicas.variables.attaching import Attaching
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.device_arrays import held_dtype

_COUNTER: Final = "save_counter"
_OWN: Final = ("root", "_restoration")


class Checkpoint(Attaching):
    """Saves and restores objects by the names of their attributes.

    The objects are variables, modules, iterators, random generators, other Checkpoints, and lists, tuples and dicts of
    them. An attribute may also be an array or a pytree of arrays, such as an optax state. Restoring replaces it, so
    read it from the Checkpoint afterwards.

    With several workers, all of them call `save` with the same path, on a file system that all of them see. Orbax
    writes each value once.

    Args:
        root: An object whose attributes are saved as if they were attributes of the Checkpoint.
        **kwargs: The objects, by name.

    Raises:
        ValueError: An object cannot be saved.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> step, iterator = tf.Variable(0), iter(tf.data.Dataset.range(10))
        >>> checkpoint = tf.train.Checkpoint(step=step, data=iterator)
        >>> _ = next(iterator), step.assign_add(1)
        >>> path = checkpoint.save(folder.name + "/ckpt")
        >>> _ = next(iterator), step.assign_add(1)
        >>> _ = checkpoint.restore(path).assert_consumed()
        >>> int(step), int(next(iterator))
        (1, 1)
        >>> folder.cleanup()
    """

    def __init__(self, root: Any = None, **kwargs: Any) -> None:
        self._restoration: Restoration | None = None
        self.root = root
        if root is not None and tracked(root) is None:
            _reject("root", root)
        below = children_of(root)
        for name, value in sorted(kwargs.items()):
            if name in below and below[name] is not value:
                raise ValueError(
                    described(
                        f"The Checkpoint gets {name!r} as an argument, but its root has another object of that name.",
                        fix="pass it under another name.",
                    )
                )
            if tracked(value) is None and not is_tree_of_arrays(value):
                _reject(name, value)
            _check_unmixed(name, value if tracked(value) is not None else None)
            setattr(self, name, value)

    @property
    def save_counter(self) -> Any:
        """A variable that counts the calls of `save`."""
        counter = vars(self).get(_COUNTER)
        if counter is None:
            counter = Variable(0, trainable=False, name=_COUNTER, dtype=held_dtype(dtypes.int64))
            self._attach(_COUNTER, counter)
        return counter

    def _attach(self, name: str, value: Any) -> None:
        """Set an attribute that a property hides."""
        vars(self)[name] = value
        _finish_restoring(self)

    def save(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save under the next number, and make `latest_checkpoint` find it.

        Args:
            file_prefix: The beginning of the path: "folder/ckpt" saves to "folder/ckpt-1", then "folder/ckpt-2".
            options: How to save.

        Returns:
            The path, for `restore`.
        """
        _check_place("saved")  # before it counts
        checked_path(file_prefix)
        self.save_counter.assign_add(1)
        path = f"{named_path(file_prefix)}-{int(self.save_counter)}"
        folder = os.path.dirname(checked_path(path))

        def record() -> None:
            update_checkpoint_state(folder, path, [path])

        return write_then(self, path, record, options)

    def write(self, file_prefix: Any, options: CheckpointOptions | None = None) -> str:
        """Save to exactly this path, without a number. `read` restores it.

        Args:
            file_prefix: The path.
            options: How to save.
        """
        return write_then(self, named_path(file_prefix), lambda: None, options)

    def read(self, save_path: Any, options: CheckpointOptions | None = None) -> LoadStatus:
        """Restore a checkpoint that `write` saved.

        Objects that are created later are restored when they become attributes of this Checkpoint or of an object in it.

        Args:
            save_path: The path that was written.
            options: Accepted for compatibility.

        Returns:
            A status, whose methods check that all was restored.

        Raises:
            NotFoundError: There is no checkpoint.
            ValueError: A value has another shape in the checkpoint.
        """
        del options
        _check_place("restored")
        writer.wait()
        restoration = Restoration(self, Stored(save_path))
        try:
            restoration.match_all()
        except Exception:
            restoration.cancel()
            raise
        self._restoration = restoration
        return LoadStatus(restoration)

    def restore(
        self, save_path: Any, options: CheckpointOptions | None = None
    ) -> LoadStatus | NothingStatus:
        """Restore a checkpoint that `save` saved. See `read`.

        Args:
            save_path: The path that `save` returned, or what `latest_checkpoint` returned: None restores nothing.
            options: Accepted for compatibility.
        """
        if save_path is None:
            return NothingStatus()
        status = self.read(save_path, options)
        _ = self.save_counter  # creates it, so that its value is restored
        return status

    def sync(self) -> None:
        """Wait until a checkpoint that is saved in the background is complete. Raises the error if that failed."""
        writer.wait()


def write_then(
    checkpoint: Checkpoint,
    path: str,
    then: Callable[[], None],
    options: CheckpointOptions | None,
) -> str:
    """Save to a path, and call `then` on worker 0 when the checkpoint is complete."""
    _check_place("saved")
    chosen = options or CheckpointOptions()
    orbax()  # raises if it is not installed
    # Objects that were appended to a list or dict unseen: their values must not be lost.
    _finish_restoring(checkpoint)

    def finished() -> None:
        then()
        call_back(chosen, path)

    writer.write(checked_path(path), _contents(checkpoint), finished, waits=not chosen.enable_async)
    return path


def _finish_restoring(checkpoint: Checkpoint) -> None:
    """Restore objects that exist by now."""
    pending: Restoration | None = vars(checkpoint)["_restoration"]
    if pending is not None:
        pending.match_all()


@tracked.register
def _(value: Checkpoint) -> Tracked:
    return Tracked(lambda: _children(value), face=value.root)


def _children(checkpoint: Checkpoint) -> dict[str, Any]:
    found = dict(children_of(checkpoint.root))
    for name, value in vars(checkpoint).items():
        if name in _OWN:
            continue
        if tracked(value) is not None:
            _check_unmixed(name, value)
            found[name] = value
        elif is_tree_of_arrays(value):
            found[name] = Slot(checkpoint, name)
    return found


def _contents(checkpoint: Checkpoint) -> Contents:
    objects = live_objects(checkpoint)
    infos: dict[int, dict[str, ArrayInfo]] = {}
    arrays: dict[str, Any] = {}
    states: dict[str, Any] = {}
    for number, live in enumerate(objects):
        if isinstance(live.leaf, ArrayLeaf):
            for name, array in live.leaf.arrays().items():
                key = array_key(live.path, name)
                info = ArrayInfo(key, tuple(array.shape), np.dtype(array.dtype).name)
                infos.setdefault(number, {})[name] = info
                arrays[key] = array
        elif live.leaf is not None:
            states[str(number)] = live.leaf.state()
    return Contents(arrays, written(objects, infos, {int(number) for number in states}), states)


def _check_place(what: str) -> None:
    if contexts.staging() is not None or contexts.replica_context() is not None:
        raise NotImplementedError(  # a RuntimeError, too
            described(
                f"A Checkpoint cannot be {what} inside evenfeed.function or strategy.run.",
                fix="call it outside, between two steps.",
            )
        )


def _reject(name: str, value: Any) -> None:
    fix = "pass variables, modules, iterators, arrays, or lists and dicts of them."
    what = f"The Checkpoint's {name!r} cannot be saved: {shortened(value)}."
    if isinstance(value, Dataset):
        what = f"The Checkpoint's {name!r} is a Dataset, which has no position."
        fix = "pass its iterator, iter(dataset), and take the elements from that."
    raise ValueError(described(what, fix=fix))


def _check_unmixed(name: str, value: Any) -> None:
    """Reject arrays beside variables in one container: they would not be saved."""
    if not isinstance(value, (list, tuple, dict)):
        return
    entries = cast("Any", value)
    for entry in entries.values() if isinstance(value, dict) else entries:
        if isinstance(entry, np.ndarray) or is_device_array(entry):
            raise ValueError(
                described(
                    f"The Checkpoint's {name!r} has both arrays and objects such as variables, and an array in it could "
                    "not be replaced when it is restored.",
                    fix="pass the arrays as an attribute of their own.",
                )
            )
        _check_unmixed(name, entry)
