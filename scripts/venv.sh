# Sourced by the other scripts: make .venv in the checkout and install rnsdask into it.
# PYTHON names the interpreter to make it with; without it, the first of python3, python3.14, ... that is new enough.

repository="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
venv="$repository/.venv"

die() {
    echo "error: $*" >&2
    exit 1
}

is_new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    local candidate
    if [[ -n "${PYTHON:-}" ]]; then
        command -v "$PYTHON" >/dev/null || die "PYTHON=$PYTHON is not an executable"
        is_new_enough "$PYTHON" || die "Python 3.11 or later is needed, PYTHON=$PYTHON is $("$PYTHON" --version 2>&1)"
        echo "$PYTHON"
        return
    fi
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null && is_new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    die "Python 3.11 or later is needed, none is on PATH (python3: $(python3 --version 2>&1)); name one in PYTHON"
}

check_compiler() {
    local candidate
    for candidate in "${CXX:-c++}" g++ clang++; do
        command -v "${candidate%% *}" >/dev/null && return
    done
    die "a C++17 compiler is needed, none of ${CXX:-c++}, g++, clang++ is on PATH (Debian, Ubuntu: apt install g++)"
}

make_venv() {
    local python
    if [[ -z "${PYTHON:-}" ]] && is_new_enough "$venv/bin/python" && "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    python="$(find_python)" || exit 1
    "$python" -m venv --clear "$venv" || die "$python cannot make a virtual environment in $venv"
}

# install_rnsdask [EXTRAS]: the build runs inside .venv, so that a second install compiles only what changed. CUDA
# kernels are compiled at first use, unless RNSDASK_CUDA_ARCHITECTURES names GPUs.
install_rnsdask() {
    local python="$venv/bin/python" target=".${1:+[$1]}" include
    check_compiler
    make_venv
    include="$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')"
    [[ -f "$include/Python.h" ]] ||
        die "Python's headers are missing: $include/Python.h (Debian, Ubuntu: apt install python3-dev)"
    echo "Installing $target into $venv (the first time takes a minute or two) ..."
    "$python" - <<'PY' >"$venv/build-requirements.txt"
import pathlib
import tomllib

print(*tomllib.loads(pathlib.Path("pyproject.toml").read_text())["build-system"]["requires"], sep="\n")
PY
    # setuptools and wheel: for packages among the extras' dependencies that come as source alone.
    "$python" -m pip install --quiet --disable-pip-version-check \
        cmake ninja setuptools wheel -r "$venv/build-requirements.txt"
    "$python" -m pip install --quiet --disable-pip-version-check --no-build-isolation "$target"
}

cd "$repository" || exit 1
