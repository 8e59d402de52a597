"""Module: an object that finds the variables in its attributes."""

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from evenfeed.replicas.variables.attaching import Attaching
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.control.scopes import name_scope as opened_scope
from evenfeed.tensors.control.scopes import scoped_name

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Module(Attaching):
    """A base class of layers and models. It finds the variables in its attributes, and in lists and dicts there.

    Args:
        name: The name of the module; by default that of its class, in small letters.

    Examples:
        >>> import evenfeed as tf
        >>> class Dense(tf.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.w = tf.Variable([[1.0], [2.0]], name="w")
        ...         self.b = tf.Variable([0.5], name="b", trainable=False)
        ...
        ...     def __call__(self, x):
        ...         return tf.matmul(x, self.w) + self.b
        >>> layer = Dense()
        >>> layer([[1.0, 1.0]]).tolist()
        [[3.5]]
        >>> [v.name for v in layer.variables], [v.name for v in layer.trainable_variables]
        (['b:0', 'w:0'], ['w:0'])
    """

    # Attributes that are not searched for variables.
    _TF_MODULE_IGNORED_PROPERTIES: frozenset[str] = frozenset()

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not name.isidentifier():
            raise ValueError(
                f"{name!r} is not a valid name for a Module: pass a Python identifier."
            )
        self._name = name or _in_small_letters(type(self).__name__)
        self._scope_name = f"{scoped_name(self._name)}/"

    @property
    def name(self) -> str:
        """The name of the module."""
        return self._name

    @property
    def name_scope(self) -> opened_scope:
        """A scope with the name of the module, and of the scopes in which it was made."""
        return opened_scope(self._scope_name)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables of this module and of all modules in it."""
        return tuple(part for part in self._parts() if isinstance(part, Variable))

    @property
    def trainable_variables(self) -> tuple[Any, ...]:
        """The variables that are trainable."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple[Any, ...]:
        """All modules in this one."""
        return tuple(part for part in self._parts() if isinstance(part, Module))

    @classmethod
    def with_name_scope(cls, method: _Method) -> _Method:
        """Decorate a method so that it runs in the name scope of the module."""

        @wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return cast("_Method", scoped)

    def _parts(self) -> list[Any]:
        """Return all variables and modules below this one, each once: first its own, then those of its modules."""
        found: dict[int, Any] = {id(self): self}
        waiting: list[Module] = [self]
        while waiting:
            module = waiting.pop(0)
            new = [part for part in module._own_parts() if id(part) not in found]
            fresh = {id(part): part for part in new}
            found |= fresh
            waiting = [*(part for part in fresh.values() if isinstance(part, Module)), *waiting]
        return [part for part in found.values() if part is not self]

    def _own_parts(self) -> Iterable[Any]:
        for name, value in sorted(vars(self).items()):
            if name not in self._TF_MODULE_IGNORED_PROPERTIES:
                yield from _leaves(value)


def _leaves(value: Any) -> Generator[Any]:
    """Yield the variables and modules in an attribute, and in lists, tuples and dicts there."""
    if isinstance(value, (Variable, Module)):
        yield value
    elif isinstance(value, Mapping):
        entries = cast("Mapping[Any, Any]", value)
        for key in sorted(entries, key=str):
            yield from _leaves(entries[key])
    elif isinstance(value, (list, tuple)):
        for entry in cast("Iterable[Any]", value):
            yield from _leaves(entry)


def _in_small_letters(name: str) -> str:
    """Return the name of a class as TensorFlow writes it: MyHTTPLayer becomes my_http_layer."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])", "_", name).lower()
