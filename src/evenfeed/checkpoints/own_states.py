"""`PythonState`: user code whose state a checkpoint saves."""

import base64
from abc import ABC, abstractmethod
from typing import Any, final

from evenfeed.checkpoints.tracking import StateLeaf, Tracked, tracked
from evenfeed.replicas.variables.attaching import Attaching


class PythonState(Attaching, ABC):
    """A base class of Python objects that a Checkpoint saves as text or bytes.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> class Words(tf.train.experimental.PythonState):
        ...     def __init__(self, words):
        ...         self.words = words
        ...
        ...     def serialize(self):
        ...         return " ".join(self.words)
        ...
        ...     def deserialize(self, string_value):
        ...         self.words = string_value.split(" ")
        >>> words = Words(["a", "b"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = tf.train.Checkpoint(words=words).save(folder + "/ckpt")
        ...     words.words = []
        ...     status = tf.train.Checkpoint(words=words).restore(path)
        >>> words.words
        ['a', 'b']
    """

    @abstractmethod
    def serialize(self) -> str | bytes:
        """Return the state to save. With several workers, each saves its own."""

    @abstractmethod
    def deserialize(self, string_value: Any) -> None:
        """Restore a state that `serialize` returned."""


@tracked.register
def _(value: PythonState) -> Tracked:
    return Tracked(leaf=_PythonStateLeaf(value))


@final
class _PythonStateLeaf(StateLeaf):
    def __init__(self, value: PythonState) -> None:
        self._value = value

    def state(self) -> Any:
        found = self._value.serialize()
        if isinstance(found, bytes):
            return {"base64": base64.b64encode(found).decode()}
        return {"text": found}

    def put(self, state: Any) -> None:
        text = state.get("text")
        self._value.deserialize(base64.b64decode(state["base64"]) if text is None else text)
