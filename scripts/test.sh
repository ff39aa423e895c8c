#!/usr/bin/env bash
# Install rnsdask with what its tests need into .venv, and run the whole test suite; arguments go to pytest.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

install_rnsdask test
# The tests and the programs that they start import the installed package, not the checkout's folder.
export PYTHONSAFEPATH=1
# Without their bytecode of the last time, each process would rewrite and compile all tests, for 9 s.
export PYTHONDONTWRITEBYTECODE=
# Tests wait now and then, for other processes among other things: one process more than there are cores.
exec "$venv/bin/pytest" --numprocesses "$(($(getconf _NPROCESSORS_ONLN) + 1))" --maxprocesses 4 --dist worksteal "$@"
