"""Places that obstore reaches, which Zarr's ``ObjectStore`` wraps."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import obstore  # type: ignore[import-not-found, unused-ignore]

from rnsdask.store.access import access_error
from rnsdask.store.location import Location, reaching

_URLS = {"S3Store": ("s3", "bucket"), "GCSStore": ("gs", "bucket"), "AzureStore": ("az", "container_name")}


def from_obstore(store: Any) -> "str | ObjectLocation":
    """Return the place of a store of obstore; for its ``LocalStore``, the local path."""
    kind = type(store).__name__
    if kind == "LocalStore":
        if store.prefix is None:
            raise ValueError("obstore's LocalStore must have a prefix: the store's folder")
        return str(store.prefix)
    return ObjectLocation(_url(store, kind), store)


def _url(store: Any, kind: str) -> str:
    """URL of a store of obstore, as fsspec would write it."""
    if kind == "HTTPStore":
        return str(store.url).rstrip("/")
    if kind == "MemoryStore":
        return f"obstore-memory://{id(store):x}"
    scheme, key = _URLS.get(kind, (kind, "bucket"))
    parts = (str(store.config.get(key, "")), store.prefix or "")
    return f"{scheme}://" + "/".join(part.strip("/") for part in parts if part)


@dataclass(frozen=True)
class ObjectLocation(Location):
    """Place in a store of obstore; `prefix` is the folder within it."""

    path: str
    store: Any = field(hash=False, repr=False)  # not shown: it may hold secrets
    prefix: str = ""

    @property
    def parent(self) -> Location | None:
        if not self.prefix:
            return _above(self)
        above = self.prefix.rpartition("/")[0]
        return ObjectLocation(self.path.rpartition("/")[0], self.store, above)

    def child(self, name: str) -> Location:
        return ObjectLocation(f"{self.path}/{name}", self.store, self._key(name))

    def _key(self, name: str) -> str:
        return f"{self.prefix}/{name}" if self.prefix else name

    def kind(self) -> str:
        # Object stores have no folders: a place is one if an object is below it.
        return "folder" if self.lists and self.names() else "nothing"

    def names(self) -> set[str]:
        with reaching(f"{self.path}: it cannot be listed"):
            listed = obstore.list_with_delimiter(self.store, prefix=self.prefix or None)
        found = [*listed["common_prefixes"], *(entry["path"] for entry in listed["objects"])]
        # Some tools mark a folder by an object with its name.
        return {name.rpartition("/")[2] for path in found if (name := path.rstrip("/")) != self.prefix}

    def versions(self) -> dict[str, tuple[Any, ...]]:
        if not self.lists:
            return {}
        named = ((entry["path"][len(self.prefix) :].strip("/"), entry) for entry in self._list(""))
        return {name: _version(entry) for name, entry in named if name}

    def _list(self, name: str) -> Iterator[Any]:
        prefix = self._key(name) if name else self.prefix
        with reaching(f"{self.path}: it cannot be listed"):
            for entries in obstore.list(self.store, prefix=prefix or None):
                yield from entries

    def version(self, name: str) -> tuple[Any, ...]:
        with reaching(f"{self.path}: {name} cannot be read"):
            return _version(obstore.head(self.store, self._key(name)))

    def read(self, name: str, what: str, limit: int) -> bytes:
        with reaching(f"{what} cannot be read"):
            found = obstore.get(self.store, self._key(name))
            if found.meta["size"] <= limit:
                return bytes(found.bytes().to_bytes())
            return bytes(obstore.get_range(self.store, self._key(name), start=0, end=limit + 1).to_bytes())

    def read_end(self, name: str, count: int, what: str) -> bytes:
        size = self.version(name)[0]
        key, part = self._key(name), {"start": max(0, size - count), "length": min(size, count)}
        try:
            content: bytes = obstore.get_range(self.store, key, **part).to_bytes()
        except FileNotFoundError:
            raise
        except Exception as error:  # of any type: obstore has its own
            if type(error).__name__ != "NotSupportedError":
                raise access_error(f"{what} cannot be read", error) from error
            content = self.read(name, what, size)[-count:]  # from a server without range requests
        return content

    def copy(self, name: str, new_name: str, what: str) -> None:
        with reaching(f"{what} cannot be written"):
            obstore.copy(self.store, self._key(name), self._key(new_name))

    def put_file(self, name: str, content: bytes, what: str, *, new: bool) -> None:
        try:
            obstore.put(self.store, self._key(name), content, mode="create" if new else "overwrite")
        except Exception as error:  # of any type: obstore has its own
            if type(error).__name__ == "AlreadyExistsError":
                raise FileExistsError(name) from None
            raise access_error(f"{what} cannot be written", error) from error

    def remove(self, name: str) -> None:
        below = [entry["path"] for entry in self._list(name)]
        with reaching(f"{self.path}: {name} cannot be removed"):
            if self.exists(name):
                below.append(self._key(name))
            if below:
                obstore.delete(self.store, below)


def _above(location: ObjectLocation) -> ObjectLocation | None:
    """Place of the folder above a store of obstore, by its prefix; None without a prefix."""
    store = location.store
    prefix = (getattr(store, "prefix", None) or "").strip("/")
    if not prefix or type(store).__name__ not in _URLS:
        return None
    above = prefix.rpartition("/")[0]
    how = {"config": store.config, "client_options": store.client_options, "retry_config": store.retry_config}
    made = type(store)(prefix=above or None, credential_provider=store.credential_provider, **how)
    return ObjectLocation(location.path.rpartition("/")[0], made)


def _version(entry: Any) -> tuple[Any, ...]:
    return entry["size"], str(entry["e_tag"]), str(entry["last_modified"]), str(entry["version"])
