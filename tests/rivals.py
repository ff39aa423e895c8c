"""Two jobs at one local place, of which one is killed, or waits, at a call that changes the file system.

Run as a program, so that each job is a process of its own that was forked before there was any thread:

    rivals.py VICTIM [each] RIVAL [RIVAL ...]
    rivals.py loop JOB JOB DELAY SECONDS ROUNDS

The victim is stopped before each of its renames, links, removals and new folders in turn. Then the rival
runs, and the victim goes on if it only waited. What is found is compared with all that the two could make one
after the other, where what was acknowledged counts, what has failed does not, and what was killed may. At
last a third job appends, and must find the same. In a loop both go on for some seconds, and each rename comes
late. Each line that is printed is a fault.
"""

import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

from rnsdask import store
from rnsdask.core.errors import CorruptChunkError, StoreError
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS
from rnsdask.store import beside

SYSTEM = RNS(ModuliSet([4294967291, 4294967279]))
OLD = [1, 2, 3]
CALLS = ("rename", "replace", "link", "unlink", "mkdir", "rmdir")
Content = list[int] | None


# ---- what jobs do -----------------------------------------------------------------------------------------


def write(writer: Any, values: list[int], count: int = 100) -> None:
    for (i,) in writer.missing_chunks()[:count]:
        writer.write_chunk((i,), SYSTEM.encode(values[2 * i : 2 * i + 2]))


def read(path: str) -> list[int]:
    info = store.open_info(path)
    words = [store.read_chunk(info, index) for index in info.indices()]
    values = [int(v) for chunk in words for v in chunk[0]]
    assert values == [int(v) for chunk in words for v in chunk[1]]
    return values


def create(path: str, values: list[int], overwrite: bool = False) -> None:
    writer = store.create(path, SYSTEM, (len(values),), chunks=2, overwrite=overwrite, job=str(values))
    write(writer, values)
    writer.finish()


def overwrite(path: str, values: list[int]) -> None:
    create(path, values, overwrite=True)


def append(path: str, values: list[int]) -> None:
    store.settle(store.locate(path))
    old = read(path)
    info = store.open_info(path)
    if len(old) != info.count:
        raise StoreError(f"{path}: it has changed")
    writer = store.append(info, SYSTEM, 0, len(values))
    write(writer, [*old, *values])
    writer.finish()


def resume(path: str, values: list[int]) -> None:
    writer = store.resume(path, job="resumed")
    write(writer, values)
    writer.finish()


def fail(path: str, values: list[int]) -> None:
    writer = store.create(path, SYSTEM, (len(values),), chunks=2, overwrite=True)
    write(writer, values, 1)
    writer.discard()


def remove(path: str, _: list[int]) -> None:
    store.remove(store.locate(path))


JOBS: dict[str, Callable[[str, list[int]], None]] = {
    "create": create,
    "overwrite": overwrite,
    "append": append,
    "resume": resume,
    "fail": fail,
    "remove": remove,
}


def after(job: str, content: Content, values: list[int]) -> Content:
    """Content of the place after a job that has succeeded; ValueError if it could not."""
    if (job == "create" and content is not None) or (job == "append" and content is None):
        raise ValueError
    if job == "append":
        assert content is not None
        return [*content, *values]
    return {"fail": content, "remove": None}.get(job, values)


def possible(old: Content, *done: tuple[str, list[int], str]) -> list[Content]:
    """All that may be found after jobs in any order, by how each of them has ended."""
    counts = [{"done": (True,), "failed": (False,)}.get(end, (False, True)) for *_, end in done]
    found: list[Content] = []
    for order in itertools.permutations(range(len(done))):
        for counted in itertools.product(*counts):
            content = old
            try:
                for k in order:
                    if counted[k]:
                        content = after(done[k][0], content, done[k][1])
            except ValueError:
                continue
            if content not in found:
                found.append(content)
    return found


# ---- processes --------------------------------------------------------------------------------------------

Answer = tuple[str, Any]
"""How a step of a process ended: "done" and its result, "failed" and its error, "killed", or "broken"."""


