#!/usr/bin/env bash
# Install a wheel of rnsdask into an empty environment, and try it there without a compiler, away from the checkout.
#
#     scripts/try_wheel.sh PYTHON WHEEL
set -euo pipefail

python="$1" wheel="$(realpath "$2")"
scripts="$(realpath "$(dirname "${BASH_SOURCE[0]}")")"
folder="$(mktemp -d)"
trap 'PATH=/usr/bin:/bin rm -rf "$folder"' EXIT
cd "$folder"
"$python" -m venv empty
export PATH="$folder/empty/bin" # nothing else
unset PYTHONPATH
SECONDS=0
pip install --quiet --disable-pip-version-check --only-binary :all: "$wheel[plot]"
echo "installed after $SECONDS s"
python "$scripts/try_wheel.py" "$scripts/../notebooks/tour.ipynb"
echo "done after $SECONDS s"
