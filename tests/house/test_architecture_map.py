"""ARCHITECTURE.md lists every source file and no other: a map that fails when it rots."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_map_lists_every_file():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    listed = set(re.findall(r"^\| `([\w/]+\.py)` \| \S", text, re.MULTILINE))
    package = ROOT / "src" / "evenfeed"
    there = {str(path.relative_to(package)) for path in package.rglob("*.py")}
    assert listed == there


def test_every_dependency_has_its_reason():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    groups = re.search(r"\ndependencies = \[(.*?)\n\]", project, re.DOTALL).group(1)
    groups += re.search(r"\[dependency-groups\](.*?)\n\[", project, re.DOTALL).group(1)
    names = set(re.findall(r'"([a-z][\w-]*)', groups)) - {"docs", "test"}
    missing = {name for name in names if f"**{name}**" not in text}
    assert not missing
