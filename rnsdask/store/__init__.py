"""Arrays on disk: a Zarr array of residues that says what its moduli set is.

The format is described in ``docs/store-format.md``. Zarr reads and writes all metadata. Chunks of the default
codecs on a local disk are read and written as files; all others go through Zarr's codecs.
"""

from rnsdask.store.location import normalize_path
from rnsdask.store.metadata import StoreInfo, open_info
from rnsdask.store.reading import read_chunk, verify
from rnsdask.store.writing import StoreWriter, create, resume

__all__ = [
    "StoreInfo",
    "StoreWriter",
    "create",
    "normalize_path",
    "open_info",
    "read_chunk",
    "resume",
    "verify",
]
