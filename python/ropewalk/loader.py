"""Which files the dynamic loader would load for a program: ld.so(8)'s rules, without running it.

The order for each library that an object needs: DT_RPATH of the object and of those that brought it
(only where the object has no DT_RUNPATH), LD_LIBRARY_PATH, the object's DT_RUNPATH, ld.so.cache,
the default folders. A name with a slash is a path.
"""

import os
import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import elf

Parents = Sequence[tuple[elf.Elf, str]]  # facts and folders of those that brought an object

_CACHE = "/etc/ld.so.cache"
# The layout is that of glibc's dl-cache.h: the header of 48 bytes and entries of 24 that every
# version since 2.2 reads.
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_MOST_LIBRARIES = 4000  # of one program; a bound on what a strange file can cost


@dataclass(frozen=True)
class Library:
    """A name that some object needs, and the file it leads to."""

    name: str
    path: str | None  # None: not found


@dataclass
class _Object:
    path: str
    facts: elf.Elf
    parents: Parents = ()


def read_cache(path: str) -> dict[str, list[str]]:
    """{soname: [paths]} of ld.so.cache, as `ldconfig -p` prints it, in its order; {} if none.

    Read here because ldconfig is not on an ordinary user's PATH, and each start would pay for it.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return {}
    begin = data.find(_CACHE_MAGIC)
    if begin < 0:
        return {}
    found: dict[str, list[str]] = {}
    try:
        (count,) = struct.unpack_from("<I", data, begin + 20)
        for index in range(count):
            _, name, value = struct.unpack_from("<iII", data, begin + 48 + index * 24)
            found.setdefault(_text(data, begin + name), []).append(_text(data, begin + value))
    except (struct.error, ValueError):
        pass
    return found


def _text(data: bytes, offset: int) -> str:
    return os.fsdecode(data[offset : data.index(b"\0", offset)])


def default_folders() -> Sequence[str]:
    multiarch = f"{os.uname().machine}-linux-gnu"
    return (
        f"/lib/{multiarch}",
        f"/usr/lib/{multiarch}",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )


def _expand(folder: str, origin: str) -> str:
    """$ORIGIN, $LIB and $PLATFORM, with or without braces."""
    values = {"ORIGIN": origin, "LIB": "lib64", "PLATFORM": os.uname().machine}
    for name, value in values.items():
        folder = folder.replace("${" + name + "}", value).replace("$" + name, value)
    return folder


class Loader:
    """Searches as the loader does in an environment; the cache is read when it is first needed."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        cache: str | None = None,
        folders: Sequence[str] | None = None,
    ) -> None:
        environment = os.environ if environment is None else environment
        text = environment.get("LD_LIBRARY_PATH", "").replace(";", ":")
        self._library_path = [one or "." for one in text.split(":")] if text else []
        self._cache_path = cache or _CACHE
        self._cache: dict[str, list[str]] | None = None
        self._folders = default_folders() if folders is None else folders
        self._facts: dict[str, elf.Elf | None] = {}

    def _read(self, path: str) -> elf.Elf | None:
        if path not in self._facts:
            self._facts[path] = elf.read(path) if os.path.isfile(path) else None
        return self._facts[path]

    def find(
        self,
        name: str,
        wanted: elf.Machine | None = None,
        facts: elf.Elf | None = None,
        origin: str = "/",
        parents: Parents = (),
    ) -> str | None:
        """The file that `name` leads to for an object with these facts, or None. A file of another
        machine is passed over, as the loader does."""
        for path in self._places(name, facts, origin, parents):
            other = self._read(path)
            if other is not None and (wanted is None or other.machine == wanted):
                return path
        return None

    def _places(
        self, name: str, facts: elf.Elf | None, origin: str, parents: Parents
    ) -> Iterator[str]:
        if "/" in name:
            yield _expand(name, origin)
            return
        runpath = facts.runpath if facts else ()
        if not runpath:
            chain = [(facts, origin), *parents] if facts else parents
            for one, folder in chain:
                if not one.runpath:
                    yield from (os.path.join(_expand(f, folder), name) for f in one.rpath)
        yield from (os.path.join(_expand(f, origin), name) for f in self._library_path)
        yield from (os.path.join(_expand(f, origin), name) for f in runpath)
        if self._cache is None:
            self._cache = read_cache(self._cache_path)
        yield from self._cache.get(name, ())
        yield from (os.path.join(folder, name) for folder in self._folders)

    def closure(self, path: str) -> list[Library]:
        """All libraries of the program in `path`, breadth first as they are loaded: each name
        once."""
        facts = self._read(path)
        if facts is None:
            return []
        found: list[Library] = []
        seen: set[str] = set()
        waiting = deque([_Object(path, facts)])
        while waiting and len(found) < _MOST_LIBRARIES:
            one = waiting.popleft()
            origin = os.path.dirname(os.path.realpath(one.path))
            for name in one.facts.needed:
                if name in seen:
                    continue
                library = self.find(name, facts.machine, one.facts, origin, one.parents)
                seen.add(name)
                found.append(Library(name, library))
                other = self._read(library) if library else None
                if library and other:
                    waiting.append(_Object(library, other, [(one.facts, origin), *one.parents]))
        return found
