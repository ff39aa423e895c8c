#!/usr/bin/env bash
# Install rnsdask with the oldest dependencies that pyproject.toml allows into build/oldest, and run its tests with them;
# arguments go to pytest. The newest are those that scripts/test.sh installs.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

venv="$repository/build/oldest"
versions="$venv.txt"
make_venv
unset PYTHON # or the environment would be made again
"$venv/bin/pip" install --quiet --disable-pip-version-check uv
"$venv/bin/uv" pip compile --quiet --python "$venv/bin/python" --resolution lowest-direct --extra test \
    --output-file "$versions" pyproject.toml
PIP_CONSTRAINT="$versions" install_rnsdask test
# Tests import the installed package, not the checkout's folder.
export PYTHONSAFEPATH=1
exec "$venv/bin/pytest" --numprocesses auto --maxprocesses 4 --dist worksteal "$@"
