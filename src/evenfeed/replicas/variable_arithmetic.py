"""Python's operators on a variable: they work on its value."""

# Python leaves the types of its operators unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

import operator
from typing import Any

from evenfeed.core.jax_door import jnp
from evenfeed.tensors.creation import convert_together


def _binary(compute: Any) -> Any:
    def method(self: Any, other: Any) -> Any:
        left, right = convert_together([self, other])
        return compute(left, right)

    return method


def _reflected(compute: Any) -> Any:
    def method(self: Any, other: Any) -> Any:
        right, left = convert_together([self, other])
        return compute(left, right)

    return method


class Arithmetic:
    """What a tensor can do by Python's signs, for what has a `value()`."""

    def value(self) -> Any:
        """Return the tensor."""
        raise NotImplementedError

    __add__ = _binary(operator.add)
    __radd__ = _reflected(operator.add)
    __sub__ = _binary(operator.sub)
    __rsub__ = _reflected(operator.sub)
    __mul__ = _binary(operator.mul)
    __rmul__ = _reflected(operator.mul)
    __truediv__ = _binary(operator.truediv)
    __rtruediv__ = _reflected(operator.truediv)
    __floordiv__ = _binary(operator.floordiv)
    __rfloordiv__ = _reflected(operator.floordiv)
    __mod__ = _binary(operator.mod)
    __rmod__ = _reflected(operator.mod)
    __pow__ = _binary(operator.pow)
    __rpow__ = _reflected(operator.pow)
    __matmul__ = _binary(operator.matmul)
    __rmatmul__ = _reflected(operator.matmul)
    __and__ = _binary(operator.and_)
    __or__ = _binary(operator.or_)
    __xor__ = _binary(operator.xor)
    __lt__ = _binary(operator.lt)
    __le__ = _binary(operator.le)
    __gt__ = _binary(operator.gt)
    __ge__ = _binary(operator.ge)
    __eq__ = _binary(operator.eq)
    __ne__ = _binary(operator.ne)

    def __hash__(self) -> int:
        return id(self)

    def __neg__(self) -> Any:
        return -self.value()

    def __abs__(self) -> Any:
        return jnp.abs(self.value())

    def __invert__(self) -> Any:
        return ~self.value()

    def __getitem__(self, key: Any) -> Any:
        return self.value()[key]

    def __len__(self) -> int:
        return len(self.value())

    def __iter__(self) -> Any:
        return iter(self.value())

    def __bool__(self) -> bool:
        return bool(self.value())

    def __int__(self) -> int:
        return int(self.value())

    def __float__(self) -> float:
        return float(self.value())

    def __index__(self) -> int:
        return operator.index(self.value())
