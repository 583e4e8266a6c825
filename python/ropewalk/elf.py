"""What an ELF file says of itself: its machine, the libraries it needs and where it looks for them,
and which names it defines. Read from the file alone; nothing is started or loaded.
"""

import mmap
import os
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

Path = str | os.PathLike[str]
Machine = tuple[int, int, int]  # e_ident's class and byte order, e_machine
T = TypeVar("T")

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_SHT_SYMTAB, _SHT_DYNSYM = 2, 11
_SYMBOL_BYTES = 24  # sizeof(Elf64_Sym)


@dataclass(frozen=True)
class Elf:
    """The facts of one file; searched folders as they are written, `$ORIGIN` and all."""

    machine: Machine  # what two files must share
    interpreter: str | None = None  # None: no loader runs for it (a library, or a static program)
    needed: tuple[str, ...] = ()
    rpath: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()


def read(path: Path) -> Elf | None:
    """The facts of `path`, or None if it is no ELF file. Only 64-bit little-endian files have more
    than their machine looked at."""
    return _with_data(path, _read)


def needed(path: Path) -> list[str]:
    """Sonames that `path` is linked to; [] for scripts and anything that is no 64-bit ELF."""
    found = read(path)
    return list(found.needed) if found else []


def defined(path: Path, names: Iterable[str]) -> set[str]:
    """Those of `names` that the file defines for itself or for others (its symbol tables)."""
    return _with_data(path, lambda data: _defined(data, names)) or set()


def undefined(path: Path, names: Iterable[str]) -> set[str]:
    """Those of `names` that the file uses and expects others to define."""
    return _with_data(path, lambda data: _defined(data, names, wanted=False)) or set()


def _with_data(path: Path, function: Callable[[mmap.mmap], T]) -> T | None:
    try:
        with (
            open(path, "rb") as file,
            mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data,
        ):
            return function(data) if data[:4] == b"\x7fELF" else None
    except (OSError, ValueError, struct.error, IndexError):
        return None


def _is_readable(data: mmap.mmap) -> bool:
    return data[4:6] == b"\x02\x01"


def _read(data: mmap.mmap) -> Elf:
    order = "<" if data[5] == 1 else ">"
    machine = (data[4], data[5], struct.unpack_from(order + "H", data, 18)[0])
    if not _is_readable(data):
        return Elf(machine)
    try:
        return _read_dynamic(data, machine)
    except (struct.error, IndexError):  # cut off
        return Elf(machine)


def _read_dynamic(data: mmap.mmap, machine: Machine) -> Elf:
    (header_offset,) = struct.unpack_from("<Q", data, 32)
    entry_bytes, entries = struct.unpack_from("<HH", data, 54)
    loads, dynamic, interpreter = [], None, None
    for index in range(entries):
        kind, _, offset, address, _, file_bytes = struct.unpack_from(
            "<IIQQQQ", data, header_offset + index * entry_bytes
        )
        if kind == _PT_LOAD:
            loads.append((address, offset, file_bytes))
        elif kind == _PT_DYNAMIC:
            dynamic = (offset, file_bytes)
        elif kind == _PT_INTERP:
            interpreter = _string(data, offset)
    if dynamic is None:
        return Elf(machine, interpreter)
    tags = list(struct.iter_unpack("<qQ", data[dynamic[0] : sum(dynamic)]))
    strings = next((value for tag, value in tags if tag == _DT_STRTAB), 0)
    base = next((o + strings - a for a, o, size in loads if a <= strings < a + size), None)
    if base is None:
        return Elf(machine, interpreter)

    def texts(wanted: int) -> list[str]:
        return [_string(data, base + value) for tag, value in tags if tag == wanted]

    def folders(wanted: int) -> tuple[str, ...]:
        return tuple(one for text in texts(wanted) for one in text.split(":") if one)

    return Elf(
        machine, interpreter, tuple(texts(_DT_NEEDED)), folders(_DT_RPATH), folders(_DT_RUNPATH)
    )


def _string(data: mmap.mmap, offset: int) -> str:
    end = data.find(b"\0", offset)
    return os.fsdecode(data[offset:end])


def _defined(data: mmap.mmap, names: Iterable[str], wanted: bool = True) -> set[str]:
    if not _is_readable(data):
        return set()
    (sections_offset,) = struct.unpack_from("<Q", data, 40)
    entry_bytes, entries = struct.unpack_from("<HH", data, 58)
    headers = [
        struct.unpack_from("<IIQQQQIIQQ", data, sections_offset + index * entry_bytes)
        for index in range(entries)
    ]
    found: set[str] = set()
    for header in headers:
        if header[1] in (_SHT_SYMTAB, _SHT_DYNSYM) and header[6] < len(headers):
            found |= _defined_in(data, header, headers[header[6]], set(names) - found, wanted)
    return found


def _defined_in(
    data: mmap.mmap,
    table: tuple[int, ...],
    strings: tuple[int, ...],
    names: Iterable[str],
    wanted: bool,
) -> set[str]:
    """Names are looked for in the strings first: most files have none of them, and tables are
    long. A name may be the end of another's string (MPI_Init in PMPI_Init)."""
    places = {}
    begin, end = strings[4], strings[4] + strings[5]
    for name in names:
        text = name.encode() + b"\0"
        place = data.find(text, begin, end)
        while place >= 0:
            places[place - begin] = name
            place = data.find(text, place + 1, end)
    if not places:
        return set()
    symbols = data[table[4] : table[4] + table[5] // _SYMBOL_BYTES * _SYMBOL_BYTES]
    return {
        places[name]
        for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", symbols)
        if name in places and (section != 0) == wanted
    }
