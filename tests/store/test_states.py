"""Any order of writes, kills, appends, resumes and damage, against a model of lists and sets.

What was acknowledged stays, what is incomplete never looks whole, and what is resumed has the bytes that it
would have had. A kill is a copy of the folder before a call that changes it, which takes the folder's place
once the job has ended. RNSDASK_FAULT_RUNS tries so many times as many orders.
"""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
import zarr
from commands import contents
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from rnsdask import store
from rnsdask.core.errors import ChangedStoreError, CorruptChunkError, StoreError
from rnsdask.core.moduli import ModuliSet
from rnsdask.rns.system import RNS
from rnsdask.store import Decision, appending

RUNS = int(os.environ.get("RNSDASK_FAULT_RUNS", "1"))

SYSTEM = RNS(ModuliSet([4294967291, 4294967279]))
LENGTH = 2  # of chunks
VALUES = {"a": [1, 2, 3, 4, 5], "b": [6, 7, 8, 9], "c": [10, 11]}
"""Values that each job writes: chunks that are whole, and cut by the edge."""

CALLS = ("rename", "replace", "link", "unlink", "mkdir", "rmdir")

JOBS, ENDS = st.sampled_from(sorted(VALUES)), st.sampled_from(["finish", "finish", "leave", "discard"])
KILLS = st.none() | st.integers(0, 20)


@dataclass
class Begun:
    """An array that is not whole: whose it is, its values, and which chunks are there, right or damaged."""

    job: str
    values: list[int]
    written: set[int] = field(default_factory=set)
    damaged: set[int] = field(default_factory=set)


@dataclass
class Model:
    """Content of the place: values, the job that has written them, chunks that are damaged or gone."""

    whole: list[int] | None = None
    job: str | None = None
    flipped: set[int] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    begun: Begun | None = None


