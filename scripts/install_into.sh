#!/usr/bin/env bash
# Install rnsdask from the checkout into a virtual environment of its own, without what only the build needs.
#
#     scripts/install_into.sh FOLDER [EXTRAS]
set -euo pipefail
folder="$(realpath "$1")"
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

venv="$folder"
install_rnsdask "${2:-}"
"$venv/bin/python" -m pip uninstall --quiet --yes cmake ninja scikit-build-core nanobind
rm "$venv/build-requirements.txt"
