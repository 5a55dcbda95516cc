#!/usr/bin/env bash
# Tests with the lowest or the newest versions of its dependencies that perfgate allows, in an environment of its own.
# Usage: scripts/dependency_bounds.sh lowest|newest [options and paths of pytest]
set -euo pipefail
cd "$(dirname "$0")/.."
bound="${1:?lowest or newest}"
shift
uv=".venv/bin/uv"
folder=".venv-$bound"
"$uv" venv --quiet --clear --python "${PYTHON:-python3}" "$folder"
case "$bound" in
  lowest) resolution=lowest-direct ;;
  newest) resolution=highest ;;
  *) echo "lowest or newest, not $bound" >&2; exit 2 ;;
esac
"$uv" pip install --quiet --python "$folder" --resolution "$resolution" --editable .
# The tools of the tests are as new as they are everywhere else; what perfgate itself needs stays as it was resolved.
"$uv" pip freeze --quiet --python "$folder" --exclude-editable > "$folder/bounds.txt"
"$uv" pip install --quiet --python "$folder" --constraints "$folder/bounds.txt" --editable . --group dev
"$uv" pip freeze --quiet --python "$folder" | grep -f <(cut -d= -f1 "$folder/bounds.txt")
# An old dependency may use what a newer one of its own calls deprecated.
exec "$folder/bin/python" -m pytest -m "not gpu" -n auto -W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning "$@"
