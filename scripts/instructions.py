#!/usr/bin/env python3
"""Counts the instructions of the hopping term by kind, and what they cost at least.

    scripts/instructions.py [--json ROWS] COMMAND...

COMMAND is one process that applies lattice operators in one thread, such as
`build/release/bench/ropewalk-bench-itt --L 8 --threads 1 --calls 2 --tables summary --rounds 1`. A
few rows of the first call of each kernel of hops are run step by step under ptrace(2), so no
counter of the processor is needed, which virtual machines seldom have, and what is counted is what
was executed: third rows that are computed, and the edges of sub-lattices. objdump says what each
instruction is. Figures are for one output vector, which is a site, or a slice of one, in each
lane. With --json, rows that `ropewalk bench itt --json` wrote on this machine, measured cycles
stand beside. x86-64 only.
"""

import argparse
import collections
import ctypes
import json
import os
import re
import signal
import subprocess
import sys

ROWS = 32  # of vectors that are counted: enough for a mean over inner sites and edges
FLOPS = 1344  # of a site and slice, as Grid counts

# Requests of ptrace (linux/ptrace.h).
TRACEME, PEEK, POKE, CONT, STEP, GETREGS, SETREGS = 0, 1, 4, 7, 9, 12, 13
SETOPTIONS, EXIT_KILL = 0x4200, 1 << 20  # the process ends with us

# Where HopArguments has `inner`, the vectors of a row (lattice/src/kernels/kernels.hpp).
INNER_OFFSET = {"float": 208, "double": 216}

LINKS = {"0": "full", "1": "two rows", "2": "one number for all lanes"}

KINDS = ("multiply-add", "add", "multiply", "shuffle", "load", "store", "prefetch", "other")
ARITHMETIC = KINDS[:3]

# In a cycle: instructions of these kinds on vectors of 512 bits, and instructions of all kinds.
# Intel's units add and multiply (Optimization Reference Manual, "Golden Cove"), AMD's Zen 5 has two
# more for additions (Software Optimization Guide for the Zen5 Microarchitecture).
LIMITS = {
    "Golden Cove": {"arithmetic": 2, "multiply": 2, "shuffle": 1, "load": 2, "store": 1, "all": 6},
    "Zen 5": {"arithmetic": 4, "multiply": 2, "shuffle": 2, "load": 2, "store": 1, "all": 8},
}
FLOPS_OF_A_LANE = 4  # in a cycle: two units of multiply-adds


class Registers(ctypes.Structure):
    """struct user_regs_struct."""

    _fields_ = [
        (name, ctypes.c_ulonglong)
        for name in (
            *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx"),
            *("rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss"),
            *("fs_base", "gs_base", "ds", "es", "fs", "gs"),
        )
    ]


class Traced:
    """A process that is run step by step."""

    def __init__(self, command):
        self._call = ctypes.CDLL(None, use_errno=True).ptrace
        self._call.restype = ctypes.c_long
        self._call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self.process = os.fork()
        if self.process == 0:
            self._call(TRACEME, 0, None, None)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(command[0], command)
        os.waitpid(self.process, 0)
        self.do(SETOPTIONS, None, EXIT_KILL)
        self.ended = False

    def do(self, request, address=None, data=None):
        return self._call(request, self.process, address, data)

    def word(self, address):
        return self.do(PEEK, address) & 0xFFFFFFFFFFFFFFFF

    def registers(self):
        found = Registers()
        self.do(GETREGS, None, ctypes.addressof(found))
        return found

    def set_registers(self, registers):
        self.do(SETREGS, None, ctypes.addressof(registers))

    def patch(self, address, byte):
        """Replaces the byte there; returns what it was."""
        before = self.word(address)
        self.do(POKE, address, before & ~0xFF | byte)
        return before & 0xFF

    def wait(self, request):
        """Goes on until the next trap; other signals are passed on. False at the end."""
        passed = None
        while True:
            self.do(request, None, passed)
            _, status = os.waitpid(self.process, 0)
            if os.WIFEXITED(status) or os.WIFSIGNALED(status):
                self.ended = True
                return False
            if os.WSTOPSIG(status) == signal.SIGTRAP:
                return True
            passed = os.WSTOPSIG(status)

    def base(self, path):
        """Where the first byte of the file is mapped."""
        with open(f"/proc/{self.process}/maps", encoding="ascii") as file:
            lines = [line.split() for line in file if line.rstrip().endswith(path)]
        return int(lines[0][0].split("-")[0], 16)


# ---- what was executed ---------------------------------------------------------------------------


def kernels(path):
    """{offset: (instruction set, precision, links)} of the hops in a program."""
    listed = subprocess.run(["nm", "-C", path], capture_output=True, text=True, check=True).stdout
    pattern = re.compile(
        r"^([0-9a-f]+) t void .*kernels::(\w+)::\(anonymous namespace\)::hop<.*LinkForm\)(\d), "
        r".*HopArguments<(\w+)>"
    )
    found = {}
    for line in listed.splitlines():
        match = pattern.match(line)
        if match:
            found[int(match[1], 16)] = (match[2], match[4], LINKS[match[3]])
    if not found:
        sys.exit(f"instructions.py: {path} has no symbols of hops; give one that is not stripped")
    return found


