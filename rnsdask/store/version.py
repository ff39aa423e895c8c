"""Versions of metadata documents, by which readers see that an array has changed."""

import hashlib
from dataclasses import dataclass
from typing import Any

from rnsdask.core.errors import ChangedStoreError
from rnsdask.store.location import METADATA_KEY, Location


@dataclass(frozen=True)
class Version:
    """Identity of a metadata document as a reader opened it; any change of the array replaces the document.

    Attributes
    ----------
    document : str
        SHA-256 of the document.
    moment : tuple or None
        Marks of when it was written; None where the content alone identifies the store, as in all documents
        with a hash of the chunks, which old versions of the package lack.
    hash : str
        SHA-256 of the document and of the marks of when it was written.
    """

    document: str
    moment: tuple[Any, ...] | None
    hash: str

    @classmethod
    def read(cls, location: Location, metadata: bytes, tells_content: bool) -> "Version":
        """Return the version of a document that has just been read; FileNotFoundError if it is gone."""
        moment = location.version(METADATA_KEY)
        whole = _hash(metadata + repr(moment).encode())
        return cls(_hash(metadata), None if tells_content else _marks_of(location, moment), whole)

    def is_of(self, metadata: bytes) -> bool:
        """Whether the document has this content."""
        return _hash(metadata) == self.document

    def check(self, location: Location) -> None:
        """Raise ChangedStoreError unless the document at a place is unchanged.

        A job that overwrites a store changes its metadata before any chunk. So a chunk that was read before
        this check belongs to the document.
        """
        try:
            metadata = location.read_metadata()
            unchanged = self.is_of(metadata)
            if unchanged and self.moment is not None:
                unchanged = _marks_of(location, location.version(METADATA_KEY)) == self.moment
        except FileNotFoundError:
            raise ChangedStoreError(f"{location.path}: it was removed since it was opened") from None
        if not unchanged:
            raise ChangedStoreError(
                f"{location.path}: it was overwritten, or its metadata changed, since it was opened"
            )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _marks_of(location: Location, moment: tuple[Any, ...]) -> tuple[Any, ...]:
    # Not the inode: some network file systems number files differently on each machine.
    return moment[:2] if location.is_local else moment
