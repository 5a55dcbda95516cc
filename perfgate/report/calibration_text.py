"""What a machine can detect, for a person at a terminal."""

from perfgate.core.calibration import Calibration, CaseNoise
from perfgate.core.device import DeviceKind
from perfgate.core.margin import is_supported
from perfgate.core.units import percent_text
from perfgate.report import sentences
from perfgate.report.banner import add_banner
from perfgate.report.layout import Column, Line, Page
from perfgate.report.rows import margin_text

_COLUMNS = (
    Column(heading="case"),
    Column(heading="samples", align="right"),
    Column(heading="launches", align="right"),
    Column(heading="sessions", align="right"),
    Column(heading="chips", align="right"),
    Column(heading="margin", align="right"),
    Column(heading="finds", align="right"),
)


def render_calibration(
    found: Calibration, *, device_kind: str, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """Render noise by level, margins and the smallest change found; not gated cases dimmed."""
    page = Page(width=width, color=color, unicode=unicode)
    unit = sentences.counted(found.sessions, "session", "sessions") if found.same_chip else f"{found.sessions} chips"
    add_banner(
        page,
        (("CALIBRATION", "bold cyan"), (f" from {unit} of unchanged code", "bold")),
        style="cyan",
        badges=sentences.rehearsal(device_kind, ()) if device_kind != DeviceKind.CUDA else (),
        lines=(_false_alarms(found),),
        details=(f"chip {found.chip}" if found.chip else "",),
    )
    page.blank()
    page.table(_COLUMNS, [_line(case) for case in found.cases])
    page.line(
        "Spreads are relative standard deviations: of samples in a launch, of launches in a session, of session medians"
        " on a chip, of chip medians. Finds: the smallest slowdown that 99 of 100 checks find.",
        "dim",
    )
    return page.text


def _false_alarms(found: Calibration) -> str:
    return (
        f"Of simulated checks of unchanged code {percent_text(found.false_alarm_rate)} accuse a case"
        f" (at most {percent_text(found.false_alarm_bound)}, 95 % confidence)."
    )


def _line(case: CaseNoise) -> Line:
    judged = case.is_gated and is_supported(case.margin)
    spreads = (case.within, case.launches, case.sessions, case.chips)
    return Line(
        cells=(
            case.id,
            *("" if one is None else percent_text(one, decimals=3) for one in spreads),
            margin_text(case.margin.relative) if judged else "not gated",
            "" if case.detectable is None or not judged else percent_text(case.detectable),
        ),
        style="" if judged else "dim",
    )