def chunks_of(values: list[int]) -> set[int]:
    return set(range(-(-len(values) // LENGTH)))


def block(values: list[int], i: int) -> Any:
    return SYSTEM.encode(values[LENGTH * i : LENGTH * (i + 1)])


def chunk_bytes(values: list[int], i: int) -> bytes:
    numbers = (values[LENGTH * i : LENGTH * (i + 1)] + [0] * LENGTH)[:LENGTH]
    words = b"".join((v % m).to_bytes(4, "little") for m in SYSTEM.moduli for v in numbers)
    return words + google_crc32c.value(words).to_bytes(4, "little")


@contextmanager
def stopping(folder: Path, before: int | None) -> Iterator[Path]:
    """Copy the folder to the path that is given before a call that changes it, if there are so many.

    Chunks that an append shares are linked on one thread: the order of several differs between replays.
    """
    copy, lock, count = folder.with_name(f"{folder.name}-killed"), threading.RLock(), [-1]
    is_copying = [False]

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **options: Any) -> Any:
            with lock:
                if not is_copying[0]:
                    count[0] += 1
                    if count[0] == before:
                        is_copying[0] = True
                        shutil.copytree(folder, copy, symlinks=True)
                        is_copying[0] = False
                return call(*args, **options)

        return counted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(appending, "REQUESTS", 1)
        if before is not None:
            for name in CALLS:
                patch.setattr(os, name, counting(getattr(os, name)))
        yield copy


class Stores(RuleBasedStateMachine):
    """One local place, and the jobs that write there one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "x.zarr"
        self.partial = self.folder / "x.zarr.partial"
        self.model = Model()
        self.opened: list[tuple[store.StoreInfo, list[int]]] = []
        self.references: dict[tuple[int, ...], dict[str, bytes]] = {}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # ---- what jobs do -------------------------------------------------------------------------------------

    @initialize(job=JOBS, is_link=st.booleans())
    def first(self, job: str, is_link: bool) -> None:
        if is_link:
            self.partial = self.folder / "elsewhere/target.partial"
            (self.folder / "elsewhere/target").mkdir(parents=True)
            self.path.symlink_to("elsewhere/target")
        self.write(job, False, 0, "finish", None)

    @rule(job=JOBS, overwrite=st.booleans(), count=st.integers(0, 2), end=ENDS, kill=KILLS)
    def write(self, job: str, overwrite: bool, count: int, end: str, kill: int | None) -> None:
        values, model = VALUES[job], self.model

        def begin() -> Any:
            return store.create(
                self.path, SYSTEM, (len(values),), chunks=LENGTH, overwrite=overwrite, job=job
            )

        if not overwrite and (model.whole is not None or model.begun is not None):
            with pytest.raises(StoreError, match=r"overwrite=True|another job"):
                begin()
            return
        wanted = chunks_of(values) if end == "finish" else set(range(min(count, len(chunks_of(values)))))
        self.run(begin, Begun(job, values, wanted), end, kill)

    @rule(job=JOBS, count=st.integers(0, 2), end=ENDS, kill=KILLS)
    def resume(self, job: str, count: int, end: str, kill: int | None) -> None:
        begun = self.model.begun
        if begun is None or begun.job != job:
            with pytest.raises(StoreError, match=r"nothing to resume|no such|no zarr\.json|another job"):
                store.resume(self.path, job=job)
            return

        def go_on() -> Any:
            writer = store.resume(self.path, job=job)
            assert {i for (i,) in writer.missing_chunks()} == chunks_of(begun.values) - begun.written
            assert {i for (i,) in writer.damaged_chunks()} == begun.damaged
            return writer

        left = sorted((chunks_of(begun.values) - begun.written) | begun.damaged)
        wanted = set(left if end == "finish" else left[:count])
        written = replace(begun, written=begun.written | wanted, damaged=begun.damaged - wanted)
        self.run(go_on, written, end, kill, wanted)

    @precondition(lambda self: self.model.whole is not None)
    @rule(job=JOBS, end=ENDS, kill=KILLS)
    def append(self, job: str, end: str, kill: int | None) -> None:
        model = self.model
        assert model.whole is not None
        values, info = [*model.whole, *VALUES[job]], store.open_info(self.path)
        if model.removed:
            with pytest.raises(CorruptChunkError, match="is missing"):
                store.append(info, SYSTEM, 0, len(VALUES[job]))
            return
        lasting = set(range(len(model.whole) // LENGTH))
        wanted = chunks_of(values) - lasting if end == "finish" else set()
        longer = Begun("append", values, lasting | wanted, model.flipped & lasting)
        self.run(lambda: store.append(info, SYSTEM, 0, len(VALUES[job])), longer, end, kill, wanted)

    @rule()
    def remove(self) -> None:
        store.remove(store.locate(self.path))
        self.model = Model()
        names = {path.name for path in self.partial.parent.iterdir()} - {self.partial.stem}
        assert all(name[0] == "." and name.endswith(".partial") for name in names)  # as kills leave them

    @precondition(lambda self: self.model.whole is not None and not self.model.flipped | self.model.removed)
    @rule()
    def open(self) -> None:
        """Open what is there, to be read later: by then it may have changed, but is no other one unseen."""
        assert self.model.whole is not None
        self.opened = [*self.opened[-2:], (store.open_info(self.path), self.model.whole)]

    @rule(which=st.integers(0, 9), at=st.integers(0, 2**16), flips=st.booleans())
    def damage(self, which: int, at: int, flips: bool) -> None:
        """Change a byte of a chunk of what is whole or begun, or remove its file.

        Which chunks there are depends on when a job was killed, so numbers are drawn in the same way for any.
        """
        model, begun = self.model, self.model.begun
        places = [(self.path, i) for i in chunks_of(model.whole or []) - model.flipped - model.removed]
        if begun is not None:
            places += [(self.partial, i) for i in begun.written - begun.damaged]
        if not places:
            return
        folder, i = sorted(places)[which % len(places)]
        file = folder / f"c/0/{i}"
        content = bytearray(file.read_bytes())
        file.unlink()  # it may have another name, in the longer array
        if flips:
            content[at % (len(content) - 4)] ^= 1
            file.write_bytes(content)
        if folder == self.path:
            (model.flipped if flips else model.removed).add(i)
        elif flips:
            assert begun is not None
            begun.damaged.add(i)
        else:
            assert begun is not None
            begun.written.remove(i)

    @rule(job=JOBS, overwrite=st.booleans())
    def decide(self, job: str, overwrite: bool) -> None:
        model, output = self.model, store.Output(self.path, job, overwrite=overwrite, resume=True)
        assert replace(output, resume=False).decide() is Decision.BEGIN
        if model.begun is not None and model.begun.job == job:
            assert output.decide() is Decision.GO_ON
        elif model.whole is not None and model.job == job and not model.removed:
            assert output.decide() is Decision.DONE
        elif overwrite:
            assert output.decide() is Decision.BEGIN
        elif model.begun is not None:  # whose it is shows then
            assert output.decide() is Decision.GO_ON
        elif model.whole is None:
            assert output.decide() is Decision.BEGIN
        else:
            with pytest.raises(StoreError, match="it is complete, but"):
                output.decide()

    # ---- one job ------------------------------------------------------------------------------------------

    def run(
        self,
        begin: Callable[[], Any],
        begun: Begun,
        end: str,
        kill: int | None,
        wanted: set[int] | None = None,
    ) -> None:
        """Begin, write the chunks that are wanted, and end; or be killed before one of the calls."""
        after = replace(self.model, begun=None if end == "discard" else begun)
        if end == "finish":
            after = Model(begun.values, None if begun.job == "append" else begun.job, set(begun.damaged))
        with stopping(self.folder, kill) as killed:
            writer = begin()
            for i in sorted(begun.written if wanted is None else wanted):
                writer.write_chunk((i,), block(begun.values, i))
            if end != "leave":
                getattr(writer, end)()
        if killed.exists():
            shutil.rmtree(self.folder)
            killed.rename(self.folder)
            self.model = self.found(self.model, after, begun)
        else:
            self.model = after

    def found(self, before: Model, after: Model, begun: Begun) -> Model:
        """Find out what a killed job has left: all as it was before, or after, and maybe what it began."""
        seen, is_open = self.look(before, after)
        store.settle(store.locate(self.path))
        settled, _ = self.look(before, after)
        assert is_open or settled is after
        assert not (seen is after and settled is before)
        left = self.partial
        model = replace(settled, begun=None)
        if (left / "zarr.json").exists():
            job = json.loads((left / "zarr.json").read_bytes())["attributes"]["rnsdask"]["recipe"]
            is_new = before.begun is None or (job or "append").partition("-")[0] == begun.job
            owner = begun if is_new else before.begun
            assert owner is not None
            files = {int(file.name): file.read_bytes() for file in left.glob("c/0/*")}
            wrong = {i for i, content in files.items() if content != chunk_bytes(owner.values, i)}
            known = set() if before.begun is None else before.begun.damaged
            assert wrong <= known | before.flipped
            model.begun = Begun(owner.job, owner.values, set(files), wrong)
        return model

    def look(self, before: Model, after: Model) -> tuple[Model, bool]:
        """Which of two models is there; and whether it can be opened, or is being put in its place."""
        try:
            count = store.open_info(self.path).count
        except StoreError as error:
            if "a job is putting it in its place" in str(error):
                return before, False
            if None not in (before.whole, after.whole):
                raise
            return (before if before.whole is None else after), True
        record = self.path / "rnsdask-job.json"
        job = json.loads(record.read_bytes())["job"] if record.exists() else None
        known = [one for one in (after, before) if one.whole is not None and len(one.whole) == count]
        assert job in [one.job for one in known]
        one = next(one for one in known if one.job == job)
        return (one if self.holds(one) else next(one for one in known if self.holds(one))), True

    # ---- what readers find --------------------------------------------------------------------------------

    def holds(self, model: Model) -> bool:
        """Whether each chunk has the values of a model, or is damaged as it says."""
        info = store.open_info(self.path)
        assert model.whole is not None
        for i in chunks_of(model.whole):
            try:
                words = store.read_chunk(info, (i,))
            except CorruptChunkError:
                if i not in model.flipped | model.removed:
                    return False
            else:
                if i in model.flipped | model.removed or not (words == block(model.whole, i)).all():
                    return False
        return True

    @invariant()
    def what_was_acknowledged_stays(self) -> None:
        model = self.model
        if model.whole is None:
            with pytest.raises(StoreError):
                store.open_info(self.path)
            with pytest.raises((FileNotFoundError, ValueError)):
                zarr.open_array(self.path, mode="r")
            return
        assert self.holds(model)
        problems = list(store.verify(store.open_info(self.path)))
        assert len(problems) == len(model.flipped | model.removed)
        if not problems:
            assert contents(str(self.path)) == self.reference(model.whole)

    @invariant()
    def what_is_open_is_what_it_was_or_an_error(self) -> None:
        for info, values in self.opened:
            for i in chunks_of(values):
                with suppress(ChangedStoreError, CorruptChunkError):
                    assert (store.read_chunk(info, (i,)) == block(values, i)).all()
                    assert self.model.whole == values

    def reference(self, values: list[int]) -> dict[str, bytes]:
        """The bytes of a store that is written at once."""
        if tuple(values) not in self.references:
            with tempfile.TemporaryDirectory() as folder:
                writer = store.create(f"{folder}/x", SYSTEM, (len(values),), chunks=LENGTH)
                for i in chunks_of(values):
                    writer.write_chunk((i,), block(values, i))
                writer.finish()
                self.references[tuple(values)] = contents(f"{folder}/x")
        return self.references[tuple(values)]

    @invariant()
    def what_is_begun_can_be_told(self) -> None:
        expected = "nothing" if self.model.whole is None else "whole"
        expected = expected if self.model.begun is None else "incomplete"
        assert store.state(store.locate(self.path)) == expected


TestStates = Stores.TestCase
TestStates.settings = settings(max_examples=40 * RUNS, stateful_step_count=10, deadline=None)
