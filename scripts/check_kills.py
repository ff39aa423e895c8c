"""Kills commands at any moment, goes on with them, and compares their results with those of runs left alone.

    python scripts/check_kills.py                       every command that goes on, three rounds each
    python scripts/check_kills.py eval max --rounds 20  some of them

In a round a command is killed by SIGKILL one to three times, each at a random moment of the time that it
takes when left alone, and then runs to its end. What it prints, the files that it writes but metadata, and
what `rnsdask head` prints of a store must be the same.
Prints the seed and the counts; the exit status is 1 if anything differs.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))  # PYTHONSAFEPATH leaves it out

import argparse
import hashlib
import json
import os
import random
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

from check_gpu import TIMEOUT, last_line, rnsdask, without_measures

CHUNK = 2048
INPUTS = (
    "random x --count {count} --bits 2000 --seed 5 --chunk {chunk}",
    "random y --count {count} --bits 2000 --seed 6 --chunk {chunk}",
    "eval 'x >> 1900' x=x -o small",
    "convert small -o limbs --to positional --bits 128",
    "random line --count 8192 --bits 64 --seed 7 --chunk 1024",
    "random square --shape 60,24,24 --bits 64 --seed 8 --chunk 4,24,24",
    "random polynomial --shape 40,30 --bits 64 --seed 9 --chunk 4,30",
    "random many --shape 60,8,8,3 --bits 64 --seed 10 --chunk 4,8,8,3",
    "random wide --shape 60,12,20 --bits 64 --seed 11 --chunk 4,12,20",
    "random right --shape 60,12,2 --bits 64 --seed 12 --chunk 4,12,2",
    "random fields --primes 998244353 --count 65536 --seed 1 --chunk 4096",
    "random great --primes 998244353 --shape 1400,1500 --seed 2 --chunk 400,400",
    "slice great -o regular :,:1400",
    "slice great -o sides :,:3",
)
OUTPUT, STATE = "OUTPUT", "STATE"
TO_STORES = {
    "random": f"random {OUTPUT} --count {{count}} --bits 2000 --seed 9 --chunk {{chunk}}",
    "import": f"import x.txt {OUTPUT} --bits 2000 --chunk {{chunk}}",
    "eval": f"eval 'x*y + x' x=x y=y -o {OUTPUT} --overflow wrap",
    "import --binary": f"import x.bin {OUTPUT} --binary 256 --bits 2000 --chunk {{chunk}}",
    "eval --mask": f"eval '2**30*x' x=x -o {OUTPUT} --overflow flag --mask {OUTPUT}-mask",
    "eval -e": f"eval -e s=x+y -e 'p=s*2' x=x y=y -o s={OUTPUT} -o p={OUTPUT}-p --extend",
    "sort": f"sort x -o {OUTPUT}",
    "cumsum": f"cumsum small -o {OUTPUT}",
    "cummax": f"cummax x -o {OUTPUT}",
    "cummin": f"cummin x -o {OUTPUT}",
    "powmod": f"powmod limbs 65537 1000003 -o {OUTPUT}",
    "batchgcd": f"batchgcd limbs -o {OUTPUT}",
    "convolve": f"convolve line line -o {OUTPUT} --overflow wrap",
    "ntt": f"ntt fields -o {OUTPUT}",
    "convert": f"convert x -o {OUTPUT} --to interval",
    "convert to limbs": f"convert x -o {OUTPUT} --to positional --bits 2048",
    "extend": f"extend x -o {OUTPUT} --bits 4096",
    "shrink": f"shrink small -o {OUTPUT} --bits 200",
    "slice": f"slice x -o {OUTPUT} 100:-100",
    "concat": f"concat x y -o {OUTPUT}",
    "filter": f"filter x 'x % 3 == 0' -o {OUTPUT}",
    "group": f"group square --by square -o {OUTPUT}",
    "reshape": f"reshape x -o {OUTPUT} 4,-1",
    "rechunk": f"rechunk x -o {OUTPUT} --chunks 3000",
    "det -o": f"det square -o {OUTPUT}",
    "det --variables 1 -o": f"det many --variables 1 -o {OUTPUT}",
    "charpoly -o": f"charpoly square -o {OUTPUT}",
    "rref -o": f"rref square -o {OUTPUT} --denominators {OUTPUT}-d --bits 8000",
    "solve -o": f"solve square square -o {OUTPUT} --denominators {OUTPUT}-d --bits 8000",
    "solve --any -o": f"solve wide right --any -o {OUTPUT} --denominators {OUTPUT}-d --bits 8000",
    "solve --modulo -o": f"solve square square --modulo {2**61 - 1} -o {OUTPUT}",
    "rank -o": f"rank square -o {OUTPUT}",
    "nullspace -o": f"nullspace wide -o {OUTPUT}",
    "nullspace of a great matrix": f"nullspace great -o {OUTPUT}",
    "rref of a great matrix": f"rref great -o {OUTPUT}",
    "resultant -o": f"resultant polynomial polynomial -o {OUTPUT}",
}
CHECKPOINTED = {
    "max": f"max x --checkpoint {STATE}",
    "min": f"min x --checkpoint {STATE}",
    "sum": f"sum x --checkpoint {STATE}",
    "gcd": f"gcd x --checkpoint {STATE}",
    "bound": f"bound x --checkpoint {STATE}",
    "det": f"det square --checkpoint {STATE}",
    "det --variables 1": f"det many --variables 1 --checkpoint {STATE}",
    "rank": f"rank square --checkpoint {STATE}",
    "charpoly": f"charpoly square --checkpoint {STATE}",
    "rref": f"rref square --checkpoint {STATE}",
    "solve": f"solve square square --checkpoint {STATE}",
    "solve --any": f"solve wide right --any --checkpoint {STATE}",
    "solve --modulo": f"solve square square --modulo {2**61 - 1} --checkpoint {STATE}",
    "resultant": f"resultant polynomial polynomial --checkpoint {STATE}",
    "det of a great matrix": f"det regular --checkpoint {STATE}",
    "rank of a great matrix": f"rank great --checkpoint {STATE}",
    "solve of a great matrix": f"solve regular sides --checkpoint {STATE}",
}
AGAIN = {"export": f"export x {OUTPUT}.txt --overwrite"}
COMMANDS = TO_STORES | CHECKPOINTED | AGAIN


def make_inputs(folder: Path, count: int) -> None:
    for command in INPUTS:
        status, _, errors = rnsdask(command.format(count=count, chunk=CHUNK), folder)
        if status:
            sys.exit(f"error: {command}: {last_line(errors)}")
    rnsdask("export x x.txt", folder)
    rnsdask("export x x.bin --binary 256", folder)


def outcome(command: str, folder: Path, name: str, *options: str) -> dict[str, str]:
    """Output of a command that runs to its end, and the hash of each file but metadata that it writes."""
    status, printed, errors = rnsdask(command, folder, *options)
    found = {"status": str(status), "error": last_line(errors) if status else ""}
    if "--json" in options and not status:
        printed = json.dumps(json.loads(printed, object_hook=without_measures), sort_keys=True)
        found["printed"] = printed.replace(name, OUTPUT)
    for path in sorted(folder.glob(f"{name}*/**/*")) + sorted(folder.glob(f"{name}.txt")):
        if path.is_file() and path.suffix != ".json":  # what names the store itself
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            found[str(path.relative_to(folder)).replace(name, OUTPUT, 1)] = content
    if (folder / name).is_dir():
        found["head"] = rnsdask(f"head {name}", folder)[1].replace(name, OUTPUT)
    return found


def killed(command: str, folder: Path, seconds: float, *options: str) -> bool:
    """Start a command and kill it after so many seconds; whether it was still running."""
    program = [sys.executable, "-c", "from rnsdask.cli import main; main()", *shlex.split(command)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*program, *options], cwd=folder, start_new_session=True, **quiet) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return True
    return False


def check(name: str, folder: Path, count: int, rounds: int, rng: random.Random) -> tuple[int, list[str]]:
    """How many times a command was killed, and what differed afterwards."""
    options = ("--json",) if name in CHECKPOINTED else ()
    resume = ("--resume",) if name in TO_STORES else ()
    template = COMMANDS[name].format(count=count, chunk=CHUNK)
    start = time.monotonic()
    alone = template.replace(OUTPUT, "alone").replace(STATE, "state-alone")
    expected = outcome(alone, folder, "alone", *options)
    seconds = time.monotonic() - start
    problems = [f"{name}: {expected['error']}"] if expected["error"] else []
    kills = 0
    for number in range(rounds if not problems else 0):
        place = f"killed{number}"
        command = template.replace(OUTPUT, place).replace(STATE, f"state-{place}")
        for turn in range(rng.randint(1, 3)):
            more = resume if turn else ()
            kills += killed(command, folder, rng.uniform(0.2, 1.0) * seconds, *options, *more)
        found = outcome(command, folder, place, *options, *resume)
        if found != expected:
            names = sorted(k for k in expected.keys() | found.keys() if expected.get(k) != found.get(k))
            problems.append(f"{name}, round {number}: {found['error'] or names[:5]}")
        remove(folder, place)
    remove(folder, "alone")
    return kills, problems


def remove(folder: Path, place: str) -> None:
    for path in [*folder.glob(f"{place}*"), *folder.glob(f"state-{place}")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"at most {TIMEOUT} s each",
    )
    parser.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join(COMMANDS))
    parser.add_argument("--count", type=int, default=100_000, help="numbers of a store")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    seed = secrets.randbits(32) if args.seed is None else args.seed
    print(f"seed {seed}", flush=True)
    rng, kills, problems = random.Random(seed), 0, []
    with tempfile.TemporaryDirectory() as temporary:
        make_inputs(Path(temporary), args.count)
        for name in args.commands or COMMANDS:
            done, wrong = check(name, Path(temporary), args.count, args.rounds, rng)
            kills += done
            problems += wrong
            print(f"{name}: killed {done} times, {len(wrong)} differences", *wrong, sep="\n  ", flush=True)
    print(f"{kills} kills, {len(problems)} differences")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
