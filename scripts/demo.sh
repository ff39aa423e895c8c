#!/usr/bin/env bash
# Install rnsdask into .venv and show it at work, on generated numbers and on real ones. An argument is the number of
# gigabytes to generate (default 2): any size works, for the numbers are never in memory all at once.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

gigabytes="${1:-2}"
[[ "$gigabytes" =~ ^[1-9][0-9]*$ ]] || die "the size must be a whole number of gigabytes, got '$gigabytes'"
install_rnsdask
export PATH="$venv/bin:$PATH"

folder="$(mktemp -d "${TMPDIR:-/tmp}/rnsdask-demo.XXXXXX")"
trap 'rm -rf "$folder"' EXIT
free_gigabytes="$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1000000) }')"
((free_gigabytes > gigabytes)) || die "$folder has $free_gigabytes GB free, $((gigabytes + 1)) GB are needed (set TMPDIR)"
cd "$folder"

say() {
    printf '\n# %s\n' "$*"
}

# Show a command, run it with too little memory to hold the generated numbers twice, and tell its peak.
show() {
    printf '+ %s\n' "$*"
    memory_limit=$((gigabytes * 1500000000)) python -c '
import os, resource, subprocess, sys
limit = int(os.environ["memory_limit"])
status = subprocess.call(sys.argv[1:], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)))
unit = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 1e6
print(f"  (peak memory {peak:.0f} MB)", flush=True)
sys.exit(status)' "$@"
}

# 2048 bits need 65 moduli of 32 bits: 260 bytes a number.
say "$gigabytes GB of random integers, each held as its residues modulo 65 moduli of 32 bits:"
show rnsdask random random.zarr --bits 2048 --count $((gigabytes * 1000000000 / 260)) --seed 1
show rnsdask info random.zarr

say "Their exact maximum, and where it is. No command here may use memory for two copies of the numbers; see the peak:"
show rnsdask max random.zarr

say "Their exact sum: every digit is right, although it is beyond what the moduli can hold:"
show rnsdask sum random.zarr

say "Every residue and every checksum on disk is right:"
show rnsdask verify random.zarr

say "Real numbers: the first 2900 Fibonacci numbers, one decimal integer a line:"
python -c '
a, b = 1, 1
for _ in range(2900):
    print(a)
    a, b = b, a + b' >fibonacci.txt
show rnsdask import fibonacci.txt fibonacci.zarr --bits 2048

say "The greatest is the last one, at index 2899:"
show rnsdask max fibonacci.zarr

say "Their sum; F_1 + ... + F_n = F_(n+2) - 1 says what it must be, so it can be checked:"
show rnsdask sum fibonacci.zarr
rnsdask sum fibonacci.zarr --json --no-progress | python -c '
import json, sys
a, b = 1, 1
for _ in range(2901):
    a, b = b, a + b
if int(json.load(sys.stdin)["value"]) != a - 1:
    sys.exit("error: the sum differs from F_2902 - 1")
print("  equal to F_2902 - 1")'
