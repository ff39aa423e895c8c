"""The command ``random``, which makes a store of random integers."""

import math
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli.commands import DRAWN_SEED, Command, refuse, refusing
from rnsdask.cli.integers import NOT_NEGATIVE, POSITIVE
from rnsdask.cli.moduli import field_options, read_fields
from rnsdask.cli.options import (
    Connection,
    check_store_path,
    integer_system,
    job_options,
    moduli_options,
    new_store,
    positional_option,
    read_shape,
    with_creation,
)
from rnsdask.cli.printing import cost_text, counted, is_done, print_json, remark, size_text
from rnsdask.core.messages import note

if TYPE_CHECKING:
    from rnsdask.core.number_system import NumberSystem


@click.command(cls=Command, short_help="Make a store of random integers.")
@new_store
@click.option("-n", "--count", type=POSITIVE, metavar="N", help="How many integers, such as 1000000 or 1e6.")
@click.option("--shape", metavar="R,C,...", help="Lengths of several axes, instead of --count.")
@moduli_options
@positional_option
@field_options
@click.option(
    "--max-bits",
    type=POSITIVE,
    metavar="B",
    help="Only integers of at most B bits in magnitude, under moduli that hold longer ones.",
)
@click.option("--seed", type=NOT_NEGATIVE, help="Seed of the generator.  [default: drawn and printed]")
@with_creation
@job_options
def random(
    path: str,
    count: int | None,
    shape: str | None,
    bits: int | None,
    modulus_bits: int | None,
    moduli_file: str | None,
    positional: bool,
    primes: str | None,
    ntt_length: int | None,
    max_bits: int | None,
    seed: int | None,
    signed: bool,
    chunks: Any,
    mode: dict[str, bool],
    connection: Connection,
    progress: bool,
    as_json: bool,
) -> None:
    """Write uniform random integers to a new STORE; the same seed and chunk give the same bytes.

    With --bits B they are from 0 to 2**B - 1; with --signed, below 2**(B-1) in magnitude. With --moduli, they
    fill the whole range. Without --seed, a seed is drawn and printed on standard error at once: --resume
    needs it, and it repeats the numbers.
    """
    check_store_path(path)
    lengths = _lengths(count, shape)
    from rnsdask.arrays import creation
    from rnsdask.core.layout import ChunkPlan
    from rnsdask.jobs import memory_plan
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.hashes import job_hash
    from rnsdask.jobs.writing import write_array
    from rnsdask.lazy.chunks import store_chunks
    from rnsdask.store import Output, check_room, locate

    fields = read_fields(primes, ntt_length, bits)
    if fields is None:
        system = _system(positional, bits, modulus_bits, moduli_file, signed, max_bits)
    else:
        system = fields
        if (
            positional
            or signed
            or any(option is not None for option in (modulus_bits, moduli_file, max_bits))
        ):
            refuse("fields exclude --moduli, --modulus-bits, --max-bits, --signed and --positional")
    is_told = seed is None
    if seed is None:
        if mode.get("resume"):
            raise click.UsageError("--resume needs --seed, the one that the store was begun with")
        seed = click.get_current_context().meta[DRAWN_SEED] = creation.fresh_seed()
    if not mode.get("resume"):  # before chunks are planned: disks hold less than graphs do
        check_room({locate(path): math.prod(lengths) * system.rows * system.word_dtype.itemsize})
    with refusing():
        array = creation.random(system, lengths, seed=seed, chunks=store_chunks(chunks, lengths, system.rows))
    work = memory_plan.describe("random", [system], ChunkPlan.longest(array.words.chunks[1:]))
    about = {"shape": lengths, "chunks": array.words.chunksize[1:], "system": system}
    output = Output(path, job_hash("random", {}, seed=seed, **about), **mode)
    if is_done("random", output, as_json):
        return
    options: dict[str, Any] = {"progress": progress}
    if is_told:  # before the job, which can be resumed only with the same seed
        options["begun"] = lambda: note(f"rnsdask: seed {seed}")
    with connection(work) as client, memory_plan.fitting(work, client), measured() as cost:
        transfer = write_array(array, output, client, **options)
    cost.record("random", array.size, array.nbytes, seed=seed)
    if as_json:
        print_json({"op": "random", "store": path, "seed": seed, **transfer.as_dict(), **cost.as_dict()})
    else:
        size, time_taken = size_text(array.nbytes), cost_text(array.nbytes, cost)
        kind = "limbs" if positional else "residues"
        what = "random integers" if fields is None else "random elements"
        remark(f"{path}: {counted(array.size, what)}, {size} of {kind} ({time_taken}){transfer.resumed_text}")


def _lengths(count: int | None, shape: str | None) -> tuple[int, ...]:
    """Lengths of the axes, from whichever of the two options is given."""
    if (count is None) == (shape is None):
        refuse("give either --count or --shape")
    lengths = read_shape(shape) or (count or 0,)
    if not all(lengths):
        refuse(f"--shape must have positive lengths, got {shape}")
    return lengths


def _system(
    positional: bool,
    bits: int | None,
    modulus_bits: int | None,
    moduli_file: str | None,
    signed: bool,
    max_bits: int | None,
) -> "NumberSystem":
    """Make the number system, with the bound of numbers of the given bits."""
    system = integer_system(positional, bits, modulus_bits, moduli_file, signed)
    if positional:
        if max_bits is not None:
            refuse("--max-bits is for residues: numbers of --positional are of the whole range")
        return system
    if max_bits is None:
        return system if bits is None else system.with_bound((1 << bits - signed) - 1)
    longest = (system.value_range[1] + 1).bit_length() - 1
    if max_bits > longest:
        refuse(f"--max-bits must be at most {longest}, for the moduli set and its range; got {max_bits}")
    return system.with_bound((1 << max_bits) - 1)
