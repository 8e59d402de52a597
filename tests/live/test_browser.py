"""The live view in a real browser: what its script makes of the figures of two workers."""

import json
import re
import shutil
import subprocess
import sys
import urllib.request
from html import unescape
from importlib.resources import files
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


FRAMES = """<body><script>
for (const width of [360, 768, 1200]) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px";
  frame.src = "page.html";
  frame.onload = () => setTimeout(() => {
    const inner = frame.contentDocument.documentElement;
    document.body.append(`${width}: ${inner.scrollWidth <= inner.clientWidth ? "fits" : "too wide"}; `);
  }, 500);
  document.body.append(frame);
}
</script>"""


def widths(browser, folder, stats):
    """Return whether the page with these figures fits into windows of several widths. Chromium's own are not narrow."""
    page = (files("evenfeed.live") / "page.html").read_text("utf-8")
    answer = f"window.fetch = async () => ({{ json: async () => ({stats}) }});"
    (folder / "page.html").write_text(
        page.replace('"use strict";', f'"use strict"; {answer}', 1), "utf-8"
    )
    (folder / "frames.html").write_text(FRAMES)
    shown = dom(
        browser, folder, (folder / "frames.html").as_uri(), "--allow-file-access-from-files"
    )
    return set(re.findall(r"\d+: [a-z ]+(?=;)", shown.partition("</script>")[2]))


def dom(browser, folder, url, *options):
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [browser, *OPTIONS, *options, profile, "--dump-dom", url],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.slow
def test_two_workers_stand_side_by_side_and_the_slow_one_is_marked(browser, tmp_path):
    stop = tmp_path / "stop"
    run = [sys.executable, "-m", "evenfeed", "run", "--workers", "2", "--dashboard", str(PROGRAM)]
    program = subprocess.Popen([*run, str(stop)], stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        first = program.stderr.readline()
        url = re.search(r"live view at (http://127\.0\.0\.1:\d+/)", first)[1]
        wait_until(lambda: both_read(url), 60)
        found = dom(browser, tmp_path, url)
        with urllib.request.urlopen(f"{url}stats.json", timeout=20) as answer:
            stats = answer.read().decode()
    finally:
        stop.touch()
        rest = program.communicate(timeout=60)[1]
    assert program.returncode == 0, rest
    shown = re.sub(r"<(style|script).*?</\1>", " ", found, flags=re.DOTALL)
    text = " ".join(unescape(re.sub(r"<[^>]*>", " ", shown)).split())
    assert "evenfeed live view live" in text
    assert re.search(r"worker 0 [\d.]+ (k )?elements/s .* worker 1 slow [\d.]+ elements/s", text)
    assert re.search(r"Worker 1: map\(decode\) at \S*uneven_workers\.py:\d+ waits \d+% of", text)
    assert "Worker 1 waits for data" in text
    assert re.search(r"map\(decode\) everything waits for this · \S+uneven_workers\.py:\d+", text)
    assert all(stage in text for stage in ("range(0, 10)", "repeat()", "batch(4)", "prefetch(2)"))
    assert "of 2" in text  # the buffer of the prefetch
    assert shown.count("<circle") == 5  # a dot for each stage
    assert widths(browser, tmp_path, stats) == {"360: fits", "768: fits", "1200: fits"}
