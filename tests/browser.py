"""A page as a browser sees it: Chromium without a window loads it, a probe answers questions about it.

axe-core (tests/data/browser, as npm has it, MPL-2.0) finds what a keyboard or a screen reader cannot use.
"""

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.unit.report.html_reader import read_page

_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in _NAMES if (found := shutil.which(name))), None)
_AXE = Path(__file__).parent / "data" / "browser" / "axe-4.14.1.min.js.gz"
# Faults of these impacts keep somebody out.
_GRAVE = ("serious", "critical")
_PROBE = """<script>addEventListener("load", async () => {{
  const answer = document.createElement("pre");
  try {{
    const seen = await (async () => {{ {probe} }})();
    answer.textContent = JSON.stringify(seen);
  }} catch (error) {{ answer.textContent = JSON.stringify({{ failed: `${{error}}` }}); }}
  answer.id = "probe-answer";
  document.body.append(answer);
}});</script>"""


def seen(page: str, probe: str, folder: Path, *, dark: bool = False, width: int = 1280, scripts: str = "") -> Any:
    """Load a page and return what the probe, the body of an async function, returns.

    Args:
        page: HTML; its policy is taken out, since it would refuse the probe.
        probe: JavaScript.
        folder: for the page and the browser's profile.
        dark: the reader's system is dark.
        width: of the window [px].
        scripts: what the probe needs.
    """
    text = re.sub(r"<meta http-equiv=.*?>", "", page, count=1)
    added = f"<script>{scripts}</script>{_PROBE.format(probe=probe)}"
    path = folder / "page.html"
    path.write_text(text.replace("</body>", f"{added}</body>"), encoding="utf-8")
    ended = subprocess.run(
        [
            *(str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
            *("--disable-background-networking", "--disable-component-update", "--disable-quic"),
            *(f"--user-data-dir={folder / 'profile'}", f"--window-size={width},900", "--virtual-time-budget=20000"),
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            *("--dump-dom", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    answer = json.loads(read_page(ended.stdout).one("pre", id="probe-answer").text)
    assert not (isinstance(answer, dict) and "failed" in answer), answer["failed"]
    return answer


def grave_faults(page: str, folder: Path, *, dark: bool = False, width: int = 1280) -> list[str]:
    """Return what axe-core calls serious or critical on a page, with everything unfolded."""
    probe = (
        "document.querySelectorAll('details').forEach((one) => { one.open = true });"
        "const found = await axe.run(document.body, { resultTypes: ['violations'] });"
        "return found.violations.map((one) => [one.impact, one.id, one.help,"
        " one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]);"
    )
    axe = gzip.decompress(_AXE.read_bytes()).decode()
    found = seen(page, probe, folder, dark=dark, width=width, scripts=axe)
    return [f"{name}: {text}: {nodes}" for impact, name, text, nodes in found if impact in _GRAVE]
