"""Arrays on disk: a Zarr array of residues that says what its moduli set is.

The format is described in ``docs/store-format.md``. Zarr reads and writes all metadata. Chunks of the default
codecs on a local disk are read and written as files; all others go through Zarr's codecs.
"""

from rnsdask.store.appending import append as append
from rnsdask.store.bound import check_bound_is_writable as check_bound_is_writable
from rnsdask.store.bound import write_bound as write_bound
from rnsdask.store.device_files import reads_on_gpu as reads_on_gpu
from rnsdask.store.group import GroupInfo as GroupInfo
from rnsdask.store.group import describe_group as describe_group
from rnsdask.store.group import is_group as is_group
from rnsdask.store.group import open_group as open_group
from rnsdask.store.group_reading import fingerprint_group as fingerprint_group
from rnsdask.store.group_reading import read_group_chunk as read_group_chunk
from rnsdask.store.group_reading import verify_group as verify_group
from rnsdask.store.group_writing import GroupWriter as GroupWriter
from rnsdask.store.group_writing import create_group as create_group
from rnsdask.store.group_writing import resume_group as resume_group
from rnsdask.store.hierarchy import component_of as component_of
from rnsdask.store.hierarchy import create_parents as create_parents
from rnsdask.store.job import begun_by as begun_by
from rnsdask.store.job import is_completed_by as is_completed_by
from rnsdask.store.job import job_of as job_of
from rnsdask.store.location import Location as Location
from rnsdask.store.metadata import StoreInfo as StoreInfo
from rnsdask.store.metadata import open_info as open_info
from rnsdask.store.paths import StorePath as StorePath
from rnsdask.store.paths import locate as locate
from rnsdask.store.plain import PlainWriter as PlainWriter
from rnsdask.store.plain import create_plain as create_plain
from rnsdask.store.plain import describe_plain as describe_plain
from rnsdask.store.plain import exists as exists
from rnsdask.store.plain import open_any_array as open_any_array
from rnsdask.store.plain import resume_plain as resume_plain
from rnsdask.store.plain_reading import PlainInfo as PlainInfo
from rnsdask.store.plain_reading import is_plain as is_plain
from rnsdask.store.plain_reading import open_plain as open_plain
from rnsdask.store.plain_reading import read_plain_chunk as read_plain_chunk
from rnsdask.store.reading import fingerprint as fingerprint
from rnsdask.store.reading import read_chunk as read_chunk
from rnsdask.store.reading import read_chunk_on_gpu as read_chunk_on_gpu
from rnsdask.store.reading import read_part as read_part
from rnsdask.store.reading import split_axis as split_axis
from rnsdask.store.reading import verify as verify
from rnsdask.store.space import check_can_write as check_can_write
from rnsdask.store.space import check_room as check_room
from rnsdask.store.target import check_can_begin as check_can_begin
from rnsdask.store.target import remove as remove
from rnsdask.store.target import settle as settle
from rnsdask.store.target import state as state
from rnsdask.store.writing import ArrayWriter as ArrayWriter
from rnsdask.store.writing import StoreWriter as StoreWriter
from rnsdask.store.writing import create as create
from rnsdask.store.writing import resume as resume
