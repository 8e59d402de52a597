"""`CheckpointView` and `TrackableView`: the objects of a checkpoint, those of a program, and what both have."""

from collections.abc import Mapping
from typing import Any, final

from evenfeed.checkpoints.array_values import Slot
from evenfeed.checkpoints.object_graph import ROOT, identity, live_objects
from evenfeed.checkpoints.storage import Stored, writer
from evenfeed.checkpoints.tracking import children_of, tracked
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


@final
class TrackableView:
    """The objects that a checkpoint of an object would save.

    Args:
        root: A variable, a module, a Checkpoint, or another object that can be saved.

    Examples:
        >>> import evenfeed as tf
        >>> model = tf.Module()
        >>> model.w, model.layers = tf.Variable(1.0), [tf.Variable(2.0)]
        >>> view = tf.train.TrackableView(model)
        >>> list(view.children(model)), len(view.descendants())
        (['w', 'layers'], 4)
    """

    def __init__(self, root: Any) -> None:
        self.root = _checked(root)

    @classmethod
    def children(cls, obj: Any) -> dict[str, Any]:
        """Return the objects directly below an object, by name.

        Args:
            obj: The object.
        """
        return {name: _shown(child) for name, child in children_of(_checked(obj)).items()}

    def descendants(self) -> list[Any]:
        """Return the root and all objects below it, each once, those with shorter paths first."""
        return [_shown(live.value) for live in live_objects(self.root)]


@final
class CheckpointView:
    """The objects in a checkpoint, by number. The root has number 0.

    Args:
        save_path: The path that `save` or `write` returned.

    Raises:
        NotFoundError: There is no checkpoint.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(v=tf.Variable(1.0)).save(folder + "/ckpt")
        ...     view = tf.train.CheckpointView(path)
        >>> view.children(0)
        {'v': 1, 'save_counter': 2}
        >>> found, only_saved, only_here = view.diff(tf.train.Checkpoint(w=tf.Variable(2.0)))
        >>> list(found), only_saved, len(only_here)
        ([0], [1, 2], 1)
    """

    def __init__(self, save_path: Any) -> None:
        writer.wait()
        self._objects = Stored(save_path).objects

    def children(self, node_id: int) -> dict[str, int]:
        """Return the numbers of the objects directly below an object, by name.

        Args:
            node_id: The number of the object.
        """
        return dict(self._objects[node_id].children)

    def descendants(self) -> list[int]:
        """Return the numbers of all objects, those with shorter paths first."""
        found = {ROOT: None}
        for number in (waiting := [ROOT]):  # grows meanwhile
            new = [n for n in self._objects[number].children.values() if n not in found]
            found |= dict.fromkeys(new)
            waiting += dict.fromkeys(new)
        return list(found)

    def match(self, obj: Any) -> dict[int, Any]:
        """Return the objects of the program with the paths of saved ones, by number.

        Args:
            obj: The root of the program's objects.
        """
        return {number: _shown(value) for number, value in self._matched(obj).items()}

    def _matched(self, obj: Any) -> dict[int, Any]:
        found = {ROOT: _checked(obj)}
        for number in (waiting := [ROOT]):  # grows meanwhile
            below: Mapping[str, Any] = children_of(found[number])
            for name, child in self._objects[number].children.items():
                if name in below and child not in found:
                    found[child] = below[name]
                    waiting.append(child)
        return found

    def diff(self, obj: Any) -> tuple[dict[int, Any], list[int], list[Any]]:
        """Compare the checkpoint with the objects of the program.

        Args:
            obj: The root of the program's objects.

        Returns:
            What `match` returns, the numbers of objects that only the checkpoint has, and the objects that only the
            program has.
        """
        found = self._matched(obj)
        known = {identity(value) for value in found.values()}
        only_saved = [number for number in self.descendants() if number not in found]
        live = [live.value for live in live_objects(obj)]
        only_here = [_shown(value) for value in live if identity(value) not in known]
        return self.match(obj), only_saved, only_here


def _checked(value: Any) -> Any:
    if tracked(value) is None:
        raise ValueError(
            described(
                f"Expected an object that a Checkpoint can save, but got {shortened(value)}.",
                fix="pass a variable, a module, a Checkpoint, or a list or dict of them.",
            )
        )
    return value


def _shown(value: Any) -> Any:
    """Return an object as users know it: arrays that are an attribute of a Checkpoint are that attribute."""
    return getattr(value.holder, value.name) if isinstance(value, Slot) else value
