"""Versions of metadata documents, by which readers see that an array has changed."""

import hashlib
from dataclasses import dataclass
from typing import Any

from rnsdask.core.errors import ChangedStoreError
from rnsdask.store.location import METADATA_KEY, Location


@dataclass(frozen=True)
class Version:
    """A metadata document as a reader opened it: another one stands there once the array has changed.

    Attributes
    ----------
    document : str
        SHA-256 of the document.
    moment : tuple or None
        What tells when it was written; None where the content alone tells one store from another, as it does
        but in those of versions of the package that kept no hash of the chunks in it.
    hash : str
        SHA-256 of the document and of when it was written, whatever it tells.
    """

    document: str
    moment: tuple[Any, ...] | None
    hash: str

    @classmethod
    def read(cls, location: Location, metadata: bytes, tells_content: bool) -> "Version":
        """Remember a document that has been read just now; FileNotFoundError if it is gone."""
        moment = location.version(METADATA_KEY)
        whole = _hash(metadata + repr(moment).encode())
        return cls(_hash(metadata), None if tells_content else _told(location, moment), whole)

    def is_of(self, metadata: bytes) -> bool:
        """Whether it is a document of this content."""
        return _hash(metadata) == self.document

    def check(self, location: Location) -> None:
        """Raise ChangedStoreError unless the document at a place is the same still.

        Whoever overwrites a store changes its metadata before any chunk of it. So a chunk that was read
        before this belongs to the document.
        """
        try:
            metadata = location.read_metadata()
            unchanged = self.is_of(metadata)
            if unchanged and self.moment is not None:
                unchanged = _told(location, location.version(METADATA_KEY)) == self.moment
        except FileNotFoundError:
            raise ChangedStoreError(f"{location.path}: it was removed since it was opened") from None
        if not unchanged:
            raise ChangedStoreError(
                f"{location.path}: it was overwritten, or its metadata changed, since it was opened"
            )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _told(location: Location, moment: tuple[Any, ...]) -> tuple[Any, ...]:
    # Not the inode: some networks' file systems number files anew on each machine.
    return moment[:2] if location.is_local else moment
