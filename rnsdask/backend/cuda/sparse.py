"""Products of sparse matrices with blocks of vectors."""

import cupy

from rnsdask.backend.cuda import launching
from rnsdask.backend.cuda.launching import Parameter, modulus_table_on
from rnsdask.backend.cuda.layout import SPARSE, WARP
from rnsdask.backend.cuda.wide import wide_table_on
from rnsdask.backend.protocol import Array, Moduli, SparseRows
from rnsdask.core.wide_moduli import WideModuli


def sparse_matmul(a: SparseRows, x: Array, moduli: Moduli, out: Array) -> None:
    planes, rows, width = out.shape
    if out.size == 0:
        return
    entries = a.values.shape[-1]
    lanes = min(WARP, 1 << (width - 1).bit_length())
    # As many threads as a row has entries, or a warp.
    parts = min(WARP // lanes, 1 << max(0, (entries // rows).bit_length() - 1))
    device = cupy.cuda.runtime.getDevice()
    if isinstance(moduli, WideModuli):
        prefix, table = "wide_", wide_table_on(moduli, device)
    else:
        prefix, table = "", modulus_table_on(moduli, device)
    task = Parameter(
        SPARSE,
        starts=a.starts,
        columns=a.columns,
        values=a.values,
        x=x,
        out=out,
        moduli=table,
        moduli_count=len(moduli),
        planes=planes,
        rows=rows,
        terms=x.shape[1],
        width=width,
        entries=entries,
        lanes=lanes,
        parts=parts,
    )
    name = prefix + ("sparse_signed" if a.values.ndim == 1 else "sparse_residues")
    launching.launch("sparse", name, planes * rows * -(-width // lanes) * lanes * parts, (task,))
