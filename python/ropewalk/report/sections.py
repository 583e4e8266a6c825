"""The page has one section for each bench. A new bench gets an entry in BENCHES, but needs none
where its rows have a peer's time beside ropewalk's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import amr, attach, exchanges, fft, lattice, peers, training
from .charts import Chart, Finding, Section, Table
from .rows import Row, grouped, page_backing, unverified, word


def _no_tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    return ()


def _no_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    return ()


@dataclass(frozen=True)
class Bench:
    title: str
    meaning: str
    charts: Callable[[Sequence[Row]], tuple[Chart, ...]] = peers.charts
    findings: Callable[[Sequence[Row]], tuple[Finding, ...]] = peers.findings
    tables: Callable[[Sequence[Row]], tuple[Table, ...]] = _no_tables


# The benches stand in the order of the page.
BENCHES = {
    "collectives": Bench(
        "Collectives",
        "Every collective by ropewalk and by plain MPIs, in turn in the same processes and on the "
        "same buffers.",
    ),
    "torch": Bench(
        "PyTorch",
        "Collectives of torch.distributed by ropewalk and by other backends on the same tensors, "
        "and trainings.",
        training.charts,
        training.findings,
        training.tables,
    ),
    "dropin": Bench(
        "The drop-in",
        "An unchanged MPI program with libropewalk-mpi loaded before it, and without.",
    ),
    "p2p": Bench(
        "Messages between two ranks",
        "Messages through a channel and through the plain MPI, as OSU's benchmarks send them.",
    ),
    "comms": Bench(
        "Halo exchange",
        "Faces of a four-dimensional lattice, exchanged between all neighbours by each strategy.",
        exchanges.comms,
        exchanges.comms_findings,
        exchanges.comms_tables,
    ),
    "overlap": Bench(
        "Exchange behind computation",
        "The hop of a stencil whose faces travel while its interior is computed.",
        exchanges.overlap,
        exchanges.overlap_findings,
    ),
    "gradient": Bench(
        "Gradient reduction",
        "A large vector summed over all ranks again and again, as training does.",
        exchanges.gradient,
        exchanges.gradient_findings,
    ),
    "itt": Bench(
        "Lattice operators",
        "What Grid's Benchmark_ITT measures, with the operators of this library.",
        lattice.charts,
        lattice.findings,
        lattice.tables,
    ),
    "memory": Bench(
        "Memory bandwidth",
        "What the machine's memory and caches give, the limit of all that is above.",
        exchanges.memory,
        exchanges.memory_findings,
    ),
    "pages": Bench(
        "Scattered and huge pages",
        "What it costs to send from single 4 KiB pages instead of 2 MiB pages.",
        exchanges.pages,
        _no_findings,
    ),
    "attach": Bench(
        "Attaching memory",
        "What it costs to make memory of another rank addressable, and what a registration cache "
        "saves of it.",
        attach.charts,
        attach.findings,
        attach.tables,
    ),
    "amr": Bench(
        "Adaptive meshes",
        "Steps of a program on a mesh that is refined where it must be: many small messages to "
        "neighbours that change, and a sum over all ranks.",
        amr.charts,
        amr.findings,
        amr.tables,
    ),
    "fft": Bench(
        "Fourier transforms",
        "Transforms of a grid in three dimensions that is divided over the ranks, and their "
        "inverses. All ways differ in their transposes alone.",
        fft.charts,
        fft.findings,
        fft.tables,
    ),
    "malloc": Bench(
        "The malloc library",
        "Unchanged programs with libropewalk-malloc loaded before them, and without.",
        exchanges.malloc,
        _no_findings,
    ),
}


def sections(rows: Sequence[Row]) -> list[Section]:
    """Returns the sections of the benches that have rows, in the order of BENCHES."""
    groups = {key[0]: group for key, group in grouped(rows, ["bench"]).items()}
    order = [
        *(name for name in BENCHES if name in groups),
        *(name for name in groups if name not in BENCHES),
    ]
    return [_section(name, groups[name]) for name in order]


def _section(name: str, rows: Sequence[Row]) -> Section:
    bench = BENCHES.get(name) or Bench(name, "Rows of this bench, beside their peer.")
    charts = bench.charts(rows)
    findings = bench.findings(rows)
    if not findings and charts:
        findings = (Finding("", charts[0].title),)
    tables = bench.tables(rows)
    if not charts and not tables:
        tables = (raw(rows),)
    return Section(name, bench.title, bench.meaning, findings, charts, tables, notes(rows))


def notes(rows: Sequence[Row]) -> tuple[str, ...]:
    """Returns what a reader must know besides: pages, ranks, MPIs, and data that were wrong."""
    made = [page_backing(rows)]
    ranks = sorted({int(row["ranks"]) for row in rows if isinstance(row.get("ranks"), int)})
    mpis = list(dict.fromkeys(word(row.get("mpi")) for row in rows if row.get("mpi")))
    if ranks:
        under = f" under {', '.join(mpis)}" if mpis else ""
        made.append(f"{' and '.join(map(str, ranks))} rank{'s' * (ranks != [1])}{under}.")
    wrong = unverified(rows)
    if wrong:
        first = ", ".join(f"{key} {wrong[0][key]}" for key in ("op", "bytes") if key in wrong[0])
        made.append(f"{len(wrong)} rows had WRONG DATA, the first: {first or 'without a name'}.")
    return tuple(note for note in made if note)


_MOST_COLUMNS = 10


def raw(rows: Sequence[Row]) -> Table:
    """Returns the rows as they are, for a bench of which nothing is known."""
    fields = [
        field for field in dict.fromkeys(key for row in rows for key in row) if field != "bench"
    ]
    kept = [
        field
        for field in fields
        if not isinstance(next(row[field] for row in rows if field in row), (list, dict))
    ]
    kept = kept[:_MOST_COLUMNS]
    lines = tuple(tuple(word(row.get(field)) or "–" for field in kept) for row in rows)
    return Table("Rows", "As the bench wrote them.", tuple(kept), lines)
