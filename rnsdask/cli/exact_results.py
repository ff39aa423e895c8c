"""Commands of linear algebra and ``resultant``: exact results, printed or written to stores."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import product
from typing import TYPE_CHECKING, Any

import click

from rnsdask.cli import sparse
from rnsdask.cli.commands import Command, refuse
from rnsdask.cli.derivations import derive
from rnsdask.cli.integers import Integer
from rnsdask.cli.options import (
    Connection,
    check_store_path,
    checkpoint_option,
    complete_path,
    digits_option,
    joined,
    moduli_options,
    moduli_set,
    processor_job_options,
    store_argument,
    with_mode,
)
from rnsdask.cli.printing import (
    CommandError,
    answer,
    cost_text,
    counted,
    echo,
    number_text,
    print_json,
    remark,
    size_text,
    tell_derived,
    tell_done,
)
from rnsdask.core.ways import Message

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rnsdask.core.moduli import ModuliSet
    from rnsdask.jobs.cost import Cost
    from rnsdask.jobs.elimination import Elimination
    from rnsdask.jobs.exact_results import Problem
    from rnsdask.jobs.sources import Source
    from rnsdask.jobs.writing import Transfer

_output = click.option(
    "-o",
    "--output",
    shell_complete=complete_path,
    metavar="STORE",
    help="New store of the results, which are not printed.",
)

_with_results = joined(
    _output, moduli_options, with_mode, checkpoint_option, digits_option, processor_job_options
)
"""The options of :func:`_compute`."""


def _of_matrices(name: str, title: str, description: str) -> click.Command:
    """Make the command of a function of matrices."""

    @click.command(name, cls=Command, help=f"{title}\n\n{description}")
    @store_argument
    @_with_results
    def command(path: str, **options: Any) -> None:
        _compute(name, [path], _of_matrix(name), **options)

    return command


@click.command(cls=Command)
@store_argument
@click.option(
    "--variables",
    type=Integer(0, 1),
    metavar="0|1",
    default=0,
    show_default=True,
    help="With 1, of matrices of polynomials in one variable.",
)
@sparse.primes_option
@_with_results
def det(path: str, variables: int, primes: str | None, **options: Any) -> None:
    """Print the determinants of the square matrices in STORE.

    They are exact. Matrices are along the last two axes. With --variables 1 the coefficients of polynomials
    are along the last axis, ascending, and matrices along the two before it.

    With --primes, STORE is a file of a sparse matrix, and its determinant one modulo the product of the
    primes.
    """
    if primes is not None or sparse.is_file(path):
        sparse.print_results("det", path, primes, variables=variables, **options)
        return
    about = {"variables": variables} if variables else {}
    _compute("det", [path], _of_matrix("det", **about), about=about, **options)


@click.command(cls=Command)
@store_argument
@sparse.primes_option
@_with_results
def rank(path: str, primes: str | None, **options: Any) -> None:
    """Print the ranks of the matrices in STORE.

    Matrices are along the last two axes. Elements of fields have ranks modulo each prime.

    With --primes, STORE is a file of a sparse matrix, of which one line for each prime is printed. A rank
    that is neither the number of rows nor that of columns is too small with a probability of 2**-30, by
    estimate, and never too great.
    """
    if primes is not None or sparse.is_file(path):
        sparse.print_results("rank", path, primes, **options)
        return
    _compute("rank", [path], _of_matrix("rank"), **options)


_denominators = click.option(
    "--denominators",
    metavar="STORE",
    shell_complete=complete_path,
    help="With -o, of integers: a new store of the denominators.",
)


@click.command(cls=Command)
@store_argument
@_with_results
@_denominators
def rref(path: str, **options: Any) -> None:
    """Print the reduced row echelon forms of the matrices in STORE.

    Matrices are along the last two axes, of any shape and rank. Pivots are 1, and the rest of their columns
    0. Forms of integers are rational numbers: numerators, and one denominator for each matrix.
    """

    def function(array: Any) -> Any:
        from rnsdask import linalg

        *form, _ = linalg.rref(array)  # pivots are seen in the form
        return form[0] if len(form) == 1 else tuple(form)

    _compute("rref", [path], function, **options)


@click.command(cls=Command)
@store_argument
@_with_results
def nullspace(path: str, **options: Any) -> None:
    """Print bases of the nullspaces of the matrices in STORE.

    They are the columns of matrices, of which there are as many as the rank leaves: matrices of one rank.
    Null vectors of integers have no common factor.
    """
    _compute("nullspace", [path], _of_matrix("nullspace"), **options)


@click.command(cls=Command)
@click.argument("a", metavar="A", shell_complete=complete_path)
@click.argument("b", metavar="B", shell_complete=complete_path)
@_with_results
@_denominators
@click.option(
    "--any",
    "of_any",
    is_flag=True,
    help="Take matrices of any shape and rank, and find the solution that is 0 in free columns.",
)
@click.option(
    "--modulo",
    type=Integer(2),
    metavar="M",
    multiple=True,
    help="Solve for integers modulo M, or modulo the product of several, which are coprime.",
)
def solve(a: str, b: str, of_any: bool, modulo: tuple[int, ...], **options: Any) -> None:
    """Print the solutions X of A X = B, exact, for square matrices.

    Matrices are along the last two axes. B is one vector, or matrices. Solutions for integers are rational
    numbers: numerators, and one denominator for each matrix. With --modulo they are integers from 0 to M - 1.

    A may be a file of a sparse matrix of any shape and rank, .mtx or .sms, and B elements of prime fields:
    then a solution goes to the store -o.
    """
    if sparse.is_file(a):
        sparse.solve(a, b, options.pop("output"), {**options, "of_any": of_any, "modulo": modulo})
        return
    if modulo and (of_any or options["denominators"]):
        refuse("--any and --denominators are not for --modulo, which solves square matrices for integers")
    how: dict[str, Any] = {"modulo": modulo} if modulo else {"unique": False} if of_any else {}
    about = {"modulo": [hex(factor) for factor in modulo]} if modulo else how
    _compute("solve", [a, b], _of_matrix("solve", **how), about=about, **options)


@click.command(cls=Command)
@click.argument("f", metavar="F", shell_complete=complete_path)
@click.argument("g", metavar="G", shell_complete=complete_path)
@click.option(
    "--variables",
    type=Integer(1, 2),
    metavar="1|2",
    default=1,
    show_default=True,
    help="With 2, polynomials in x and y, and y is eliminated.",
)
@_with_results
def resultant(f: str, g: str, variables: int, **options: Any) -> None:
    """Print the resultants of the polynomials in F and G.

    Coefficients are along the last axis, ascending. With --variables 2, that of y**i x**j is at (i, j) of the
    last two axes, and resultants are polynomials in x.
    """

    def function(*arrays: Any) -> Any:
        from rnsdask.poly import resultant

        return resultant(*arrays, variables=variables)

    _compute("resultant", [f, g], function, about={"variables": variables}, **options)


def _of_matrix(name: str, **options: Any) -> Callable[..., Any]:
    """A function of linear algebra."""

    def function(*arrays: Any) -> Any:
        from rnsdask import linalg

        return getattr(linalg, name)(*arrays, **options)

    return function


def _compute(
    operation: str,
    paths: Sequence[str],
    function: Callable[..., Any],
    *,
    output: str | None,
    bits: int | None,
    modulus_bits: int | None,
    moduli_file: str | None,
    mode: dict[str, bool],
    checkpoint: str | None,
    denominators: str | None = None,
    about: dict[str, Any] | None = None,
    **options: Any,
) -> None:
    """Apply a function to the arrays of stores; print the results, or write them to new stores.

    `about` is all else that the results depend on.
    """
    about_moduli = (bits, modulus_bits, moduli_file)
    wants_moduli = about_moduli != (None, None, None)
    if output is None and (any(mode.values()) or denominators or wants_moduli):
        refuse("--denominators, --overwrite, --resume and options of moduli need -o")
    from rnsdask.core import rows
    from rnsdask.jobs.sources import OF_NUMBERS, Source

    moduli = moduli_set(*about_moduli) if wants_moduli else None
    sources = [Source.at(path, OF_NUMBERS) for path in paths]
    of_fields = rows.divide_by.name in sources[0].info.system.table
    if of_fields and (wants_moduli or denominators):
        refuse("--denominators and options of moduli are for integers; these are elements of fields")
    great = None
    if of_fields and (output is not None or operation not in ("rref", "nullspace")):
        from rnsdask.jobs import elimination

        great = elimination.prepare(operation, sources, options["backend"], about or {})
    if of_fields and checkpoint is not None and great is None:
        refuse(
            "--checkpoint is for integers, and for one matrix over prime fields in several chunks, "
            "of more than 1024 rows and columns; rref and nullspace of that need -o"
        )
    if checkpoint is not None and operation == "nullspace" and great is None:
        refuse("--checkpoint of nullspace is for elements of prime fields")
    are_rational = operation in ("rref", "solve") and not of_fields and "modulo" not in (about or {})
    if are_rational and (output is None) != (denominators is None):
        refuse("results over the rationals are two stores: give -o and --denominators, or neither")

    def compute(connection: Connection, backend: str | None = None) -> None:
        how = {**options, "connection": connection, "backend": backend or options["backend"]}
        if output is not None and of_fields and operation != "rank":
            _derive(operation, sources, output, function, mode=mode, **(about or {}), **how)
        else:
            targets = [path for path in (output, denominators) if path is not None]
            how |= {"about": about or {}, "checkpoint": checkpoint}
            _compute_integers(operation, sources, function, targets, moduli, mode, **how)

    if great is None and operation == "nullspace":
        _after_ranks(sources[0], compute, options["connection"], options["backend"])
    elif great is None:
        compute(options["connection"])
    else:
        how = {name: option for name, option in options.items() if name != "backend"}  # the matrix has it
        _compute_in_panels(great, output, mode, compute, checkpoint=checkpoint, **how)


def _after_ranks(
    source: "Source",
    compute: Callable[[Connection], None],
    connection: Connection,
    backend: str,
) -> None:
    """Compute what needs ranks before it can be planned, within the memory that ranks take."""
    from rnsdask.jobs.exact_results import prepare
    from rnsdask.jobs.memory_plan import fitting

    try:
        work = prepare("rank", [source], _of_matrix("rank"), backend).work
    except ValueError as error:
        refuse(Message(f"nullspace of {source.path}: ", error))
    with connection(work) as client, fitting(work, client, backend=backend):
        compute(lambda _: nullcontext(client))


def _derive(
    operation: str,
    sources: "list[Source]",
    output: str,
    function: Callable[..., Any],
    *,
    mode: dict[str, bool],
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
    **about: Any,
) -> None:
    """Write results over fields, which are a lazy array, to a new store."""
    from rnsdask.jobs.exact_results import chunks_of, computing, plan_in_blocks

    infos = [source.info for source in sources]
    how: dict[str, Any] = {
        "of_fields": True,
        "read_in": lambda source: chunks_of(operation, source, backend, about),
        "plan": lambda *arrays: plan_in_blocks(operation, infos, *arrays),
        "memory": lambda array, *_: {"passes": computing(operation, array)},
    }
    how |= {"connection": connection, "backend": backend, "progress": progress, "as_json": as_json}

    def in_an_array(*arrays: Any) -> Any:
        found = function(*arrays)
        is_one = found.ndim == 0  # but a store has at least one axis
        return function(arrays[0][None], *arrays[1:]) if is_one else found

    derive(operation, [source.path for source in sources], output, in_an_array, mode=mode, **how, **about)


def _compute_in_panels(
    great: "Elimination",
    output: str | None,
    mode: dict[str, bool],
    otherwise: Callable[..., None],
    *,
    checkpoint: str | None,
    connection: Connection,
    progress: bool,
    as_json: bool,
) -> None:
    """Eliminate one great matrix panel by panel, with a working store, or `otherwise` where memory holds it.

    Workers share a matrix in their memory.
    """
    from rnsdask.jobs import elimination as job
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.store import Decision

    if output is not None:
        check_store_path(output)
    written = job.output_of(great, output, **mode)
    if written is not None and written.check() is Decision.DONE:
        job.remove_working(written)
        tell_done(great.operation, {"output": str(output)}, as_json)
        return
    with connection(great.work_in_memory) as client:
        if client is not None and checkpoint is not None:
            refuse("--checkpoint of a matrix of elements of fields is for the threads of this process alone")
        group = 0 if client is not None else great.choose(written, checkpoint)
        if not group:
            otherwise(lambda _: nullcontext(client), None if client else great.backend)
            if written is not None:
                job.remove_working(written)
            return
        with fitting(great.work(group), backend=great.backend), measured() as cost:
            done = job.run(great, written, group, checkpoint=checkpoint, progress=progress)
    problem, transfer = done.problem, done.transfer
    cost.record(great.operation, problem.size, problem.nbytes)
    if done.values:
        _tell(problem, done.values, {str(output): transfer} if transfer else {}, cost, progress, as_json)
    elif transfer:
        paths = [source.path for source in great.sources]
        between = {"read": done.working.bytes_read, "written": done.working.bytes_written}
        fields: dict[str, Any] = {"shape": done.shape, "bytes_between": between}
        tell_derived(great.operation, paths, str(output), transfer, cost, as_json, **fields)


def _compute_integers(
    operation: str,
    sources: "list[Source]",
    function: Callable[..., Any],
    targets: list[str],
    moduli: "ModuliSet | None",
    mode: dict[str, bool],
    *,
    about: dict[str, Any],
    checkpoint: str | None,
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
) -> None:
    """Compute results as Python ints; print them, or write each array to a new store."""
    from rnsdask.cluster.failures import describe
    from rnsdask.jobs import exact_results as job
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.store import Decision

    for target in targets:
        check_store_path(target)
    try:
        problem = job.prepare(operation, sources, function, backend, **about)
    except (TypeError, ValueError) as error:
        refuse(Message(f"{operation} of {' '.join(source.path for source in sources)}: ", error))
    outputs = job.outputs_of(problem, targets, moduli, **mode)
    decisions = [output.check() for output in outputs]
    if targets and all(decision is Decision.DONE for decision in decisions):
        tell_done(operation, dict(zip(("output", "denominators"), targets, strict=False)), as_json)
        return
    with (
        connection(problem.work) as client,
        fitting(problem.work, client, backend=backend),
        measured() as cost,
    ):
        values = job.integers(problem, client, progress=progress, checkpoint=checkpoint)
        failure, done = "", []
        try:
            done = job.write_integers(values, moduli, outputs, client)
        except Exception as error:  # of any type, so that the work is not lost
            failure, targets = describe(error), []
    cost.record(operation, problem.size, problem.nbytes)
    _tell(problem, values, dict(zip(targets, done, strict=True)), cost, progress, as_json)
    if failure:
        raise CommandError(Message(failure, "; the results are not stored, but printed on standard output"))


def _tell(
    problem: "Problem",
    values: "list[NDArray[np.object_]]",
    written: "dict[str, Transfer]",
    cost: "Cost",
    progress: bool,
    as_json: bool,
) -> None:
    """Print results that are not in stores, and totals of what was read and written."""
    if as_json:
        _print_json(problem, values, list(written), cost)
        return
    work = f"{size_text(problem.nbytes)} read ({cost_text(problem.nbytes, cost)})"
    for target, transfer in written.items():
        amount = f"{counted(transfer.count, 'integers')}, {size_text(transfer.bytes_written)}"
        remark(f"{target}: {amount}; {work}")
    if not written:
        _print(problem, values)
        if progress:  # standard output holds only results
            echo(f"({work})", err=True)


def _print_json(
    problem: "Problem", values: "list[NDArray[np.object_]]", targets: list[str], cost: "Cost"
) -> None:
    """Print a JSON object: results as nested lists of texts, unless they are in stores."""
    from rnsdask.jobs.exact_results import texts

    names: tuple[str, ...] = ("numerators", "denominators")
    if len(values) == 1:
        names = ("values" if values[0].ndim else "value",)
    results: dict[str, Any] = {name: texts(found) for name, found in zip(names, values, strict=True)}
    if targets:
        results = dict(zip(("output", "denominators"), targets, strict=False))
    paths = [source.path for source in problem.sources]
    named = {"store": paths[0]} if len(paths) == 1 else {"stores": paths}
    fields = {"op": problem.operation, **named, "shape": values[0].shape, **results}
    print_json({**fields, **cost.as_dict(), "bytes_read": problem.nbytes})


def _print(problem: "Problem", values: "list[NDArray[np.object_]]") -> None:
    """Print each result on a line after its index, a single one after its kind."""
    from rnsdask.jobs.exact_results import fractions

    found = fractions(values)
    if not found.ndim:
        answer(f"{problem.operation} of {problem.sources[0].path}", found.item())
        return
    for index in product(*map(range, found.shape)):
        echo(f"{','.join(map(str, index))}\t{number_text(found[index])}")


EXACT_RESULTS = (
    det,
    rank,
    _of_matrices(
        "charpoly",
        "Print the characteristic polynomials of the matrices in STORE.",
        "They are det(z - A) of the matrices A along the last two axes, the coefficient of z**0 first.",
    ),
    rref,
    nullspace,
    solve,
    resultant,
)
