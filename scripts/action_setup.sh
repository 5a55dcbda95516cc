#!/usr/bin/env bash
# Finds or makes the Python environment of the action, and tells it as the output `python`.
# An environment that holds perfgate is used as it is; from any other interpreter a virtual one is made
# in the job's temporary folder, with the code of this checkout of the action.
set -euo pipefail

fail() {
  echo "::error title=perfgate::$1"
  exit 2
}

if [ "$(uname -s)" != Linux ]; then
  fail "perfgate measures on Linux only; this runner is $(uname -s)"
fi

python="${PERFGATE_PYTHON:-python3}"
if [ -d "$python" ]; then
  python="$python/bin/python"
fi
if ! command -v "$python" > /dev/null; then
  fail "no Python at '$python': install Python 3.10 or newer on the runner, or set the input python"
fi
if ! "$python" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  fail "'$python' is older than Python 3.10: set the input python to a newer one"
fi

if ! "$python" -I -c 'import perfgate' 2> /dev/null; then
  # Only measuring needs the GPU's libraries; PyCUDA compiles against the runner's CUDA toolkit.
  extra="[cuda]"
  if [ "${PERFGATE_MODE:-check}" = comment ] || [ -n "${PERFGATE_RUN:-}" ] || [[ "${PERFGATE_DEVICE:-auto}" = recorded* ]]; then
    extra=""
  fi
  venv="$RUNNER_TEMP/perfgate-venv"
  "$python" -m venv "$venv" || fail "Python's venv module is incomplete on this runner: apt install python3-venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH$extra" ||
    fail "perfgate cannot be installed; where the runner has no package index, prepare an environment and set the input python"
  python="$venv/bin/python"
fi
echo "python=$python" >> "$GITHUB_OUTPUT"
