"""Members of a variable that programs for graphs and TensorFlow 1 use: what they mean without graphs, or what to write."""

from typing import Any, Final, NoReturn

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, OutOfRangeError, described
from evenfeed.core.lazy_jax import jnp
from evenfeed.replicas.variables.assignments import add, put
from evenfeed.replicas.variables.scatter_methods import ScatterMethods
from evenfeed.tensors.device_arrays import is_traced

_NO_GRAPH: Final = "There are no graphs"


class OlderMembers(ScatterMethods):
    """A variable has its value once it is created, and there is no graph, no session and no initializer to run."""

    @property
    def initializer(self) -> None:
        """None: a variable is initialized when it is created."""
        return

    def is_initialized(self, name: str | None = None) -> Any:
        """Return True, as a tensor: a variable always has a value."""
        del name
        return jnp.asarray(True)

    def initialized_value(self) -> Any:
        """Return its value. A variable is always initialized."""
        return self.value()

    def read_value_no_copy(self) -> Any:
        """Return its value. No read copies it."""
        return self.value()

    def load(self, value: Any, session: object = None) -> None:
        """Assign a new value."""
        del session
        self._assigned(put, value, read_value=False)

    def count_up_to(self, limit: int) -> Any:
        """Add 1 to an integer, and return what it was before.

        Raises:
            OutOfRangeError: It has reached the limit.

        Examples:
            >>> import evenfeed as tf
            >>> v = tf.Variable(0)
            >>> int(v.count_up_to(3)), int(v.count_up_to(3)), int(v)
            (0, 1, 2)
        """
        if self._dtype.name not in {"int32", "int64"}:
            raise InvalidArgumentError(
                f"count_up_to needs an int32 or int64 variable, but its dtype is {self._dtype.name}.",
                fix="create the variable with dtype=evenfeed.int32.",
            )
        before = self.value()
        if is_traced(before):
            raise NotImplementedError(
                described(
                    "count_up_to needs a value, which a traced function does not have.",
                    fix="call it outside evenfeed.function, or iterate over evenfeed.data.Dataset.range(limit).",
                )
            )
        if before >= limit:
            raise OutOfRangeError(
                f"The variable {self.name!r} has reached the limit {shortened(limit)}.",
                fix="stop counting, or assign 0.",
            )
        self._assigned(add, 1, read_value=False)
        return before

    @property
    def initial_value(self) -> NoReturn:
        """Not available: the first value is not kept."""
        raise RuntimeError(
            described(
                f"The variable {self.name!r} does not keep its initial value.",
                fix="keep it yourself, or read the current one with read_value().",
            )
        )

    def eval(self, session: object = None) -> NoReturn:
        """Not available, because there are no sessions."""
        del session
        raise RuntimeError(described(f"{_NO_GRAPH} and no sessions.", fix="call numpy()."))

    def to_proto(self, export_scope: object = None) -> NoReturn:
        """Not available, because there are no graphs."""
        del export_scope
        raise RuntimeError(
            described(f"{_NO_GRAPH} to export the variable to.", fix="save numpy() of it.")
        )

    @staticmethod
    def from_proto(variable_def: object, import_scope: object = None) -> NoReturn:
        """Not available, because there are no graphs."""
        del variable_def, import_scope
        raise RuntimeError(
            described(f"{_NO_GRAPH} to import from.", fix="create an evenfeed.Variable.")
        )

    @property
    def create(self) -> NoReturn:
        """Not available, because a variable is created at once."""
        raise RuntimeError(
            described(f"{_NO_GRAPH}: a variable is created at once.", fix="leave it out.")
        )

    @property
    def op(self) -> NoReturn:
        """Not available, because there are no graphs."""
        raise AttributeError(described(f"{_NO_GRAPH} with operations.", fix="use the variable."))

    @property
    def graph(self) -> NoReturn:
        """Not available, because there are no graphs."""
        raise AttributeError(described(f"{_NO_GRAPH}.", fix="leave it out."))

    @property
    def handle(self) -> NoReturn:
        """Not available, because a variable has no resource behind it."""
        raise AttributeError(
            described("A variable has no resource handle.", fix="pass the variable itself.")
        )
