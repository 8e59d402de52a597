"""The docs build without a warning: every reference leads somewhere, every page is reachable."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(330)
def test_docs_build_without_warnings(tmp_path):
    sphinx = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"]
    done = subprocess.run(
        [*sphinx, ROOT / "docs", tmp_path], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert 'class="sig sig-object' in (tmp_path / "api" / "data.html").read_text()
