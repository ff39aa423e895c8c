"""Kills commands at random moments, lets them go on, and compares their results with undisturbed ones.

    python scripts/kill_and_resume.py --rounds 10            all commands that write or keep something
    python scripts/kill_and_resume.py det "import .*"        those whose names match

Each round starts a command, kills its process by SIGKILL once it has begun to write, does so again to the
command with --resume (or the same --checkpoint), and then lets that end. Each byte that it has written must
be that of a run without a kill; of a checkpoint, each number that it prints. What has neither option, as
export, begins anew. Prints a line a command; the exit status is 1 if any differs or fails.
"""

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from subprocess import PIPE

import rnsdask as rd

RNSDASK = [sys.executable, "-c", "from rnsdask.cli import main; main(prog_name='rnsdask')"]
INPUTS = """
random a.zarr --bits 200 --count 100000 --chunk 512 --seed 1
random b.zarr --bits 200 --count 100000 --chunk 4096 --seed 2
random signed.zarr --bits 200 --signed --count 100000 --chunk 512 --seed 3
random limbs.zarr --positional --bits 256 --count 30000 --chunk 128 --seed 4
random fields.zarr --bits 60 --ntt-length 131072 --count 131072 --chunk 512 --seed 5
random matrices.zarr --bits 20 --signed --shape 3000,6,6 --chunk 16,6,6 --seed 6
random vectors.zarr --bits 20 --signed --shape 3000,6 --chunk 16,6 --seed 7
random large.zarr --bits 100 --signed --shape 200,200 --chunk 200 --seed 8
extend a.zarr wide.zarr --bits 420
export a.zarr a.txt
export a.zarr a.parquet
export a.zarr records.bin --binary 32
export a.zarr residues.npy --residues --moduli moduli.txt
"""
COMMANDS = """
random {out} --bits 200 --count 200000 --chunk 512 --seed 9
import a.txt {out} --bits 200 --chunk 512
import a.parquet {out} --bits 200 --chunk 512
import records.bin {out} --binary 32 --bits 200 --chunk 512
import residues.npy {out} --residues --moduli moduli.txt --chunk 512
eval a*b+1 a=a.zarr b=b.zarr -o {out} --overflow wrap
eval a*b a=a.zarr b=b.zarr -o {out} --overflow flag --mask {out}.mask.zarr
eval a<b a=a.zarr b=b.zarr -o {out}
eval -e s=a+b -e p=s*2 a=a.zarr b=b.zarr -o s={out} -o p={out}.p.zarr --extend
cumsum wide.zarr {out}
cummax a.zarr {out}
cummin a.zarr {out}
powmod limbs.zarr 65537 1000000007 -o {out}
det matrices.zarr -o {out}
solve matrices.zarr vectors.zarr -o {out} --denominators {out}.d.zarr
convolve a.zarr b.zarr -o {out} --overflow wrap
ntt fields.zarr -o {out}
convert signed.zarr {out} --to interval
convert a.zarr {out} --to positional --bits 256
extend a.zarr {out} --bits 420
shrink wide.zarr {out} --bits 210
slice a.zarr {out} ::-1
concat a.zarr a.zarr -o {out}
reshape a.zarr {out} 200,-1
rechunk a.zarr {out} --chunks 300
export a.zarr {out}.txt.gz
export a.zarr {out}.npy --residues --moduli moduli.txt
max a.zarr --checkpoint {out}
min signed.zarr --checkpoint {out}
sum a.zarr --checkpoint {out}
bound signed.zarr --checkpoint {out}
det large.zarr --checkpoint {out}
rank matrices.zarr --checkpoint {out}
charpoly matrices.zarr --checkpoint {out}
solve matrices.zarr vectors.zarr --checkpoint {out}
resultant vectors.zarr vectors.zarr --checkpoint {out}
"""
VARYING = {"seconds", "retries", "bytes_read"}


class FailedError(Exception):
    """A command that failed, which was to end well."""


def start(folder: Path, line: str, name: str = "out", *more: str) -> "subprocess.Popen[str]":
    """Start a command in a folder, what it writes in a folder of its own below."""
    (folder / name).mkdir(exist_ok=True)
    words = [*line.format(out=f"{name}/out").split(), *more]
    return subprocess.Popen(RNSDASK + words, cwd=folder, stdout=PIPE, stderr=PIPE, text=True)


def finish(process: "subprocess.Popen[str]") -> str:
    """Wait for the end of a command, and return what it printed."""
    printed, error = process.communicate(timeout=600)
    if process.returncode:
        raise FailedError(error.strip() or f"exit status {process.returncode}")
    return printed


def result(folder: Path, line: str, name: str, printed: str) -> object:
    """Return the bytes of all files that a command has written; with a checkpoint, what it printed."""
    if "--checkpoint" in line:
        return {key: value for key, value in json.loads(printed).items() if key not in VARYING}
    files = [path for path in (folder / name).rglob("*") if path.is_file()]
    whole = [path for path in files if "export" not in line or not path.name.startswith(".")]
    return {str(path.relative_to(folder / name)): path.read_bytes() for path in whole}


def wait_for_files(process: "subprocess.Popen[str]", place: Path) -> float:
    """Wait until a command begins to write, or has ended; return the time."""
    while process.poll() is None and not any(place.iterdir()):
        time.sleep(0.002)
    return time.perf_counter()


def try_command(folder: Path, line: str, rounds: int) -> Counter[str]:
    """Kill a command in each round twice, and compare what it has made in the end."""
    more = ["--resume"] if "export" not in line else []
    if "--checkpoint" in line:
        more = ["--json"]
    counts: Counter[str] = Counter()
    undisturbed = start(folder, line, "whole", *more)
    begun = wait_for_files(undisturbed, folder / "whole")
    expected = result(folder, line, "whole", finish(undisturbed))
    seconds = time.perf_counter() - begun
    for _ in range(rounds):
        for fraction in (random.random(), random.random()):
            process = start(folder, line, "killed", *more)
            wait_for_files(process, folder / "killed")
            time.sleep(fraction * seconds)
            counts["killed" if process.poll() is None else "ended before"] += 1
            process.kill()
            process.communicate()
        try:
            is_same = result(folder, line, "killed", finish(start(folder, line, "killed", *more))) == expected
            counts["same" if is_same else "WRONG"] += 1
        except FailedError as error:
            print(f"  {line}: {error}", flush=True)
            counts["FAILED"] += 1
        shutil.rmtree(folder / "killed")
    shutil.rmtree(folder / "whole")
    return counts


def main() -> None:
    """Make inputs, and run the rounds of each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("patterns", nargs="*", default=[""], help="regular expressions of commands")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "moduli.txt").write_text("\n".join(map(str, rd.ModuliSet.for_bits(200))))
        for line in INPUTS.strip().splitlines():
            finish(start(folder, line))
        for line in COMMANDS.strip().splitlines():
            if any(re.match(pattern, line) for pattern in options.patterns):
                counts = try_command(folder, line, options.rounds)
                total += counts
                print(f"{line}: {', '.join(f'{n} {what}' for what, n in counts.items())}", flush=True)
    print(f"all: {', '.join(f'{n} {what}' for what, n in total.items())}")
    sys.exit(1 if total["WRONG"] or total["FAILED"] else 0)


if __name__ == "__main__":
    main()
