"""Which shared libraries a program names: the DT_NEEDED entries of an ELF file, nothing more."""

import mmap
import struct

_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB = 1, 5


def needed(path):
    """Sonames that `path` is linked to; [] for scripts and anything that is no 64-bit ELF."""
    try:
        with open(path, "rb") as file:
            if file.read(6) != b"\x7fELF\x02\x01":  # 64 bits, little endian
                return []
            with mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as data:
                return _needed(data)
    except (OSError, ValueError, struct.error, IndexError):
        return []


def _needed(data):
    (header_offset,) = struct.unpack_from("<Q", data, 32)
    entry_bytes, entries = struct.unpack_from("<HH", data, 54)
    loads, dynamic = [], None
    for index in range(entries):
        kind, _, offset, address, _, file_bytes = struct.unpack_from(
            "<IIQQQQ", data, header_offset + index * entry_bytes
        )
        if kind == _PT_LOAD:
            loads.append((address, offset, file_bytes))
        elif kind == _PT_DYNAMIC:
            dynamic = (offset, file_bytes)
    if dynamic is None:
        return []
    tags = list(struct.iter_unpack("<qQ", data[dynamic[0] : sum(dynamic)]))
    strings = next((value for tag, value in tags if tag == _DT_STRTAB), 0)
    base = next((o + strings - a for a, o, size in loads if a <= strings < a + size), None)
    if base is None:
        return []
    names = []
    for tag, value in tags:
        if tag == _DT_NEEDED:
            end = data.find(b"\0", base + value)
            names.append(data[base + value : end].decode(errors="replace"))
    return names
