"""``det``, ``rank`` and ``solve`` of a sparse matrix in a file, modulo primes."""

from pathlib import Path
from typing import Any

import click

from rnsdask.cli.commands import refuse, refusing
from rnsdask.cli.derivations import derive
from rnsdask.cli.moduli import read_fields
from rnsdask.cli.options import Connection
from rnsdask.cli.printing import answer, cost_text, counted, echo, print_json

primes_option = click.option(
    "--primes", metavar="P,P,...", help="With a file of a sparse matrix, .mtx or .sms: modulo these primes."
)


def is_file(path: str) -> bool:
    """Whether a path is a matrix in a file, for a store is a folder or elsewhere."""
    return Path(path).is_file()


def print_results(
    operation: str,
    path: str,
    primes: str | None,
    *,
    connection: Connection,
    backend: str,
    progress: bool,
    as_json: bool,
    **others: Any,
) -> None:
    """Print what a function of a sparse matrix gives modulo primes; the other options must not be given."""
    if not is_file(path):
        refuse(f"--primes is for a file of a sparse matrix, which {path} is not")
    if primes is None:
        refuse(f"{path} is a file and no store: of a sparse matrix in it, --primes says modulo which primes")
    if any(others.pop("mode").values()) or any(others.values()):
        refuse(
            "results with --primes are printed: -o, --variables, --checkpoint and options of moduli are "
            "not for them"
        )
    fields = read_fields(primes, None, None)
    assert fields is not None
    from rnsdask.core.integer_text import to_decimal
    from rnsdask.jobs import sparse as job
    from rnsdask.jobs.cost import measured
    from rnsdask.jobs.memory_plan import fitting
    from rnsdask.sparse import read
    from rnsdask.sparse.files import measure

    shape, entries = measure(path)
    work = job.work_of(operation, shape, entries, fields)
    with connection(work) as client, fitting(work, client, backend=backend):
        matrix = read(path)
        how: dict[str, Any] = {"backend": backend, "progress": progress}
        with measured() as cost, refusing():
            found = job.results_of(operation, Path(path), matrix, fields, client, **how)
    nbytes = Path(path).stat().st_size
    cost.record(operation, matrix.nnz, nbytes)
    if as_json:
        values = {"value": found[0]} if operation == "det" else {"values": found}
        about = {"source": path, "shape": matrix.shape, "moduli": list(fields.primes)}
        print_json({"op": operation, **about, **values, **cost.as_dict(), "bytes_read": nbytes})
        return
    if operation == "det":
        answer(f"det of {path}", to_decimal(found[0]))
    else:
        echo(*(f"{prime}\t{value}" for prime, value in zip(fields.primes, found, strict=True)))
    if progress:
        echo(f"({counted(matrix.nnz, 'entries')}, {cost_text(nbytes, cost)})", err=True)


def solve(a: str, b: str, output: str | None, options: dict[str, Any]) -> None:
    """Write the solution of equations whose matrix is sparse, in a file, to a new store."""
    job = {"mode", "connection", "backend", "progress", "as_json"}
    if any(value for name, value in options.items() if name not in job):
        refuse(
            f"{a} is a file of a sparse matrix: --any, --modulo, --denominators, --checkpoint and options "
            "of moduli are not for it"
        )
    if output is None:
        refuse(f"{a} is a file of a sparse matrix: the solutions go to a new store, -o STORE")
    import hashlib

    from rnsdask.jobs import sparse as job_of
    from rnsdask.sparse import read
    from rnsdask.sparse import solve as solution
    from rnsdask.sparse.dense import fits
    from rnsdask.sparse.files import measure

    with Path(a).open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    shape, entries = measure(a)
    matrix = read(a)
    derive(
        "solve",
        [b],
        output,
        lambda x: solution(matrix, x),
        of_fields=True,
        matrix=content,
        memory=lambda _: job_of.memory_of(shape, entries, fits(shape)),
        **{name: options[name] for name in job},
    )