def fork(*steps: Callable[[], Any]) -> tuple[int, int]:
    """Start a process that takes some steps; return its number, and where its answers can be read."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    answers = [outcome(step) for step in steps]
    os.write(writing, json.dumps(answers).encode())
    os._exit(0)


def outcome(step: Callable[[], Any]) -> Answer:
    try:
        return "done", step()
    except StoreError as error:
        is_clear = not isinstance(error, CorruptChunkError) and str(Path("x.zarr").absolute()) in str(error)
        return "failed" if is_clear else "broken", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "broken", repr(error)


def answers_of(process: tuple[int, int]) -> list[Answer]:
    with os.fdopen(process[1], "rb") as stream:
        text = stream.read()
    return [(end, what) for end, what in json.loads(text)] if text else [("killed", None)]


def stop_before(count: int, how: str) -> list[int]:
    """Let this process end, or wait, before a call that changes files; list how many come first."""
    left = [count]

    def stopping(call: Any) -> Any:
        def stopped(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] == -1 and how == "kill":
                os._exit(9)
            if left[0] == -1:
                os.kill(os.getpid(), signal.SIGSTOP)
            return call(*args, **options)

        return stopped

    for name in CALLS:
        setattr(os, name, stopping(getattr(os, name)))
    return left


# ---- rounds -----------------------------------------------------------------------------------------------

OWN, OTHERS, LAST = [70, 71, 72, 73], [80, 81, 82], [90]


def begin(path: str) -> None:
    """Begin what `resume` goes on with."""
    write(store.create(path, SYSTEM, (4,), chunks=2, overwrite=True, job="resumed"), OWN, 1)


def prepare(victim: str) -> Content:
    """Make what is there before; return it."""
    if victim == "create":
        return None
    answers_of(fork(lambda: create("x.zarr", OLD), *[lambda: begin("x.zarr")] * (victim == "resume")))
    return OLD


def problems_of(victim: str, rival: str, count: int, how: str, old: Content) -> tuple[list[str], bool]:
    """List the faults of one round, and tell whether the victim ended before it was stopped."""
    others = OWN if rival == "resume" else OTHERS

    def victims() -> None:
        stop_before(count, how)
        JOBS[victim]("x.zarr", OWN)

    def rivals() -> None:
        beside.PATIENCE = 0.05
        JOBS[rival]("x.zarr", others)

    def look() -> Any:
        return read("x.zarr")

    process = fork(victims)
    waits = os.WIFSTOPPED(os.waitpid(process[0], os.WUNTRACED)[1])
    seen, second, seen_later = answers_of(fork(look, rivals, look))
    if waits:
        os.kill(process[0], signal.SIGCONT)
    (first,) = answers_of(process)
    if waits:
        os.waitpid(process[0], 0)
    seen_then, third, at_last = answers_of(fork(look, lambda: append("x.zarr", LAST), look))

    begun, rivaled = (victim, OWN, "killed"), (rival, others, second[0])
    found = problems("first", seen, possible(old, begun))
    found += problems("after the rival", seen_later, possible(old, begun, rivaled))
    ends = [(victim, *first), (rival, *second)]
    found += [f"{job}: {what}" for job, end, what in ends if end == "broken"]
    if not found:
        done = possible(old, (victim, OWN, first[0]), rivaled)
        found += problems("then", seen_then, done)
        if third[0] == "done":
            longer = [[*content, *LAST] for content in done if content is not None]
            is_right = at_last[0] == "done" and at_last[1] in longer
            found += [] if is_right else [f"at last: {at_last}"]
            found += left_behind()
        elif None not in done or seen_then[0] == "done":
            found.append(f"the third: {third[1]}")
    label = f"{victim} ({how} before call {count}: {first}), {rival} ({second}): "
    return [label + problem for problem in found], first[0] != "killed" and not waits


def problems(when: str, seen: Answer, allowed: list[Content]) -> list[str]:
    """List the faults of what a reader has seen."""
    end, what = seen
    if end == "done":
        return [f"{when}: {what} is none of {allowed}"] * (what not in allowed)
    is_right = None in allowed or "a job is putting it in its place" in str(what)
    return [f"{when}: {what}"] * (end == "broken" or not is_right)


def left_behind() -> list[str]:
    """List what there is besides the store, and folders whose removal was interrupted."""
    names = {path.name for path in Path().iterdir()} - {"x.zarr"}
    return [f"left behind: {name}" for name in names if not (name[0] == "." and name.endswith(".partial"))]


def stop_everywhere(victim: str, rivals: list[str]) -> None:
    pairs = [(how, [rival]) for how in ("kill", "wait") for rival in rivals]
    if "each" in rivals[:1]:  # another one at each call; kills alone are tried in tests/store/test_states.py
        pairs = [("wait", rivals[:0:-1])]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as before, chdir(before):
        old = prepare(victim)
        for how, chosen in pairs:
            for count in itertools.count():
                folder = f"{before}-{how}"
                shutil.copytree(before, folder, copy_function=shutil.copy2)
                with chdir(folder):
                    found, is_over = problems_of(victim, chosen[count % len(chosen)], count, how, old)
                shutil.rmtree(folder)
                print(*found, sep="\n", end="\n" * bool(found), flush=True)
                if is_over:
                    print(f"{victim}, {how}, {chosen}: {count} calls", file=sys.stderr)
                    break


# ---- loops ------------------------------------------------------------------------------------------------


def loop(job: str, who: int, delay: float, seconds: float) -> list[tuple[int, Answer]]:
    """Do a job again and again, in which each rename comes late, as on a network disk."""
    rng = random.Random()

    def delayed(call: Any) -> Any:
        def late(*args: Any, **options: Any) -> Any:
            time.sleep(rng.uniform(0, delay))
            return call(*args, **options)

        return late

    for name in ("rename", "replace"):
        setattr(os, name, delayed(getattr(os, name)))
    done, end = [], time.monotonic() + seconds
    for n in itertools.count():
        value = 10**6 * who + n
        done.append((value, outcome(lambda value=value: JOBS[job]("x.zarr", [value] * 3))))
        if time.monotonic() > end:
            return done
        time.sleep(rng.uniform(0, 0.02))
    raise AssertionError


def problems_of_loops(jobs: Sequence[str], delay: float, seconds: float, counts: Counter[str]) -> list[str]:
    """List the faults after two jobs have run in loops beside one another."""
    answers_of(fork(lambda: create("x.zarr", [7, 7, 7])))
    processes = [fork(partial(loop, job, k + 1, delay, seconds)) for k, job in enumerate(jobs)]
    logs = [answers_of(process)[0] for process in processes]
    found = [f"a job: {log}" for log in logs if log[0] != "done"]
    if found:
        return found
    for _, log in logs:
        for value, (end, what) in log:
            counts[end if end == "done" else re.sub(r".*?/x.zarr", "x.zarr", what)] += 1
            found += [f"{value}: {what}"] * (end == "broken")
    settled = fork(lambda: store.settle(store.locate("x.zarr")), lambda: read("x.zarr"))
    _, (end, values) = answers_of(settled)
    if end != "done":
        return [*found, f"unreadable: {values}"]
    stored = values[::3]
    if values != [value for value in stored for _ in range(3)]:
        found.append(f"parts of appends: {values}")
    acknowledged = [[value for value, (end, _) in log if end == "done"] for _, log in logs]
    known = {value for one in acknowledged for value in one} | {7}
    found += [f"stored, and not acknowledged: {value}" for value in stored if value not in known]
    if "overwrite" not in jobs:
        for k, own in enumerate(acknowledged):
            if jobs[k] == "append" and own != [value for value in stored if value // 10**6 == k + 1]:
                found.append(f"acknowledged: {own}, stored: {stored}")
        found += ["the first ones are lost"] * (stored[0] != 7)
    return found + left_behind()


def run_loops(jobs: Sequence[str], delay: float, seconds: float, rounds: int) -> None:
    counts: Counter[str] = Counter()
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder, chdir(folder):
            for problem in problems_of_loops(jobs, delay, seconds, counts):
                print(f"{jobs}: {problem}", flush=True)
    print(jobs, delay, rounds, *counts.most_common(), sep="\n  ", file=sys.stderr)


def main() -> None:
    if sys.argv[1] == "loop":
        delay, seconds, rounds = sys.argv[4:]
        run_loops(sys.argv[2:4], float(delay), float(seconds), int(rounds))
    else:
        stop_everywhere(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    main()
