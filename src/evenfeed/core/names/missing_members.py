"""Members that tensors have in TensorFlow's graphs or in PyTorch: asking for one says what to write instead."""

from functools import partial
from typing import Final, NoReturn

from evenfeed.core.errors import described

# What to write instead of each.
_IN_GRAPHS: Final = {
    "consumers": "look at the program: print(jax.make_jaxpr(function)(x)).",
    "eval": "call x.numpy().",
    "graph": "leave it out.",
    "op": "use the tensor itself.",
}
TORCH_MEMBERS: Final = frozenset(
    [
        "backward",
        "contiguous",
        "cpu",
        "cuda",
        "detach",
        "dim",
        "double",
        "float",
        "half",
        "long",
        "numel",
        "permute",
        "requires_grad",
        "to",
        "unsqueeze",
    ]
)
MAKE_TORCH: Final = "make a tensor of PyTorch first: torch.as_tensor(x.numpy())."


def graph_members() -> dict[str, property]:
    """Return properties for the members of graphs, by their names. They raise AttributeError."""
    return {
        name: _refusing(name, "there are no graphs", instead)
        for name, instead in _IN_GRAPHS.items()
    }


def torch_members() -> dict[str, property]:
    """Return properties for what programs call on tensors of PyTorch, by their names. They raise AttributeError."""
    return {
        name: _refusing(name, "it is a NumPy array, not PyTorch's", MAKE_TORCH)
        for name in TORCH_MEMBERS
    }


def _refusing(name: str, why: str, fix: str) -> property:
    return property(partial(_refuse, name, why, fix))


def _refuse(name: str, why: str, fix: str, _: object) -> NoReturn:
    raise AttributeError(described(f"A tensor has no {name!r}: {why}.", fix=fix), name=name)
