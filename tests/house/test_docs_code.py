"""Every block of Python on a page of the docs runs, page by page, and every dataset that it makes can be read."""

import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from tests.house.docs_setup import AFTERWARDS, PAGES, setup

import evenfeed as tf

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)

# These start JAX in their own way, or load much: they run in a process of their own.
APART = {"workers", "from_tensorflow", "keras"}


def blocks(page: str) -> list[tuple[int, str]]:
    """Return each block of a page with the line at which it starts."""
    text = (DOCS / f"{page}.md").read_text()
    return [
        (text.count("\n", 0, found.start(2)), textwrap.dedent(found[2]))
        for found in FENCE.finditer(text)
    ]


def run_page(page: str) -> None:
    """Run the blocks of a page one after the other, in the working directory."""
    names: dict[str, Any] = setup(page)
    for line, code in blocks(page):
        exec(compile("\n" * line + code, f"docs/{page}.md", "exec"), names)
    exec("import numpy as np\n" + AFTERWARDS.get(page, ""), names)
    for value in list(names.values()):
        if isinstance(value, tf.data.Dataset):
            next(iter(value))


def test_every_page_with_code_is_run() -> None:
    assert {path.stem for path in DOCS.glob("*.md") if blocks(path.stem)} == set(PAGES)


@pytest.mark.parametrize("page", sorted(set(PAGES) - APART))
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(APART))
def test_the_code_of_a_page_runs_in_a_process(page: str, tmp_path: Path) -> None:
    root = DOCS.parent
    program = f"import sys; sys.path.insert(0, {str(root)!r})\n"
    program += f"from tests.house.test_docs_code import run_page; run_page({page!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
