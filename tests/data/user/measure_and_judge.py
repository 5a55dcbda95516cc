"""What a user of the library writes; checked by strict type checkers against the installed package."""

from perfgate import library


def slower_cases(baselines: str) -> list[str]:
    run: library.Run = library.measure("recorded", cases=["bandwidth.*"], launches=6, seed=1)
    report = library.judge(run, baselines, policy=library.Policy(alpha=0.02), cases=["bandwidth.*"])
    library.write("report.json", report)
    page: str = library.render(report, "html", run=run)
    print(len(page), report.gpu.name, report.exit_code)
    return [case.id for case in report.cases if case.verdict is library.CaseVerdict.REGRESSED]


def drifting(folder: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for chip in library.history(folder):
        for trend in chip.trends:
            if trend.drift is not None:
                found[trend.id] = trend.drift.change.value
    return found


def refused() -> int:
    try:
        library.measure("cuda:9")
    except library.PerfgateError as error:
        print(error.message, error.hint)
        return int(error.exit_code)
    return 0
