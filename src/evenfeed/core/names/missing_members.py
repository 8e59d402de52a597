"""Members that tensors have in TensorFlow's graphs: asking for one says what to write instead."""

from typing import Any, Final, NoReturn

from evenfeed.core.errors import described

# What to write instead of each.
_WRITE: Final = {
    "consumers": "look at the program: print(jax.make_jaxpr(function)(x)).",
    "eval": "call x.numpy().",
    "graph": "leave it out.",
    "op": "use the tensor itself.",
}


def graph_members() -> dict[str, property]:
    """Return properties that raise AttributeError, by their names."""
    return {name: property(_refusing(name)) for name in _WRITE}


def _refusing(name: str) -> Any:
    def refuse(_: object) -> NoReturn:
        raise AttributeError(
            described(f"A tensor has no {name!r}: there are no graphs.", fix=_WRITE[name]),
            name=name,
        )

    return refuse
