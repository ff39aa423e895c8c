"""Run a kernel of PTX, what NVRTC makes of a source, on the host: all threads of a launch in step, by NumPy.

So inline assembly is taken as the compiler takes it, with the registers that its operands were given. The
threads at the instruction of least address go first; those at a shuffle or a vote wait until no others can
go, and those at a barrier until all that live of their block are there. Memory is the host's: what is written
is there at once for all, and what lies beyond an array of global memory is not found, other than in shared
memory. There are no warps' schedules, no memory model, no time, no floating point, no calls and no clusters.
An instruction that is not known is an error, and what was not set is no zero.
"""

import ctypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]
U = np.uint64
LANES = 32
UNSET = 0xDEADBEEFCAFEF00D


@dataclass(frozen=True)
class Kind:
    """A type of PTX, such as ``s32``, ``b64`` or ``pred``."""

    bits: int
    signed: bool

    @classmethod
    def of(cls, name: str) -> "Kind":
        if name == "pred":
            return cls(1, False)
        if not re.fullmatch(r"[bsu](8|16|32|64)", name):
            raise NotImplementedError(f"the type {name} of PTX")
        return cls(int(name[1:]), name[0] == "s")

    def low(self, x: Words) -> Words:
        """The lowest bits, all that such a number has."""
        return x & U(2**self.bits - 1)

    def number(self, x: Words) -> npt.NDArray[np.uint64] | npt.NDArray[np.int64]:
        """The lowest bits as numbers that compare as this type's do."""
        spare = U(64 - self.bits)
        return (x << spare).view(np.int64) >> spare.view(np.int64) if self.signed else self.low(x)


def most_of(x: Words, y: Words, kind: Kind) -> Words:
    """The higher half of products."""
    if kind.bits < 64:
        return (kind.number(x) * kind.number(y)).view(U) >> U(kind.bits)
    low = U(2**32 - 1)
    middle = (x >> U(32)) * (y & low) + ((x & low) * (y & low) >> U(32))
    rest = (x & low) * (y >> U(32)) + (middle & low)
    most = (x >> U(32)) * (y >> U(32)) + (middle >> U(32)) + (rest >> U(32))
    if kind.signed:
        most = most - np.where(kind.number(x) < 0, y, U(0)) - np.where(kind.number(y) < 0, x, U(0))
    return most


def multiply(kind: Kind, parts: Sequence[str], x: Words, y: Words) -> Words:
    if "hi" in parts:
        return most_of(x, y, kind)
    return (kind.number(x) * kind.number(y)).view(U)  # low, or wide: of at most 32 bits


