"""How large the page of a report of 1,000 cases is, and how long a browser takes to open it and to use it.

Usage: ``python benchmarks/report_page.py [--rounds 5]``; prints one line of JSON. Needs Chromium.

Each round starts a fresh browser without a cache and reads the page's own clock: from the start of the
navigation to the end of the load event, all scripts done; then how long filtering and sorting take.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from perfgate.report.html_page import render_html
from tests.browser import CHROMIUM
from tests.unit.report.html_reader import read_page, run_of
from tests.unit.report.thousand_cases import thousand_cases

PROBE = """<script>addEventListener("load", () => setTimeout(() => {
  const timed = (act) => {
    const start = performance.now();
    act();
    document.body.offsetHeight;
    return performance.now() - start;
  };
  const opened_ms = performance.getEntriesByType("navigation")[0].loadEventEnd;
  const search = document.querySelector("#filter");
  const filtered_ms = timed(() => {
    search.value = "gemm";
    search.dispatchEvent(new Event("input", { bubbles: true }));
  });
  const sorted_ms = timed(() => document.querySelectorAll("table.cases thead button")[4].click());
  const answer = document.createElement("pre");
  answer.id = "probe-answer";
  answer.textContent = JSON.stringify({ opened_ms, filtered_ms, sorted_ms });
  document.body.append(answer);
}));</script>"""


def opened(path: Path, folder: Path) -> dict[str, float]:
    """Open the page in a fresh browser; return what its clock says."""
    ended = subprocess.run(
        [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={folder}", "--window-size=1280,900", "--timeout=8000", "--dump-dom", path.as_uri()),
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(read_page(ended.stdout).one("pre", id="probe-answer").text)
    return found


def main() -> None:
    """Print sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    report = thousand_cases()
    start_s = time.perf_counter()
    text = render_html(report, run=run_of(report, launches=12))
    rendered_s = time.perf_counter() - start_s
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        # The page's own policy would refuse the probe.
        path.write_text(re.sub(r"<meta http-equiv=.*?>", "", text, count=1).replace("</body>", f"{PROBE}</body>"))
        seen = [opened(path, Path(folder) / f"profile-{number}") for number in range(rounds)]
    answer = {
        "cases": len(report.cases),
        "page_bytes": len(text.encode()),
        "rendered_s": round(rendered_s, 2),
        "rounds": rounds,
        "slowest_opened_s": round(max(one["opened_ms"] for one in seen) / 1e3, 3),
        **{
            name.replace("_ms", "_s"): round(statistics.median(one[name] for one in seen) / 1e3, 3)
            for name in ("opened_ms", "filtered_ms", "sorted_ms")
        },
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
