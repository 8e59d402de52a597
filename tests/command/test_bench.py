"""`evenfeed bench`: that the jobs run and give whole batches, and what the table says about them."""

import json
from itertools import islice
from typing import Any

import numpy as np
import pytest

from evenfeed.command import bench, bench_jobs
from evenfeed.command.main import main

OWN = ("evenfeed", "NumPy by hand")


@pytest.fixture(scope="module")
def batches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The first two batches of each job, by evenfeed and by hand."""
    path = bench_jobs.text_file(str(tmp_path_factory.mktemp("bench")))
    return {
        name: {
            job: list(islice(made(), 2))
            for job, made in bench_jobs.LIBRARIES[name][2](path).items()
        }
        for name in OWN
    }


@pytest.mark.parametrize("job", bench_jobs.JOBS[1:])
def test_a_loop_by_hand_gives_the_batches_of_evenfeed(batches, job):
    for ours, by_hand in zip(*(batches[name][job] for name in OWN), strict=True):
        np.testing.assert_equal(np.asarray(ours), np.asarray(by_hand))


def test_the_shuffled_rows_are_rows_of_the_table(batches):
    x, _ = bench_jobs.table()
    for name in OWN:
        for rows, labels in batches[name][bench_jobs.TABLE]:
            assert len(set(np.asarray(labels))) == len(labels) == 512
            np.testing.assert_allclose(rows, x[np.asarray(labels)] * 2 - 1)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure in this process, and shortly; a slow test starts the real ones."""
    monkeypatch.setattr(bench, "_measured", lambda name, seconds: bench_jobs.rates(name, 0.01))
    own = {name: bench_jobs.LIBRARIES[name] for name in OWN}
    gone = {"Grain": ("no_such_module", "grain", own["evenfeed"][2])}
    monkeypatch.setattr(bench, "LIBRARIES", {**own, **gone})


@pytest.mark.usefixtures("in_this_process")
def test_the_table_has_each_job_and_says_what_is_not_installed(capsys):
    assert main(["bench"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split(maxsplit=2) == ["rows/s", "evenfeed", "NumPy by hand"]
    for job, row in zip(bench_jobs.JOBS, rows, strict=False):
        assert row.startswith(job)
        assert len(row.removeprefix(job).split("  ")) >= 2
    assert "Not installed: Grain." in rows


@pytest.mark.usefixtures("in_this_process")
def test_json_has_the_rates_of_each_job(capsys):
    assert main(["bench", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found["rows_per_second"]) == list(bench_jobs.JOBS)
    assert all(rate > 0 for job in found["rows_per_second"].values() for rate in job.values())
    assert set(found["versions"]) == set(OWN)


@pytest.mark.usefixtures("in_this_process")
def test_a_library_that_fails_is_left_out_and_the_exit_code_says_so(capsys, monkeypatch):
    measured = bench._measured
    failing = lambda name, seconds: {} if name == "evenfeed" else measured(name, seconds)  # noqa: E731
    monkeypatch.setattr(bench, "_measured", failing)
    assert main(["bench"]) == 1
    head = capsys.readouterr().out.splitlines()[0]
    assert "evenfeed" not in head
    assert "NumPy by hand" in head


def test_the_table_says_where_evenfeed_is_not_first():
    mine, theirs = (
        dict.fromkeys(bench_jobs.JOBS, 2e6),
        {bench_jobs.LINES: 3e6, bench_jobs.TABLE: 1.0},
    )
    said = bench._text(
        {"evenfeed": mine, "tf.data": theirs, "NumPy by hand": {bench_jobs.TABLE: 9e9}}
    )
    assert f"evenfeed is not first: {bench_jobs.LINES}." in said
    assert said.count("not first") == 1
    assert "2 M" in said


@pytest.mark.parametrize("seconds", ["0", "-1", "61", "nan", "many"])
def test_a_wrong_time_is_refused(capsys, seconds):
    with pytest.raises(SystemExit) as exit_:
        main(["bench", "--seconds", seconds])
    assert exit_.value.code == 2
    assert "--seconds" in capsys.readouterr().err


@pytest.mark.slow
def test_each_library_runs_in_a_process_of_its_own(capsys):
    assert set(bench._measured("NumPy by hand", 0.01)) == set(bench_jobs.JOBS)
    assert bench._measured("no such library", 0.01) == {}
    assert "no such library failed: KeyError" in capsys.readouterr().err
