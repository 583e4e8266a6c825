"""What `ropewalk doctor` prints: tables on a terminal, plain lines otherwise, or JSON."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import numa
from ..hugepages import readable, size_name
from ..options import Parser
from . import judge
from .judge import Facts, Finding

Lines = Iterator[tuple[str, str]]
Section = tuple[str, list[tuple[str, str]]]

_FEATURES = {
    "madv_collapse": "2 MiB pages without a pool (MADV_COLLAPSE)",
    "hugetlb_memfd": "2 MiB pages of the pool (memfd)",
    "madv_populate_write": "first touch without SIGBUS (MADV_POPULATE_WRITE)",
    "memfd_seals": "sealed memory (F_SEAL_SHRINK)",
    "pagemap_scan": "page sizes in one call (PAGEMAP_SCAN)",
    "cma": "copies between ranks (process_vm_readv)",
    "pidfd_getfd": "memory shared between ranks (pidfd_getfd)",
    "xpmem": "private memory attached between ranks (XPMEM, optional)",
}


EXAMPLES = (
    ("ropewalk doctor", "tables on a terminal, plain lines in a pipe"),
    ("ropewalk doctor --quick --json", "for programs, without starting an MPI"),
)


@dataclass
class DoctorOptions:
    json: bool = False
    quick: bool = False


def parser() -> Parser:
    made = Parser(
        "ropewalk doctor",
        "What this machine gives, and for each shortfall its consequence and its remedy. Kernel "
        "features are tried, not looked up; each MPI is started with one rank.",
        "ropewalk doctor [--json] [--quick]",
        examples=EXAMPLES,
        statuses=(("0", "whatever was found"), ("2", "the command line was wrong")),
    )
    made.add_argument("--json", action="store_true", help="write one JSON object instead of text")
    made.add_argument(
        "--quick",
        action="store_true",
        help="start no MPI, so its version and thread level are not told",
    )
    return made


def main(words: Sequence[str]) -> int:
    options = parser().parse_args(words, namespace=DoctorOptions())
    facts = judge.collect(run_mpi=not options.quick, tell=_tell)
    findings = judge.judge(facts)
    if options.json:
        print(json.dumps({**facts, "findings": findings}, indent=2))
    elif sys.stdout.isatty():
        _print_tables(sections(facts), findings)
    else:
        _print_plain(sections(facts), findings)
    return 0


def _tell(what: str) -> None:
    """Shows on standard error what is waited for: a start takes 0.2 to 2 s."""
    sys.stderr.write(f"-- {what}\n")
    sys.stderr.flush()


def sections(facts: Facts) -> list[Section]:
    """[(title, [(label, value)])], the same for both kinds of output."""
    return [
        ("Machine", list(_machine(facts))),
        ("Pages", list(_pages(facts))),
        ("Kernel features, tried", list(_features(facts))),
        ("Limits", list(_limits(facts))),
        ("MPI", list(_mpi(facts))),
        ("Drop-in", list(_drop_in(facts))),
        ("Network", list(_network(facts))),
    ]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _machine(facts: Facts) -> Lines:
    processor = facts["processor"]
    yield "processor", processor["model"]
    allowed, threads = processor["cores_allowed"], processor["hardware_threads_allowed"]
    quota = processor["quota_cores"]
    yield (
        "cores",
        (
            f"{_count(allowed, 'core')}, {_count(threads, 'hardware thread')} of "
            f"{processor['hardware_threads']}"
            + (f", control group allows {quota:g}" if quota is not None else "")
        ),
    )
    for cache in facts["caches"]:
        yield (
            f"L{cache['level']} cache",
            (f"{readable(cache['bytes'])}, shared by {_count(cache['shared_by'], 'thread')}"),
        )
    yield from _numa(facts["numa"])
    limit = facts["memory"]["cgroup_limit_bytes"]
    if limit is not None:
        yield "memory limit", f"{readable(limit)} (control group)"
    yield "kernel", f"Linux {facts['kernel']} {facts['architecture']}"


def _numa(nodes: list[Facts]) -> Lines:
    divided = numa.nodes_per_package(nodes)
    if divided > 1:
        yield "NUMA mode", f"{divided} nodes in a processor (Intel calls it SNC, AMD NPS)"
    for node in nodes:
        yield f"NUMA node {node['node']}", ", ".join(_of_node(node, nodes))


def _of_node(node: Facts, nodes: list[Facts]) -> Iterator[str]:
    yield numa.kind(node, nodes) or f"cpus {node['cpus']}"
    yield readable(node["memory_bytes"])
    yield f"{readable(node['free_bytes'])} free"
    if len(nodes) > 1 and node["distances"]:
        yield f"distances {' '.join(map(str, node['distances']))}"
    if node["read_mb_per_s"]:
        yield f"reads {node['read_mb_per_s'] / 1000:.4g} GB/s by its firmware"
    if node["read_latency_ns"]:
        yield f"latency {node['read_latency_ns']} ns"
    if node["memory_side_cache_bytes"]:
        yield f"behind a memory-side cache of {readable(node['memory_side_cache_bytes'])}"


def _pages(facts: Facts) -> Lines:
    pages = facts["transparent_huge_pages"]
    yield "transparent", ", ".join(f"{name} {value or 'unknown'}" for name, value in pages.items())
    for pool in facts["hugetlb"]:
        yield (
            f"pool of {size_name(pool['page_bytes'])}",
            (f"{pool['total']} pages, {pool['free']} free, {pool['overcommit']} on demand"),
        )
    for node in facts["fragmentation"]:
        yield (
            f"free, node {node['node']}",
            (
                f"{node['free_2m_blocks']} whole 2 MiB blocks, {node['whole_share']:.0%} of "
                f"{readable(node['free_bytes'])}"
            ),
        )


def _features(facts: Facts) -> Lines:
    for name, title in _FEATURES.items():
        result = facts["features"][name]
        word = "yes" if result["works"] else "no"
        yield title, f"{word}{': ' + result['detail'] if result['detail'] else ''}"


def _limits(facts: Facts) -> Lines:
    soft = facts["memlock"]["soft_bytes"]
    yield "memlock", "unlimited" if soft is None else readable(soft)
    scope = facts["ptrace_scope"]
    yield "ptrace scope", "no Yama" if scope is None else str(scope)
    shared = facts["shared_memory"]
    yield (
        "/dev/shm",
        (
            f"{readable(shared['free_bytes'])} free of {readable(shared['bytes'])}"
            if shared
            else "missing"
        ),
    )


def _mpi(facts: Facts) -> Lines:
    for one in facts["mpi"]:
        abi = f"{one['abi']} ABI" + (" and MPI-5 ABI" if one["mpi5_abi"] else "")
        level = one.get("thread_level") or one.get("error") or "not asked"
        providers = f"; providers {' '.join(one['providers'])}" if one["providers"] else ""
        yield (
            f"{one['family']} {one['version']}".strip(),
            f"{abi}, thread level {level}; {one['library']} ({one['origin']}){providers}",
        )
    if not facts["mpi"]:
        yield "none", "found"


def _drop_in(facts: Facts) -> Lines:
    found = facts.get("drop_in") or {"libraries": {}, "complaint": None, "tools": []}
    for name, path in found["libraries"].items():
        yield f"libropewalk-{name}.so", path or "not built"
    if any(found["libraries"].values()):
        yield "loader", found["complaint"] or "takes them"
    for one in facts["mpi"]:
        binding = one.get("fortran") or {"intercepted": None, "detail": "not looked at"}
        word = {True: "yes", False: "no", None: "none"}[binding["intercepted"]]
        name = f"{one['family']} {one['version']}".strip()
        yield f"Fortran binding intercepted, {name}", f"{word}: {binding['detail']}"
    yield "PMPI tool in LD_PRELOAD", ", ".join(found["tools"]) or "none"


def _network(facts: Facts) -> Lines:
    for one in facts["fabrics"]:
        port = f" port {one['port']}" if one["port"] else ""
        rate = ", ".join(filter(None, (one["state"], one["rate"])))
        yield f"{one['device']}{port}", f"{one['kind']} {rate}".strip()
    if not facts["fabrics"]:
        yield "fabric", "none (TCP between nodes)"
    for one in facts["interfaces"]:
        speed = f"{one['mbit_per_s']} Mbit/s" if one["mbit_per_s"] else "speed unknown"
        yield one["interface"], f"{one['state']}, {speed}"


def _print_plain(found: Sequence[Section], findings: Sequence[Finding]) -> None:
    for title, rows in found:
        print(title)
        width = max((len(label) for label, _ in rows), default=0)
        for label, value in rows:
            print(f"  {label:<{width}}  {value}")
    if not findings:
        print("Nothing falls short")
        return
    print(f"{len(findings)} to improve")
    for one in findings:
        print(f"  {one['subject']}: {one['what']}")
        print(f"    consequence: {one['consequence']}")
        print(f"    remedy: {one['remedy']}")


def _print_tables(found: Sequence[Section], findings: Sequence[Finding]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for title, rows in found:
        table = Table(title=title, title_justify="left", show_header=False, box=box.SIMPLE)
        table.add_column(style="cyan", no_wrap=True)
        table.add_column(overflow="fold")
        for label, value in rows:
            table.add_row(label, value)
        console.print(table)
    if not findings:
        console.print("Nothing falls short", style="green")
        return
    table = Table(
        "",
        "found",
        "consequence",
        "remedy",
        box=box.SIMPLE_HEAD,
        title=f"{len(findings)} to improve",
        title_justify="left",
    )
    for one in findings:
        table.add_row(one["subject"], one["what"], one["consequence"], one["remedy"])
    console.print(table)