def divide(kind: Kind, parts: Sequence[str], x: Words, y: Words) -> Words:
    """Quotients or remainders, cut toward zero; by zero all ones."""
    below = [kind.number(z) < 0 for z in (x, y)]
    wide = [kind.number(z).view(U) for z in (x, y)]
    a, b = (np.where(is_below, U(0) - z, z) for is_below, z in zip(below, wide, strict=True))
    quotient = np.where(b == 0, U(2**64 - 1), a // np.maximum(b, U(1)))
    quotient = np.where(below[0] ^ below[1], U(0) - quotient, quotient)
    return quotient if parts[0] == "div" else x - quotient * y


def shift(kind: Kind, parts: Sequence[str], x: Words, count: Words) -> Words:
    """Counts beyond the width shift all out."""
    most = np.minimum(count, U(63))
    if parts[0] == "shr" and kind.signed:
        return (kind.number(x) >> most.view(np.int64)).view(U)
    return np.where(count >= U(kind.bits), U(0), x << most if parts[0] == "shl" else x >> most)


def insert_field(kind: Kind, parts: Sequence[str], x: Words, y: Words, at: Words, size: Words) -> Words:  # noqa: ARG001
    field = ((U(1) << size) - U(1)) << at
    return (x << at) & field | y & ~field


def count_bits(kind: Kind, parts: Sequence[str], x: Words) -> Words:
    """Count the bits that are set, or the zeros before the first that is."""
    if parts[0] == "clz":
        for bits in (1, 2, 4, 8, 16, 32):
            x = x | x >> U(bits)
        x = kind.low(~x)
    return np.bitwise_count(x).astype(U)


def choose_bytes(kind: Kind, parts: Sequence[str], x: Words, y: Words, choice: Words) -> Words:  # noqa: ARG001
    """Each of four of a pair's eight by 3 bits; one more bit asks for its sign instead."""
    pair, out = x | y << U(32), U(0)
    for i in range(4):
        digit = choice >> U(4 * i)
        byte = pair >> (digit & U(7)) * U(8) & U(255)
        sign = np.where(byte > U(127), U(255), U(0))
        out = out | np.where(digit & U(8), sign, byte) << U(8 * i)
    return out


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
OF_VALUES: dict[str, Callable[..., Words]] = {
    "and": lambda _, __, x, y: x & y,
    "or": lambda _, __, x, y: x | y,
    "xor": lambda _, __, x, y: x ^ y,
    "not": lambda _, __, x: ~x,
    "neg": lambda _, __, x: U(0) - x,
    "cvta": lambda _, __, x: x,  # all memory is in one space
    "cvt": lambda kind, parts, x: Kind.of(parts[-2]).low(kind.number(x).view(U)),
    "min": lambda kind, _, x, y: np.where(kind.number(x) < kind.number(y), x, y),
    "max": lambda kind, _, x, y: np.where(kind.number(x) < kind.number(y), y, x),
    "setp": lambda kind, parts, x, y: COMPARISONS[parts[1]](kind.number(x), kind.number(y)).astype(U),
    "selp": lambda _, __, x, y, chosen: np.where(chosen != 0, x, y),
    "mul": multiply,
    "div": divide,
    "rem": divide,
    "shl": shift,
    "shr": shift,
    "bfi": insert_field,
    "prmt": choose_bytes,
    "clz": count_bits,
    "popc": count_bits,
}
"""Functions of a type, the words of an instruction's name, and operands, to a register cut to its width."""


@dataclass(frozen=True)
class Instruction:
    """One statement of PTX."""

    text: str
    guard: str
    """The predicate under which it runs, ``!`` before it where that is not to hold; may be empty."""
    parts: tuple[str, ...]
    """The name and its modifiers: ``("madc", "hi", "cc", "u32")``."""
    operands: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "Instruction":
        found = re.fullmatch(r"(?:@(!?[%\w]+)\s+)?([\w.:]+)\s*(.*)", text, re.DOTALL)
        assert found is not None, text
        operands = re.findall(r"\{[^}]*\}|\[[^]]*\]|[^\s,]+", found[3])
        return cls(text, found[1] or "", tuple(found[2].split(".")), tuple(operands))

    @property
    def kind(self) -> Kind:
        return Kind.of(self.parts[-1])

    @property
    def turn(self) -> int:
        """Order among waiting threads: a higher turn waits until no thread has a lower one."""
        return 2 if self.parts[:2] == ("bar", "sync") else int("sync" in self.parts)


def unknown(instruction: Instruction) -> NotImplementedError:
    return NotImplementedError(f"the instruction {instruction.text} of PTX")


class Kernel:
    """A kernel of a text of PTX."""

    def __init__(self, text: str, name: str) -> None:
        text = re.sub(r"//[^\n]*", "", text)
        found = re.search(rf"\.entry {name}\((.*?)\)[^{{]*\{{\n(.*?)\n\}}\n", text, re.DOTALL)
        assert found is not None, f"no kernel {name}"
        self.parameters = re.findall(r"\.param [^,]*?(\w+)(?:\[\d+\])?\s*(?:,|$)", found[1])
        constants = r"\.(?:global|const) \.align \d+ \.\w(\d+) (\w+)(?:\[\d+\])? = ([^;]*);"
        self.constants = {
            place: np.array([int(x) for x in re.findall(r"-?\d+", given)]).astype(f"u{int(bits) // 8}")
            for bits, place, given in re.findall(constants, text)
        }
        self.shared, self.local = (
            arrays(text[: text.index(".entry")] + found[2], s) for s in ("shared", "local")
        )
        self.bits = {
            name: Kind.of(kind).bits
            for kind, names in re.findall(r"\.reg \.([bsup]\w+)\s+([^;]*);", found[2])
            for name in re.findall(r"%?[a-zA-Z]\w*", names)
        }
        self.code: list[Instruction] = []
        self.labels: dict[str, int] = {}
        for statement in found[2].split(";"):
            rest = statement.lstrip("{} \t\n")
            while label := re.match(r"([\w$]+):\s*", rest):
                self.labels[label[1]] = len(self.code)
                rest = rest[label.end() :].lstrip("{} \t\n")
            if rest and not rest.startswith("."):
                self.code.append(Instruction.of(rest.strip()))

    def launch(self, blocks: int, size: int, arguments: Sequence[np.ndarray], dynamic_bytes: int = 0) -> None:
        """Run so many blocks, of so many threads each."""
        with np.errstate(over="ignore"):
            Launch(self, blocks, size, arguments, dynamic_bytes).run()


def arrays(text: str, space: str) -> tuple[dict[str, int], int]:
    """The arrays of a space and where each begins, and the bytes of all but that which a launch sizes."""
    places, end = {}, 0
    for bits, name, count in re.findall(rf"\.{space} \.align \d+ \.\w(\d+) (\w+)(?:\[(\d+)\])?;", text):
        places[name] = end
        end += -(-int(bits) // 8 * int(count or 1) // 16) * 16
    sized_late = re.findall(rf"\.{space} \.align \d+ \.\w\d+ (\w+)\[\];", text)
    return {**places, **dict.fromkeys(sized_late, end)}, end


class Launch:
    """The threads of a launch: their registers by names, a number for each thread, and where each is."""

    def __init__(
        self, kernel: Kernel, blocks: int, size: int, arguments: Sequence[np.ndarray], dynamic_bytes: int
    ) -> None:
        self.kernel = kernel
        count = blocks * size
        self.all = np.arange(count)
        self.block, thread = np.divmod(self.all, size)
        warp, self.lane = np.divmod(thread, LANES)
        self.warp = self.block * -(-size // LANES) + warp
        self.thread_of = np.full((self.warp[-1] + 1, LANES), -1)
        self.thread_of[self.warp, self.lane] = self.all
        everywhere = {"%ntid.x": size, "%nctaid.x": blocks}
        self.values = {"%tid.x": thread, "%ctaid.x": self.block, "%laneid": self.lane}
        self.values |= {name: np.full(count, value) for name, value in everywhere.items()}
        self.memory = [np.frombuffer(argument.tobytes(), np.uint8).copy() for argument in arguments]
        given = dict(zip(kernel.parameters, self.memory, strict=True)) | kernel.constants
        self.values |= {name: np.full(count, data.ctypes.data) for name, data in given.items()}
        (shared, fixed_bytes), (local, local_bytes) = kernel.shared, kernel.local
        self.shared_bytes = fixed_bytes + dynamic_bytes
        self.shared_start = self.place(shared, self.shared_bytes, self.block)
        self.place(local, local_bytes, self.all)
        self.values = {name: value.astype(U) for name, value in self.values.items()}
        self.carry = np.zeros(count, U)
        self.at = np.zeros(count, np.int64)
        self.is_alive = np.ones(count, bool)
        self.runs = self.is_alive
        """The threads that the present instruction is for."""

    def place(self, names: dict[str, int], size: int, owner: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Give each owner's arrays memory; where that of each thread begins."""
        self.memory.append(np.full((int(owner.max()) + 1) * size + 1, 0xA5, np.uint8))
        starts = self.memory[-1].ctypes.data + owner * size
        self.values |= {name: starts + offset for name, offset in names.items()}
        return starts

    def run(self) -> None:
        code = [*self.kernel.code, Instruction.of("exit")]
        order = np.array([i + len(code) * instruction.turn for i, instruction in enumerate(code)])
        while self.is_alive.any():
            here = self.at[np.argmin(np.where(self.is_alive, order[self.at], 3 * len(code)))]
            instruction, here_are = code[here], self.is_alive & (self.at == here)
            self.at[here_are] += 1
            self.runs = here_are & self.condition(instruction.guard)
            if self.runs.any():
                self.step(instruction)

    def step(self, instruction: Instruction) -> None:
        name, operands = instruction.parts[0], instruction.operands
        if "sat" in instruction.parts:
            raise unknown(instruction)
        if name in OF_VALUES:
            kind = instruction.kind
            values = (kind.low(self.value(x)) if i < 2 else self.value(x) for i, x in enumerate(operands[1:]))
            self.set(operands[0], OF_VALUES[name](kind, instruction.parts, *values))
        elif name in OF_THREADS:
            OF_THREADS[name](self, instruction)
        else:
            raise unknown(instruction)

    def value(self, operand: str) -> Words:
        if operand not in self.values:
            is_number = re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", operand)
            value = int(operand.rstrip("U"), 0) % 2**64 if is_number else self.unset(operand)
            self.values[operand] = np.full(len(self.all), value, U)
        return self.values[operand]

    def unset(self, register: str) -> int:
        return UNSET % 2 ** self.width(register)

    def width(self, register: str) -> int:
        bits = self.kernel.bits.get(register) or self.kernel.bits.get(register.rstrip("0123456789"))
        if not bits:
            raise NotImplementedError(f"{register} of PTX")
        return bits

    def ballot(self, votes: npt.NDArray[np.bool_]) -> Words:
        """The lanes of each thread's warp that vote so, as bits."""
        threads = np.where(self.thread_of >= 0, self.thread_of, 0)
        bits = (votes[threads] & (self.thread_of >= 0)).astype(U) << np.arange(LANES, dtype=U)
        return np.bitwise_or.reduce(bits, axis=1)[self.warp]

    def condition(self, guard: str) -> npt.NDArray[np.bool_]:
        if not guard:
            return self.is_alive
        return (self.value(guard.lstrip("!")) != 0) ^ guard.startswith("!")

    def set(self, register: str, value: Words) -> None:
        if register != "_":
            value = value & U(2 ** self.width(register) - 1)
            self.values[register] = np.where(self.runs, value, self.value(register))

    def bytes_at(
        self, operand: str, size: int, parts: Sequence[str]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
        """All memory from the least address of those that run, and where in it each thread's bytes are."""
        name, _, offset = operand.strip("[]").partition("+")
        starts = self.value(name)[self.runs].view(np.int64) + int(offset or 0)
        if "shared" in parts:
            places = starts - self.shared_start[self.runs]
            assert ((places >= 0) & (places + size <= self.shared_bytes)).all(), "beyond shared memory"
        first = int(starts.min())
        space = (ctypes.c_uint8 * (int(starts.max()) - first + size)).from_address(first)
        return np.ctypeslib.as_array(space), (starts - first)[:, None] + np.arange(size)


def listed(operand: str) -> list[str]:
    """One name, or those in braces."""
    return re.findall(r"[^{},\s]+", operand)


def load(threads: Launch, instruction: Instruction) -> None:
    target, source = instruction.operands
    kind, targets = instruction.kind, listed(target)
    size = kind.bits // 8
    memory, places = threads.bytes_at(source, size * len(targets), instruction.parts)
    found = memory[places].view(f"u{size}")
    for i, name in enumerate(targets):
        values = np.zeros(len(threads.all), U)
        values[threads.runs] = found[:, i]
        threads.set(name, kind.number(values).view(U))


def store(threads: Launch, instruction: Instruction) -> None:
    target, source = instruction.operands
    size, sources = instruction.kind.bits // 8, listed(source)
    memory, places = threads.bytes_at(target, size * len(sources), instruction.parts)
    data = np.stack([threads.value(name)[threads.runs] for name in sources], axis=1)
    memory[places] = data.astype(f"u{size}").view(np.uint8)


def move(threads: Launch, instruction: Instruction) -> None:
    """Move a value; values in braces are joined into one, or one is split into them."""
    target, source = instruction.operands
    targets, sources = listed(target), listed(source)
    bits = instruction.kind.bits // max(len(targets), len(sources))
    kind = Kind(bits, signed=False)
    total = np.zeros(len(threads.all), U)
    for i, name in enumerate(sources):
        total = total | (kind.low(threads.value(name)) if len(sources) > 1 else threads.value(name)) << U(
            i * bits
        )
    for i, name in enumerate(targets):
        threads.set(name, total >> U(i * bits) if bits < 64 else total)


def add(threads: Launch, instruction: Instruction) -> None:
    """Sums, differences, and sums with products, with carries in and out; a borrow is a carry of one."""
    parts, kind = instruction.parts, instruction.kind
    name = parts[0].removesuffix("c")
    x, *more = (threads.value(operand) for operand in instruction.operands[1:])
    sum_kind = Kind(kind.bits * 2, kind.signed) if "wide" in parts else kind
    if name == "mad":
        x = multiply(kind, parts, kind.low(x), kind.low(more[0]))
    x, y = sum_kind.low(x), sum_kind.low(~more[-1] if name == "sub" else more[-1])
    given = threads.carry if parts[0].endswith("c") else np.zeros_like(x)
    given = U(1) - given if name == "sub" else given
    part = sum_kind.low(x + y)
    total = sum_kind.low(part + given)
    if "cc" in parts:
        carry = ((part < x) | (total < part)).astype(U)
        threads.carry = np.where(threads.runs, U(1) - carry if name == "sub" else carry, threads.carry)
    threads.set(instruction.operands[0], total)


def branch(threads: Launch, instruction: Instruction) -> None:
    threads.at[threads.runs] = threads.kernel.labels[instruction.operands[0]]


def leave(threads: Launch, instruction: Instruction) -> None:  # noqa: ARG001
    threads.is_alive = threads.is_alive & ~threads.runs


def wait(threads: Launch, instruction: Instruction) -> None:
    """Others that wait elsewhere, when none can go on, would wait for ever."""
    if instruction.parts == ("bar", "warp", "sync"):
        assert_lanes(threads, threads.value(instruction.operands[0]), instruction)
    elif instruction.parts != ("bar", "sync"):
        raise unknown(instruction)
    else:
        missing = threads.is_alive & ~threads.runs & np.isin(threads.block, threads.block[threads.runs])
        assert not missing.any(), f"a barrier that not all threads of a block reach: {instruction.text}"


def assert_lanes(threads: Launch, lanes: Words, instruction: Instruction) -> None:
    """All that a mask names are here, if they live."""
    missing = lanes & threads.ballot(threads.is_alive) & ~threads.ballot(threads.runs)
    assert not missing[threads.runs].any(), f"lanes are missing at {instruction.text}"


def vote(threads: Launch, instruction: Instruction) -> None:
    target, condition, lanes = instruction.operands
    assert_lanes(threads, threads.value(lanes), instruction)
    here = threads.ballot(threads.runs) & threads.value(lanes)
    found = threads.ballot(threads.condition(condition)) & here
    what = {"ballot": found, "any": found != 0, "all": found == here}
    threads.set(target, what[instruction.parts[2]].astype(U))


def shuffle(threads: Launch, instruction: Instruction) -> None:
    target, *operands = instruction.operands
    value, operand, clamp, lanes = (threads.value(x) for x in operands)
    assert_lanes(threads, lanes, instruction)
    by, limit = (operand & U(31)).astype(np.int64), (clamp & U(31)).astype(np.int64)
    segment, lane = (clamp >> U(8) & U(31)).astype(np.int64), threads.lane
    first = lane & segment
    last = first | limit & ~segment
    mode = instruction.parts[2]
    source = {"idx": first | by & ~segment, "up": lane - by, "down": lane + by, "bfly": lane ^ by}[mode]
    is_there = source >= last if mode == "up" else source <= last
    source = threads.thread_of[threads.warp, np.where(is_there, source, lane)]
    assert (threads.runs[source] & (source >= 0))[threads.runs].all(), f"from no lane: {instruction.text}"
    for name, found in zip(target.split("|"), (value[source], is_there.astype(U)), strict=False):
        threads.set(name, found)


def atomic(threads: Launch, instruction: Instruction) -> None:
    """One thread after the other."""
    target, place, source = instruction.operands
    combine = next((to for name, to in ATOMIC.items() if name in instruction.parts), None)
    if combine is None:
        raise unknown(instruction)
    kind, runs = instruction.kind, threads.runs
    memory, places = threads.bytes_at(place, kind.bits // 8, instruction.parts)
    number = np.dtype(f"{'i' if kind.signed else 'u'}{kind.bits // 8}")
    given, old = threads.value(source)[runs].astype(number), np.zeros(len(threads.all), U)
    for at, thread, new in zip(places, np.flatnonzero(runs), given, strict=True):
        held = memory[at].view(number)
        old[thread] = held.astype(np.int64).view(U)[0] if kind.signed else held[0]
        memory[at] = combine(held, new).view(np.uint8)
    threads.set(target, old)


ATOMIC: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum, "add": np.add}

OF_THREADS: dict[str, Callable[[Launch, Instruction], None]] = {
    "ld": load,
    "st": store,
    "atom": atomic,
    "mov": move,
    **dict.fromkeys(("add", "addc", "sub", "subc", "mad", "madc"), add),
    "bra": branch,
    **dict.fromkeys(("ret", "exit"), leave),
    "bar": wait,
    "vote": vote,
    "shfl": shuffle,
}
"""Instructions that need more of a thread than its operands."""
