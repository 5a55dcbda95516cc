"""A launch that misbehaves as it is told: argv is the journal, the attempt, and one behaviour a case."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from perfgate.core.plan import CasePlan
from perfgate.core.run import Block, CaseLaunch
from perfgate.measure.journal import (
    CaseFailed,
    CaseMeasured,
    FailureKind,
    Journal,
    LaunchFailed,
    LaunchFinished,
    Phase,
    PhaseEntered,
    Started,
    open_journal,
)
from perfgate.measure.orphan import end_with_parent

RESULT = CaseLaunch(
    blocks=(Block(sequence=0, started_s=0.1, times_s=(1e-3, 1.1e-3), executions_per_sample=4),), output_verified=True
)
PLAN = CasePlan(executions_per_sample=4, samples_per_block=2, blocks=1)


def misbehave(behaviour: str, journal: Journal, path: Path) -> None:
    match behaviour:
        case "hang":
            while True:
                time.sleep(60)
        case "hang-deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(60)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "segv" | "abort" | "kill":
            number = {"segv": signal.SIGSEGV, "abort": signal.SIGABRT, "kill": signal.SIGKILL}[behaviour]
            os.kill(os.getpid(), number)
        case "exit-3" | "exit-0" | "exit-137":
            os._exit(int(behaviour.split("-")[1]))
        case "raise":
            raise RuntimeError("the driver says no")
        case "garbage":
            with path.open("ab") as file:
                file.write(b"hello from printf\n\xff\xfe\n[1, 2]\n" + b"x" * 1000 + b"\n")
        case "half-line":
            with path.open("ab") as file:
                file.write(b'{"kind":"case","case_id":"fam')
            os.kill(os.getpid(), signal.SIGKILL)
        case "grandchild":
            child = subprocess.Popen(["sleep", "300"])
            path.with_name("grandchild").write_text(str(child.pid))
        case "flood":
            line = b"e" * 1023 + b"\n"
            for _ in range(100):
                os.write(2, line * 1024)
            os.write(2, b"the last words\n")
        case "foreign":
            journal.write(CaseFailed(case_id="not.ours", kind=FailureKind.ERROR, message="?"))
        case "wrong":
            journal.write(CaseFailed(case_id="family.b", kind=FailureKind.WRONG_OUTPUT, message="NaN"))
        case "lost":
            journal.write(LaunchFailed(kind=FailureKind.DEVICE, message="the GPU has fallen off the bus"))
            sys.exit(5)


def main() -> None:
    path, behaviours = Path(sys.argv[1]), json.loads(sys.argv[2])
    end_with_parent(os.environ)
    with open_journal(path) as journal:
        journal.write(Started(pid=os.getpid()))
        for case_id, behaviour in behaviours:
            if case_id == "after":
                journal.write(LaunchFinished(event_floor_s=2e-6))
                misbehave(behaviour, journal, path)
                return
            journal.write(PhaseEntered(case_id=case_id, phase=Phase.BLOCK))
            misbehave(behaviour, journal, path)
            if behaviour != "wrong":
                journal.write(CaseMeasured(case_id=case_id, result=RESULT, plan=PLAN, code_sha256="c0de"))
        journal.write(LaunchFinished(event_floor_s=2e-6))


if __name__ == "__main__":
    main()
