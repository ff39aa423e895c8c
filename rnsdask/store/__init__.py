"""Stores: arrays of numbers on disk, as Zarr arrays that name their number system.

The format is described in ``docs/store-format.md``. Zarr reads and writes all metadata. Chunks with the
default codecs on a local disk are read and written as files; all others go through Zarr's codecs.
"""

from rnsdask.store.appending import append as append
from rnsdask.store.bound import check_bound_is_writable as check_bound_is_writable
from rnsdask.store.bound import write_bound as write_bound
from rnsdask.store.identity import Identity as Identity
from rnsdask.store.job import job_of as job_of
from rnsdask.store.location import Location as Location
from rnsdask.store.metadata import StoreInfo as StoreInfo
from rnsdask.store.nesting import check_file_outside_arrays as check_file_outside_arrays
from rnsdask.store.opening import Kind as Kind
from rnsdask.store.opening import all_systems as all_systems
from rnsdask.store.opening import load_any as load_any
from rnsdask.store.opening import open_info as open_info
from rnsdask.store.output import Decision as Decision
from rnsdask.store.output import Output as Output
from rnsdask.store.paths import StorePath as StorePath
from rnsdask.store.paths import component_of as component_of
from rnsdask.store.paths import create_parents as create_parents
from rnsdask.store.paths import locate as locate
from rnsdask.store.paths import locate_to_write as locate_to_write
from rnsdask.store.plain import PlainInfo as PlainInfo
from rnsdask.store.plain import PlainWriter as PlainWriter
from rnsdask.store.plain import create_plain as create_plain
from rnsdask.store.plain import is_plain as is_plain
from rnsdask.store.plain import load_plain as load_plain
from rnsdask.store.plain import open_any_array as open_any_array
from rnsdask.store.plain import open_plain as open_plain
from rnsdask.store.plain import read_plain_chunk as read_plain_chunk
from rnsdask.store.plain import resume_plain as resume_plain
from rnsdask.store.reading import read_chunk as read_chunk
from rnsdask.store.reading import read_chunk_on_gpu as read_chunk_on_gpu
from rnsdask.store.reading import read_corner as read_corner
from rnsdask.store.reading import read_part as read_part
from rnsdask.store.reading import verify as verify
from rnsdask.store.space import check_can_write as check_can_write
from rnsdask.store.space import check_room as check_room
from rnsdask.store.target import exists as exists
from rnsdask.store.target import remove as remove
from rnsdask.store.target import settle as settle
from rnsdask.store.target import state as state
from rnsdask.store.writing import ArrayWriter as ArrayWriter
from rnsdask.store.writing import StoreWriter as StoreWriter
from rnsdask.store.writing import create as create
from rnsdask.store.writing import resume as resume
