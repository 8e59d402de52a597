"""The page of names lists every public name, and none that TensorFlow has and evenfeed has not as if it were there."""

import operator
import pkgutil
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import evenfeed
from evenfeed.core.names.left_out import LEFT_OUT
from evenfeed.core.names.other_libraries import IN_DATASET
from evenfeed.core.names.use_instead import USE_INSTEAD, advice_for, page_for

ROOT = Path(__file__).parents[2]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "names_page.py"))
SECTIONS = dict(part.split("\n", 1) for part in ("\n" + TOOL["page"]()).split("\n## ")[1:])


@pytest.mark.parametrize("path", TOOL["namespaces"]())
def test_a_section_lists_what_is_there_and_what_is_not(path: str) -> None:
    there, _, not_there = SECTIONS[f"tf.{path}" if path else "tf"].partition("**Not there:**")
    assert all(f"`{name}`" in there for name in TOOL["own_names"](path))
    missing = TOOL["missing_names"](path)
    assert all(f"`{name}`" in not_there for name in missing)
    assert not any(f"`{name}`" in there for name in missing)


def test_names_that_are_not_there_say_what_to_use() -> None:
    rows = SECTIONS["Instead of"].splitlines()[3:]
    assert rows
    for row in rows:
        path = row.split("`")[1].removeprefix("tf.")
        with pytest.raises(AttributeError):
            operator.attrgetter(path)(evenfeed)


@pytest.mark.parametrize("path", sorted(TOOL["RECORDED"]["names"]))
def test_a_name_of_tensorflow_is_there_or_says_what_to_write(path: str) -> None:
    without = [name for name in TOOL["left_out"](path) if not advice_for(name)]
    assert not without, "say in core/names/left_out.py what to write instead"


def test_the_error_gives_the_advice() -> None:
    for name in ("raw_ops", "experimental.dlpack", "linalg.LinearOperatorDiag"):
        with pytest.raises(AttributeError, match=re.escape(str(advice_for(name)))):
            operator.attrgetter(name)(evenfeed)


@pytest.mark.parametrize(
    "name", ["raw_ops", "linalg.LinearOperator", "image.decode_jxl", "tpu.XLAOptions"]
)
def test_the_error_names_a_page_that_exists(name: str) -> None:
    assert (ROOT / page_for(name)).exists()
    with pytest.raises(AttributeError, match=re.escape(f" See {page_for(name)}.")):
        operator.attrgetter(name)(evenfeed)


def test_a_typo_gets_a_suggestion_and_no_advice_for_another_name() -> None:
    with pytest.raises(AttributeError, match=r"Did you mean evenfeed.random.uniform\?"):
        operator.attrgetter("random.unifrom")(evenfeed)


def exists(path: str) -> bool:
    """Return True for a module, or for an attribute of one."""
    try:
        pkgutil.resolve_name(path)
    except (ImportError, AttributeError):
        return False
    return True


def test_advice_names_only_what_exists() -> None:
    texts = {**LEFT_OUT, **USE_INSTEAD, **IN_DATASET}
    named = {
        name
        for text in texts.values()
        for name in re.findall(r"\b(?:evenfeed|jax)(?:\.\w+)+", text)
    }
    assert not [name for name in sorted(named) if not exists(name)]


# Keras's own namespaces have the page of evenfeed.keras; these hold a version or one other namespace.
ELSEWHERE = {"initializers", "losses", "metrics", "optimizers", "profiler", "tpu", "version"}


def test_every_namespace_has_its_api_reference() -> None:
    shown = "".join(path.read_text() for path in (ROOT / "docs" / "api").glob("*.md"))
    described = set(re.findall(r"automodule:: evenfeed\.([\w.]+)", shown))
    namespaces = {path for path in TOOL["namespaces"]() if path.islower()}
    assert namespaces - described <= ELSEWHERE


def test_names_of_other_libraries_say_what_to_write() -> None:
    dataset = evenfeed.data.Dataset.range(3)
    for name, advice in IN_DATASET.items():
        for owner in (dataset, evenfeed.data.Dataset):
            with pytest.raises(
                AttributeError, match=re.escape(f"has no attribute {name!r}. {advice}")
            ):
                getattr(owner, name)
    with pytest.raises(AttributeError, match=r"^'Dataset' object has no attribute 'shape'$"):
        dataset.shape  # noqa: B018


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Dataset", "data.Dataset"),
        ("MirroredStrategy", "distribute.MirroredStrategy"),
        ("data.from_parquet", "data.Dataset.from_parquet"),
        ("data.make_csv_dataset", "data.experimental.make_csv_dataset"),
        ("TFRecordWriter", "io.TFRecordWriter"),
    ],
)
def test_a_name_without_its_namespace_says_where_it_is(typed: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"Did you mean evenfeed.{meant}? ")):
        operator.attrgetter(typed)(evenfeed)
