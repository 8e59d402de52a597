"""The curves of the benchmarks: page, pictures, scripts and Makefile agree, and every curve can be measured."""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks_are_importable(monkeypatch: pytest.MonkeyPatch) -> Any:
    for folder in (BENCHMARKS / "jobs", BENCHMARKS / "points", BENCHMARKS):
        monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:  # their names are common words
        if str(BENCHMARKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def variants_of(name: str) -> dict[str, Any]:
    """Return the variants of a curve."""
    return __import__(name).VARIANTS


def test_the_page_shows_what_was_measured_last():
    import curves

    assert curves.page() == (ROOT / "docs" / "benchmarks.md").read_text(), "run curves.py --draw"
    for name in curves.CURVES:
        picture = (ROOT / "docs" / "curves" / f"{name}.svg").read_text()
        assert curves.drawn(name) == picture, "run curves.py --draw"


def test_each_curve_has_a_variant_for_each_line():
    import curves

    for name, curve in curves.CURVES.items():
        assert tuple(variants_of(name)) == curve.variants


def test_all_curves_together_end_within_15_minutes():
    import curves

    assert sum(curve.seconds for curve in curves.CURVES.values()) <= 15 * 60


@pytest.mark.parametrize(
    "name", ["rows", "width", "batch", "columns", "depth", "files", "threads"]
)  # replicas need a process of their own
def test_a_point_is_measured(name):
    import curves

    curve = curves.CURVES[name]
    for variant in ("evenfeed", curve.limit):
        assert variants_of(name)[variant](curve.places[len(curve.places) // 2], 0.01) > 0


def test_a_point_that_fails_or_takes_too_long_says_why(monkeypatch):
    import curves

    assert curves.point("rows", "evenfeed", 1000, 1.0, 0.0) == "no time left"
    monkeypatch.setattr(curves, "PEERS", Path("nowhere"))
    assert curves.point("rows", "Grain", 1000, 1.0, 9.0) == "not installed"


def test_a_peer_that_is_ahead_is_listed():
    import curves

    rates = {variant: {"1000": 10.0} for variant in curves.CURVES["rows"].variants}
    rates["Grain"] = {"1000": 12.5, "10000": 1e9}  # evenfeed was not measured at the second
    (line,) = curves.not_first("rows", {"rates": rates})
    assert line.startswith("rows, at 1 k: Grain is up to 1.25 x as fast: ")


def test_the_makefile_runs_the_scripts_that_the_page_names():
    makefile = (ROOT / "Makefile").read_text()
    bench = makefile.partition("\nbench:")[2].partition("\n\n")[0]
    assert "benchmarks/curves.py\n" in bench
    assert "benchmarks/smoke.py" in makefile.partition("\nbench-smoke:")[2].partition("\n\n")[0]
    named = re.findall(r"make ([\w-]+)", (ROOT / "docs" / "benchmarks.md").read_text())
    assert set(named) == {"bench", "bench-smoke"}


def test_the_smoke_test_knows_the_committed_ratios():
    import run
    import smoke

    before = smoke.committed(run.README.read_text())
    titles = [title for title, _, _ in run.JOBS.values()]
    assert set(before) <= set(titles)
    assert len(before) > 10
    job = next(job for job, (title, _, _) in run.JOBS.items() if title in before)
    ratio = before[run.JOBS[job][0]]
    assert smoke.fallen({job: 0.74 * ratio}, before) == [job]
    assert smoke.fallen({job: 0.76 * ratio}, before) == []
