"""A value that may be missing: TensorFlow's Optional."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, cast, final

import numpy as np

from evenfeed.core.conversion import is_tensor, to_component
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import CompositeSpec, Specified, TypeSpec, spec_of
from evenfeed.core.structure import DATA, flatten, map_structure, outline, pack
from evenfeed.core.tensor_types import host_tensor


class Optional(Specified):
    """A value that may be missing, such as the next element of an iterator that may have ended.

    Examples:
        >>> import evenfeed as tf
        >>> there = tf.experimental.Optional.from_value((1, [2.5]))
        >>> there.has_value().numpy(), there.get_value()[0].numpy()
        (np.True_, np.int32(1))
        >>> bool(tf.experimental.Optional.empty(tf.TensorSpec([], tf.int32)).has_value())
        False
    """

    __slots__ = ()

    @staticmethod
    def from_value(value: object) -> "Optional":
        """Return an Optional that holds `value`: a tensor, or a nested structure of tensors."""
        if all(part is None for part in flatten(value, DATA)):
            raise InvalidArgumentError(
                f"An Optional must hold at least one tensor, but got {value!r}.",
                fix="pass a tensor, or call Optional.empty(spec) for an empty Optional.",
            )
        element = map_structure(_as_component, value, rules=DATA)
        return _Present(element, spec_of(element))

    @staticmethod
    def empty(element_spec: object) -> "Optional":
        """Return an Optional without a value; only its spec is known."""
        for spec in flatten(element_spec, DATA):
            if not isinstance(spec, TypeSpec):
                raise TypeError(
                    described(
                        f"An empty Optional needs a spec, but got {spec!r}.",
                        fix="pass evenfeed.TensorSpec(shape, dtype), or a structure of them.",
                    )
                )
        return _Absent(element_spec)

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The spec of the value, in the same structure."""

    @abstractmethod
    def has_value(self, name: str | None = None) -> Any:
        """Return a scalar bool tensor: True if there is a value."""

    @abstractmethod
    def get_value(self, name: str | None = None) -> Any:
        """Return the value. Raises InvalidArgumentError if there is none."""

    @property
    def _type_spec(self) -> "OptionalSpec":
        return OptionalSpec(self.element_spec)


class _Present(Optional):
    __slots__ = ("_spec", "value")

    def __init__(self, value: object, spec: object) -> None:
        self.value = value
        self._spec = spec

    @property
    def element_spec(self) -> Any:
        return self._spec

    def has_value(self, name: str | None = None) -> Any:
        del name
        return host_tensor(np.True_)

    def get_value(self, name: str | None = None) -> Any:
        del name
        return self.value

    def __repr__(self) -> str:
        return f"Optional.from_value({self.value!r})"


@final
class ElementOptional(_Present):
    """An Optional that holds an element of a dataset, with the dataset's spec.

    The dataset's spec may be less specific than the element: the length of a batch is unknown. Values that
    know their own spec, such as per-replica values, keep it, as in TensorFlow. An iterator creates the
    ElementOptional before it takes the element, so that Ctrl-C cannot fall between the two and lose it.
    """

    __slots__ = ()

    @property
    def element_spec(self) -> Any:
        """The dataset's spec, except for values that know their own spec."""
        pairs = zip(flatten(self.value, DATA), flatten(self._spec, DATA), strict=True)
        specs = [spec_of(part) if isinstance(part, Specified) else given for part, given in pairs]
        return pack(self._spec, specs, DATA)


@final
class _Absent(Optional):
    __slots__ = ("_spec",)

    def __init__(self, spec: object) -> None:
        self._spec = spec

    @property
    def element_spec(self) -> Any:
        return self._spec

    def has_value(self, name: str | None = None) -> Any:
        del name
        return host_tensor(np.False_)

    def get_value(self, name: str | None = None) -> Any:
        del name
        raise InvalidArgumentError(
            "This Optional has no value.",
            fix="call has_value() first; an iterator returns an empty Optional at the end of the data.",
        )

    def __repr__(self) -> str:
        return f"Optional.empty({self._spec!r})"


@final
class OptionalSpec(CompositeSpec):
    """The spec of an Optional.

    Args:
        element_spec: The spec of the value it may hold.
    """

    __slots__ = ("_element_spec",)

    def __init__(self, element_spec: object) -> None:
        self._element_spec = element_spec

    @staticmethod
    def from_value(value: Optional) -> "OptionalSpec":
        """Return the spec of an Optional."""
        return OptionalSpec(value.element_spec)

    @property
    def element_spec(self) -> Any:
        """The spec of the value that the Optional may hold."""
        return self._element_spec

    @property
    def value_type(self) -> type:
        return Optional

    @property
    def _parts(self) -> tuple[TypeSpec, ...]:
        return tuple(flatten(self.element_spec, DATA))

    @property
    def _frame(self) -> str:
        return outline(self.element_spec, DATA)

    def _with_parts(self, parts: Sequence[TypeSpec]) -> "OptionalSpec":
        return OptionalSpec(pack(self.element_spec, parts, DATA))

    def __repr__(self) -> str:
        return f"OptionalSpec{(self.element_spec,)!r}"


def _as_component(value: object) -> Any:
    if value is None or isinstance(value, Specified):
        return value
    if is_tensor(value) and not isinstance(value, np.generic):
        return value
    try:
        return host_tensor(to_component(cast("object", value)))
    except ValueError as error:  # TensorFlow computes the spec first, which fails with TypeError
        raise TypeError(str(error)) from None
