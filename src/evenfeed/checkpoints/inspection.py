"""Reads single values of a checkpoint: `load_checkpoint`, `load_variable`, `list_variables`."""

from typing import Any, final

from evenfeed.checkpoints.state_file import latest_checkpoint
from evenfeed.checkpoints.storage import Stored, checked_path, writer
from evenfeed.checkpoints.tracking import ArrayInfo
from evenfeed.core.dtypes import as_dtype
from evenfeed.core.errors import NotFoundError
from evenfeed.core.lazy import difflib


@final
class CheckpointReader:
    """Reads single values of a checkpoint.

    Args:
        stored: The checkpoint.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        arrays = [info for saved in stored.objects for info in saved.arrays.values()]
        self._infos: dict[str, ArrayInfo] = {info.key: info for info in arrays}

    def has_tensor(self, name: str) -> bool:
        """Return True if there is a value of this name."""
        return name in self._infos

    def get_tensor(self, name: str) -> Any:
        """Return a value as a NumPy array."""
        if name not in self._infos:
            raise NotFoundError(
                f"The checkpoint {self._stored.path} has no value {name!r}.{self._hint(name)}",
                fix="choose a name from evenfeed.train.list_variables(path).",
            )
        return self._stored.read({name: None})[name]

    def _hint(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._infos, n=1, cutoff=0)
        return f" Did you mean {near[0]!r}?" if near else ""

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shape of each value, by name."""
        return {name: list(info.shape) for name, info in sorted(self._infos.items())}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Return the dtype of each value, by name."""
        return {name: as_dtype(info.dtype) for name, info in sorted(self._infos.items())}


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Open a checkpoint, to read single values of it.

    Args:
        ckpt_dir_or_file: The path of a checkpoint, or a folder, whose latest checkpoint is meant.

    Raises:
        NotFoundError: There is no checkpoint.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(v=tf.Variable([1.0, 2.0])).save(folder + "/ckpt")
        ...     tf.train.list_variables(folder)
        ...     tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE").tolist()
        [('save_counter/.ATTRIBUTES/VARIABLE_VALUE', []), ('v/.ATTRIBUTES/VARIABLE_VALUE', [2])]
        [1.0, 2.0]
    """
    writer.wait()
    path = checked_path(ckpt_dir_or_file)
    return CheckpointReader(Stored(latest_checkpoint(path) or path))


def load_variable(ckpt_dir_or_file: Any, name: str) -> Any:
    """Read a value of a checkpoint as a NumPy array.

    Args:
        ckpt_dir_or_file: The path of a checkpoint, or a folder, whose latest checkpoint is meant.
        name: The name of the value: see `list_variables`.
    """
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name)


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """List the names and shapes of the values of a checkpoint.

    Args:
        ckpt_dir_or_file: The path of a checkpoint, or a folder, whose latest checkpoint is meant.
    """
    return list(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
