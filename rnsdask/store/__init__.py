"""Arrays on disk: a Zarr array of residues that says what its moduli set is.

The format is described in ``docs/store-format.md``. Zarr reads and writes all metadata. Chunks of the default
codecs on a local disk are read and written as files; all others go through Zarr's codecs.
"""

from rnsdask.store.device_files import bounce_buffer, gpu_memory, reads_on_gpu
from rnsdask.store.group import (
    GroupInfo,
    GroupWriter,
    create_group,
    describe_group,
    is_group,
    open_group,
    read_group_chunk,
    verify_group,
)
from rnsdask.store.location import Location
from rnsdask.store.metadata import StoreInfo, open_info
from rnsdask.store.paths import StorePath, locate
from rnsdask.store.plain import PlainWriter, create_plain, exists, resume_plain
from rnsdask.store.reading import (
    fingerprint,
    read_chunk,
    read_chunk_on_gpu,
    read_part,
    split_axis,
    verify,
)
from rnsdask.store.writing import ArrayWriter, StoreWriter, create, resume

__all__ = [
    "ArrayWriter",
    "GroupInfo",
    "GroupWriter",
    "Location",
    "PlainWriter",
    "StoreInfo",
    "StorePath",
    "StoreWriter",
    "bounce_buffer",
    "create",
    "create_group",
    "create_plain",
    "describe_group",
    "exists",
    "fingerprint",
    "gpu_memory",
    "is_group",
    "locate",
    "open_group",
    "open_info",
    "read_chunk",
    "read_chunk_on_gpu",
    "read_group_chunk",
    "read_part",
    "reads_on_gpu",
    "resume",
    "resume_plain",
    "split_axis",
    "verify",
    "verify_group",
]
