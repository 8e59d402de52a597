"""The live view in a real browser: what its script makes of the figures of two workers."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from html import unescape
from pathlib import Path

import pytest
from tests.processes import wait_until

PROGRAM = Path(__file__).parent / "programs" / "uneven_workers.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000")


@pytest.fixture
def browser(capsys):
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        why = "NO BROWSER: the live view was not tried in one. Install it: apt-get install chromium"
        with capsys.disabled():
            sys.stdout.write(f"\n{why}\n")
        pytest.skip(why)
    return found


def both_read(url):
    with urllib.request.urlopen(f"{url}stats.json", timeout=20) as answer:
        report = json.load(answer)
    taken = [sum(one["total"]["elements"] for one in w["iterators"]) for w in report["workers"]]
    return len(taken) == 2 and min(taken) > 3 and report["slowest"] == 1


@pytest.mark.slow
def test_two_workers_stand_side_by_side_and_the_slow_one_is_marked(browser, tmp_path):
    stop = tmp_path / "stop"
    run = [sys.executable, "-m", "evenfeed", "run", "--workers", "2", "--dashboard", str(PROGRAM)]
    program = subprocess.Popen([*run, str(stop)], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        first = program.stderr.readline()
        url = re.search(r"live view at (http://127\.0\.0\.1:\d+/)", first)[1]
        wait_until(lambda: both_read(url), 60)
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        done = subprocess.run(
            [browser, *OPTIONS, profile, "--dump-dom", url],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
    finally:
        stop.touch()
        rest = program.communicate(timeout=60)[1]
    assert program.returncode == 0, rest
    shown = re.sub(r"<(style|script).*?</\1>", " ", done.stdout, flags=re.DOTALL)
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", shown)).split())
    assert "evenfeed live view live" in text
    assert re.search(r"worker 0 [\d.]+ (k )?elements/s .* worker 1 slow [\d.]+ elements/s", text)
    assert re.search(r"Worker 1: map\(decode\) at \S*uneven_workers\.py:\d+ waits \d+% of", text)
    assert "Worker 1 waits for data" in text
    assert re.search(r"map\(decode\) everything waits for this · \S+uneven_workers\.py:\d+", text)
    assert all(stage in text for stage in ("range(0, 10)", "repeat()", "batch(4)", "prefetch(2)"))
    assert "of 2" in text  # the buffer of the prefetch
    assert shown.count("<circle") == 5  # a dot for each stage
