"""What is published: the wheel and the sdist, built from this tree."""

import email
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

import evenfeed

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120, capture_output=True)
    return folder


def test_the_wheel_has_the_library_and_nothing_else(built: Path) -> None:
    (path,) = built.glob("*.whl")
    assert path.name == f"evenfeed-{evenfeed.__version__}-py3-none-any.whl"
    with ZipFile(path) as wheel:
        names = wheel.namelist()
        info = f"evenfeed-{evenfeed.__version__}.dist-info"
        metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert {name.split("/", maxsplit=1)[0] for name in names} == {"evenfeed", info}
    assert {"evenfeed/py.typed", "evenfeed/demo/digits.npz"} <= set(names)
    sources = {str(path.relative_to(ROOT / "src")) for path in ROOT.glob("src/evenfeed/**/*.py")}
    assert {name for name in names if name.endswith(".py")} == sources
    for field in ("Summary", "License-Expression", "Requires-Python", "Description", "Keywords"):
        assert metadata[field] or (field == "Description" and metadata.get_payload())


def test_the_wheel_runs_outside_of_the_tree(built: Path, tmp_path: Path) -> None:
    (path,) = built.glob("*.whl")
    with ZipFile(path) as wheel:
        wheel.extractall(tmp_path / "site")
    program = (
        "import evenfeed as tf; print(tf.__file__, [int(x) for x in tf.data.Dataset.range(3)])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        check=True, timeout=60, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.stdout.split(maxsplit=1)[0].startswith(str(tmp_path / "site"))
    assert ran.stdout.rstrip().endswith(" [0, 1, 2]")


def test_the_sdist_has_what_the_two_commands_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"Makefile", "constraints.txt", "pyproject.toml", "README.md", "tools/check.py"} <= names
    assert not any(
        "__pycache__" in name or name.startswith(("docs/_build", "."))
        for name in names - {".gitignore"}
    )
