"""Every public name is documented, and reports the module under which users find it."""

import importlib
import inspect
import pkgutil
from typing import Any

import pytest

import evenfeed

# Behind the namespaces: users do not import from these.
INNER = {
    "__main__",
    "checkpoints",
    "cluster",
    "command",
    "core",
    "dataset",
    "demo",
    "feeding",
    "formats",
    "keras_training",
    "live",
    "lookup_tables",
    "images",
    "plan",
    "replicas",
    "rewrite",
    "runtime",
    "strategy",
    "summaries",
    "tensors",
    "text_ops",
}

MODULES = ["evenfeed"] + [
    module.name
    for module in pkgutil.walk_packages(evenfeed.__path__, "evenfeed.")
    if module.name.split(".")[1] not in INNER
]

PUBLIC = [
    (module, name, getattr(importlib.import_module(module), name))
    for module in MODULES
    for name in importlib.import_module(module).__all__
]
CALLABLES = [
    (module, name, value)
    for module, name, value in PUBLIC
    if (inspect.isclass(value) or inspect.isfunction(value))
    and not value.__module__.startswith("keras.")  # documented by Keras
]
METHODS = sorted(
    {
        (value.__module__, value.__qualname__, name)
        for _, _, value in CALLABLES
        if inspect.isclass(value) and value.__module__.startswith("evenfeed")
        for family in value.__mro__
        if family.__module__.startswith("evenfeed")
        for name, member in vars(family).items()
        if not name.startswith("_")
        and (
            inspect.isfunction(member) or isinstance(member, (property, classmethod, staticmethod))
        )
    }
)


@pytest.mark.parametrize("module", MODULES)
def test_a_namespace_says_what_it_is(module: str) -> None:
    assert importlib.import_module(module).__doc__


@pytest.mark.parametrize(
    ("module", "name", "value"), CALLABLES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_public_object_is_documented(module: str, name: str, value: Any) -> None:
    assert inspect.getdoc(value), f"{module}.{name} has no docstring"


@pytest.mark.parametrize(("module", "owner", "name"), METHODS)
def test_a_public_method_is_documented(module: str, owner: str, name: str) -> None:
    member = getattr(getattr(importlib.import_module(module), owner), name)
    assert inspect.getdoc(member), f"{module}.{owner}.{name} has no docstring"


@pytest.mark.parametrize(
    ("module", "name", "value"), CALLABLES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_public_object_reports_a_public_module(module: str, name: str, value: Any) -> None:
    if value.__module__.startswith("evenfeed"):
        assert value.__module__ in MODULES
        assert getattr(importlib.import_module(value.__module__), value.__name__) is value


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("estimator", r"evenfeed has no .estimator.\..*MirroredStrategy"),
        ("reduce_summ", r"Did you mean evenfeed\.reduce_sum"),
    ],
)
def test_a_missing_name_says_what_to_use(name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(evenfeed, name)
