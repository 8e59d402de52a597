"""The page of dependencies has a table with all of them."""

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "dependency_table.py"))


def test_each_dependency_has_a_row_with_its_reason_and_cost() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {(name, "required") for name in map(_name, project["dependencies"])}
    for extra, requirements in project["optional-dependencies"].items():
        wanted |= {(name, extra) for name in map(_name, requirements)}
    page = (ROOT / "docs" / "decisions" / "dependencies.md").read_text()
    table = page.partition(TOOL["START"])[2].partition(TOOL["END"])[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    found = {(row[0], extra) for row in rows if len(row) == 6 for extra in row[1].split(", ")}
    assert found - {("package", "extra"), ("---", "---")} == wanted


def _name(requirement: str) -> str:
    return re.split(r"[^\w-]", requirement)[0]
