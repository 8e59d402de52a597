"""What ARCHITECTURE.md says can be checked: the files that it names exist, and every dependency has its reason."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "evenfeed"


def test_the_files_that_it_names_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))
    missing = {
        name for name in named if not (PACKAGE / name).exists() and not (ROOT / name).exists()
    }
    assert named
    assert not missing


def test_every_dependency_has_its_reason():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    project = (ROOT / "pyproject.toml").read_text()
    groups = re.search(r"\ndependencies = \[(.*?)\n\]", project, re.DOTALL).group(1)
    groups += re.search(r"\[dependency-groups\](.*?)\n\[", project, re.DOTALL).group(1)
    names = set(re.findall(r'"([a-z][\w-]*)', groups)) - {"docs", "test"}
    missing = {name for name in names if f"**{name}**" not in text}
    assert not missing
