"""The error for a tensor whose dtype a function does not take."""

from evenfeed.core.errors import InvalidArgumentError


class WrongDtypeError(InvalidArgumentError, TypeError):
    """A tensor has a dtype that the function does not accept. TensorFlow raises one or the other class."""
