"""perfgate, with every step of its launches told as it begins: where the time of a session goes."""

import sys

from perfgate.cli.main import run
from perfgate.workflow.measuring import Session

progressed = Session.progressed


def told(self, progress):
    if progress.phase != "block":
        print(f"launch {progress.launch}: {progress.case_id or 'begins'} {progress.phase or ''}", flush=True)
    progressed(self, progress)


if __name__ == "__main__":
    Session.progressed = told
    sys.exit(run(sys.argv[1:]))
