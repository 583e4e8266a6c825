"""NERSC files against a reader and a writer of their own, in NumPy.

    nersc_numpy.py COMMAND...

COMMAND is nersc_program with its launcher. What it writes is read here, and what is written here it
reads; in every format, bit for bit where the format has the bits. Exits with 77 without NumPy.
"""

import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("no NumPy in this Python: skipped")
    sys.exit(77)

EXTENTS = (4, 2, 6, 4)  # x, y, z, t
FLOATS = {"IEEE32BIG": ">f4", "IEEE32": "<f4", "IEEE32LITTLE": "<f4"}
FLOATS |= {"IEEE64BIG": ">f8", "IEEE64": "<f8", "IEEE64LITTLE": "<f8"}
ROWS = {"4D_SU3_GAUGE": 2, "4D_SU3_GAUGE_3x3": 3}
SINGLE = 3e-7  # rounding of single precision, in links and their means
DOUBLE = 1e-13


def complete(rows: np.ndarray) -> np.ndarray:
    """[..., 2, 3] to [..., 3, 3]."""
    third = np.cross(rows[..., 0, :], rows[..., 1, :]).conj()
    return np.concatenate([rows, third[..., None, :]], axis=-2)


def plaquette(links: np.ndarray) -> float:
    """Mean of Re tr P / 3; links are [t, z, y, x, mu, row, column]."""
    total = 0.0
    for mu in range(4):
        for nu in range(mu):
            a, b = links[..., mu, :, :], links[..., nu, :, :]
            up = np.roll(b, -1, axis=3 - mu)
            right = np.roll(a, -1, axis=3 - nu)
            loop = a @ up @ (b @ right).conj().swapaxes(-1, -2)
            total += np.trace(loop, axis1=-2, axis2=-1).real.mean() / 3
    return total / 6


def link_trace(links: np.ndarray) -> float:
    return float(np.trace(links, axis1=-2, axis2=-1).real.mean() / 3)


def checksum(data: np.ndarray) -> int:
    """Sum of the 32-bit words, of numbers in this machine's byte order."""
    words = data.astype(data.dtype.newbyteorder("=")).view(np.uint32)
    return int(words.sum(dtype=np.uint64)) & 0xFFFFFFFF


def read(path: pathlib.Path) -> tuple[dict[str, str], np.ndarray]:
    raw = path.read_bytes()
    head, data = raw.split(b"END_HEADER\n", 1)
    lines = head.decode("ascii").splitlines()
    assert lines[0] == "BEGIN_HEADER"
    fields = dict(line.split(" = ", 1) for line in lines[1:])
    shape = tuple(int(fields[f"DIMENSION_{d}"]) for d in (4, 3, 2, 1))
    numbers = np.frombuffer(data, FLOATS[fields["FLOATING_POINT"]])
    assert checksum(numbers) == int(fields["CHECKSUM"], 16), path
    pairs = numbers.reshape(*shape, 4, ROWS[fields["DATATYPE"]], 3, 2).astype("f8")
    links = pairs[..., 0] + 1j * pairs[..., 1]
    return fields, complete(links[..., :2, :]) if links.shape[-2] == 2 else links


def write(path: pathlib.Path, links: np.ndarray, datatype: str, floating: str) -> None:
    rows = links[..., : ROWS[datatype], :]
    numbers = np.stack([rows.real, rows.imag], -1).astype(FLOATS[floating]).ravel()
    fields = {"HDR_VERSION": "1.0", "DATATYPE": datatype, "STORAGE_FORMAT": "1.0"}
    fields |= {f"DIMENSION_{d + 1}": str(n) for d, n in enumerate(EXTENTS)}
    fields |= {"LINK_TRACE": f"{link_trace(links):.10g}", "PLAQUETTE": f"{plaquette(links):.10g}"}
    fields |= {f"BOUNDARY_{d}": "PERIODIC" for d in range(1, 5)}
    fields |= {"CHECKSUM": f"{checksum(numbers):x}", "ENSEMBLE_ID": "numpy"}
    fields |= {"SEQUENCE_NUMBER": "1", "FLOATING_POINT": floating}
    header = "".join(f"{key} = {value}\n" for key, value in fields.items())
    path.write_bytes(f"BEGIN_HEADER\n{header}END_HEADER\n".encode() + numbers.tobytes())


def random_links(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    shape = (*EXTENTS[::-1], 4, 3, 3)
    unitary, _ = np.linalg.qr(random.normal(size=shape) + 1j * random.normal(size=shape))
    return complete(unitary.swapaxes(-1, -2)[..., :2, :])


def close(a: np.ndarray | float, b: np.ndarray | float, tolerance: float, what: object) -> None:
    error = float(np.abs(a - b).max())
    assert error <= tolerance, f"{what}: off by {error:.3g}, at most {tolerance:.3g}"


def tolerance_of(floating: str) -> float:
    return SINGLE if FLOATS[floating].endswith("4") else DOUBLE


def check_written(command: list[str], folder: pathlib.Path) -> None:
    """Its files, read here."""
    extents = ".".join(map(str, EXTENTS))
    subprocess.run([*command, "write", extents, str(folder / "own")], check=True, timeout=100)
    paths = sorted(folder.glob("own.*"))
    assert len(paths) == 8, paths
    _, best = read(folder / "own.3.64big")
    unit = best @ best.conj().swapaxes(-1, -2)
    close(unit, np.eye(3), DOUBLE, "unitarity")
    close(np.linalg.det(best), 1.0, DOUBLE, "determinant")
    for path in paths:
        fields, links = read(path)
        bound = tolerance_of(fields["FLOATING_POINT"])
        close(links, best, bound, path)
        close(float(fields["PLAQUETTE"]), plaquette(links), bound, path)
        close(float(fields["LINK_TRACE"]), link_trace(links), bound, path)


def check_read(command: list[str], folder: pathlib.Path) -> None:
    """Files from here, read and written again by it."""
    links = random_links(3)
    paths = {}
    for datatype in ROWS:
        for floating in FLOATS:
            path = folder / f"numpy.{datatype}.{floating}"
            write(path, links, datatype, floating)
            paths[path] = floating
    extents = ".".join(map(str, EXTENTS))
    names = [str(path) for path in paths]
    subprocess.run([*command, "copy", extents, *names], check=True, timeout=100)
    for path, floating in paths.items():
        fields, copy = read(path.with_name(path.name + ".copy"))
        assert fields["FLOATING_POINT"] == "IEEE64BIG"
        close(copy, links, tolerance_of(floating), path)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="nersc-numpy-") as name:
        check_written(sys.argv[1:], pathlib.Path(name))
        check_read(sys.argv[1:], pathlib.Path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