def executed(command):
    """{(kernel, vectors of a row): (counts of offsets, vectors)} for the first call of each."""
    path = os.path.realpath(command[0])
    wanted = kernels(path)
    traced = Traced([path, *command[1:]])
    base = traced.base(path)
    saved = {base + offset: traced.patch(base + offset, 0xCC) for offset in wanted}
    found = {}
    while traced.wait(CONT):
        registers = traced.registers()
        entry = registers.rip - 1
        if entry not in saved:
            continue
        registers.rip = entry
        isa, real, links = wanted[entry - base]
        inner = traced.word(registers.rdi + INNER_OFFSET[real]) & 0xFFFFFFFF
        key = (isa, real, links, inner)
        if key in found:
            step_over(traced, registers, saved[entry])
            continue
        found[key] = steps_of(traced, registers, saved[entry], base)
    return found


def step_over(traced, registers, byte):
    """Executes the instruction under a breakpoint."""
    traced.patch(registers.rip, byte)
    traced.set_registers(registers)
    traced.wait(STEP)
    traced.patch(registers.rip, 0xCC)


def steps_of(traced, registers, byte, base):
    """Steps through the first rows of a call, then lets it do the rest."""
    entry, first, last = registers.rip, registers.rdx, registers.rcx
    rows = min(ROWS, last - first)
    registers.rcx = first + rows
    traced.patch(entry, byte)
    traced.set_registers(registers)
    counts, now = collections.Counter(), registers
    while now.rsp <= registers.rsp:
        counts[now.rip - base] += 1
        traced.wait(STEP)
        now = traced.registers()
    registers.rdx, registers.rcx = first + rows, last
    traced.set_registers(registers)
    if first + rows < last:
        traced.wait(STEP)
    else:
        traced.set_registers(now)
    traced.patch(entry, 0xCC)
    return counts, rows


def instructions(path):
    """{offset: (mnemonic, operands)} of a program."""
    listed = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for line in listed.splitlines():
        match = re.match(r"\s+([0-9a-f]+):\s+(\S+)\s*([^#<]*)", line)
        if match:
            found[int(match[1], 16)] = (match[2], match[3].strip())
    return found


# ---- kinds and costs -----------------------------------------------------------------------------


def kinds_of(name, operands):
    """The kinds of one instruction: one that takes a vector from memory is a load as well."""
    if name.startswith("prefetch"):
        return ["prefetch"]
    vector = re.search(r"%[xyz]mm", operands) is not None
    memory = "(" in operands
    if not vector:
        return ["other"]
    stores = memory and operands.rstrip().endswith(")")
    if re.match(r"v?movnt|v?mov[au]p|v?movdq|v?movs[sd]|v?broadcast", name):
        return ["store" if stores else "load" if memory else "other"]
    kind = "other"
    for pattern, one in (
        (r"vfn?m(add|sub)", "multiply-add"),
        (r"v?(add|sub)[ps][sd]", "add"),
        (r"v?mul[ps][sd]", "multiply"),
        (r"v?(perm|shuf|unpck|blend|insert|extract|pshuf|align)", "shuffle"),
    ):
        if re.match(pattern, name):
            kind = one
    return [kind, "load"] if memory else [kind]


def per_vector(counts, vectors, known):
    """Instructions of each kind for one output vector, and all of them."""
    sums = collections.Counter()
    for offset, times in counts.items():
        for kind in kinds_of(*known[offset]):
            sums[kind] += times / vectors
        sums["all"] += times / vectors
    return sums


def bounds(sums, limits):
    """Cycles that each resource needs for one output vector."""
    arithmetic = sum(sums[kind] for kind in ARITHMETIC)
    return {
        "arithmetic and shuffles": (arithmetic + sums["shuffle"]) / limits["arithmetic"],
        "multiplications": (arithmetic - sums["add"]) / limits["multiply"],
        "shuffles": sums["shuffle"] / limits["shuffle"],
        "loads": sums["load"] / limits["load"],
        "stores": sums["store"] / limits["store"],
        "front end": sums["all"] / limits["all"],
    }


def measured(rows, key):
    """["L: cycles for a vector", ...] of measured hops by the same kernel."""
    _, real, links, inner = key
    name = {"float": "single", "double": "double"}[real]
    found = []
    for row in rows:
        if row.get("table") != "summary" or row["precision"] != name:
            continue
        lanes = row["vector_lanes"]
        vectors = row["Ls"] // (lanes if row["vectors"] == "fifth" else 1)
        form = "one number for all lanes" if row["vectors"] == "fifth" else row["links"]
        if vectors != inner or form.replace("_", " ").replace("two-row", "two row") != links:
            continue
        ghz = row["peak_gflops"] / (FLOPS_OF_A_LANE * lanes)
        found.append(f"{row['L']}: {FLOPS * lanes / row['gflops'] * ghz:.0f}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", help="rows of `ropewalk bench itt` on this machine")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if not given.command:
        parser.error("COMMAND: none given; write that of a benchmark, as in the heading")
    rows = []
    if given.json:
        with open(given.json, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
    known = instructions(os.path.realpath(given.command[0]))
    heading = ["instruction set", "precision", "links", "vectors a row", *KINDS, "all"]
    heading += [f"least cycles, {name}" for name in LIMITS] + ["L: measured cycles"]
    print("| " + " | ".join(heading) + " |")
    print("|" + " --- |" * len(heading))
    for key, (counts, count) in sorted(executed(given.command).items()):
        sums = per_vector(counts, count * key[3], known)
        cells = [*map(str, key), *(f"{sums[kind]:.0f}" for kind in (*KINDS, "all"))]
        for limits in LIMITS.values():
            bound = bounds(sums, limits)
            by = max(bound, key=bound.get)
            cells.append(f"{bound[by]:.0f} ({by})")
        cells.append(", ".join(measured(rows, key)) or "-")
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
