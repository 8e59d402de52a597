"""ARCHITECTURE.md, docs/decisions and the READMEs of the rooms are true: the files that they name exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "evenfeed"
MOST_BYTES = 8_000

# Namespaces hold public names and no code; the API docs describe them.
NAMESPACES = {
    "autograph",
    "compat",
    "config",
    "data",
    "distribute",
    "io",
    "lookup",
    "nn",
    "random",
    "profiler",
    "summary",
    "train",
    "tpu",
}

FOLDERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
ROOMS = [name for name in FOLDERS if name not in NAMESPACES]
# Pages that name files by room: `plan/node.py`.
PAGES = ["ARCHITECTURE.md", "CONTRIBUTING.md"] + [
    str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs" / "decisions").glob("*.md"))
]


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def missing_files(text: str, *folders: Path) -> set[str]:
    """Return the paths in backticks that exist in none of the folders. A path ends in .py or is a folder."""
    named = set(re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)(?:::\w+)?`", text))
    return {name for name in named if not any((folder / name).exists() for folder in folders)}


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_names_exist(page):
    assert not missing_files(text_of(page), PACKAGE, ROOT)


@pytest.mark.parametrize("page", PAGES)
def test_the_tests_that_a_page_names_exist(page):
    for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text_of(page)):
        assert f"def {test}(" in text_of(file), f"{page} names {test}"


def test_architecture_is_read_in_ten_minutes():
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= MOST_BYTES


def test_every_room_is_in_the_diagram():
    diagram = text_of("ARCHITECTURE.md").split("```")[1]
    inner = [
        path.parent.name
        for room in ("runtime", "replicas")
        for path in (PACKAGE / room).glob("*/__init__.py")
    ]
    assert not [name for name in [*FOLDERS, *inner] if f"{name}/" not in diagram]


def test_every_dependency_has_its_reason():
    reasons = text_of("docs/decisions/dependencies.md")
    project = text_of("pyproject.toml")
    groups = re.search(r"\ndependencies = \[(.*?)\n\]", project, re.DOTALL).group(1)
    groups += re.search(r"\[dependency-groups\](.*?)\n\[", project, re.DOTALL).group(1)
    names = set(re.findall(r'"([a-z][\w-]*)', groups)) - {"build", "docs", "test"}
    assert not {name for name in names if f"**{name}**" not in reasons}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_a_readme_whose_files_exist(room):
    text = (PACKAGE / room / "README.md").read_text()
    assert text.startswith(f"# {room}\n")
    assert len(text.splitlines()) <= 10
    assert not missing_files(text, PACKAGE / room, PACKAGE, ROOT)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_the_rooms_that_its_readme_lists(room):
    line = re.search(
        r"^May import: (.*)$", (PACKAGE / room / "README.md").read_text(), re.MULTILINE
    )
    listed = set(re.findall(r"`(\w+)`", line.group(1)))
    imported = {
        name
        for path in (PACKAGE / room).rglob("*.py")
        for name in re.findall(r"^ *from evenfeed\.(\w+)", path.read_text(), re.MULTILINE)
    }
    assert imported - {room} <= listed
