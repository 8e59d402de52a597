"""README.md is true: its table is what was measured, its links lead somewhere, and it fits on a screen or two."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
LINKS = sorted(set(re.findall(r"\]\(([^)#]+)", README)))


def test_the_table_is_what_the_benchmarks_measured() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "readme_table.py"))
    assert tool["page"]() == README, "run tools/readme_table.py"


def test_the_table_says_where_evenfeed_is_not_first() -> None:
    assert "**Not first:**" in README


@pytest.mark.parametrize("link", LINKS)
def test_a_link_leads_somewhere(link: str) -> None:
    assert link.startswith("https://") or (ROOT / link).exists()


def test_the_extras_exist() -> None:
    (install, more) = re.findall(r"pip install '\.\[(.*?)\]' +# more extras: (.*)", README)[0]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert {install, *more.split(", ")} == set(extras)


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 70
