"""The verbs beside `run`, as a Typer application. Imported by people's commands only, never by a
rank."""

import sys
from typing import Annotated

import typer

from . import __version__
from .command import VERBS
from .errors import CommandError

app = typer.Typer(
    name="ropewalk",
    help="Line-rate communication for MPI programs, from user space.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
pool = typer.Typer(help=VERBS["hugepages"], no_args_is_help=True)
app.add_typer(pool, name="hugepages")

_PASS_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "help_option_names": [],
}


def application(arguments):
    """Runs one verb; returns the exit status."""
    try:
        typer.main.get_command(app).main(arguments, prog_name="ropewalk")
    except SystemExit as end:  # how Typer returns
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _version(wanted: bool):
    if wanted:
        print(f"ropewalk {__version__}")
        raise typer.Exit


def _preload_path(wanted: bool):
    if wanted:
        from . import preload

        try:
            print(preload.preload_path())
        except FileNotFoundError as error:
            raise CommandError(str(error), status=1) from None
        raise typer.Exit


@app.callback()
def ropewalk(
    preload_path: Annotated[
        bool,
        typer.Option(
            "--preload-path",
            callback=_preload_path,
            is_eager=True,
            help="Show the value of LD_PRELOAD for launchers of your own.",
        ),
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
):
    pass


@app.command("run", help=VERBS["run"], context_settings=_PASS_ON)
def run_verb(context: typer.Context):
    from . import run

    sys.exit(run.main(context.args))


@app.command("bench", help=VERBS["bench"], context_settings=_PASS_ON)
def bench_verb(context: typer.Context):
    from . import bench

    sys.exit(bench.main(context.args))


@app.command("cluster", help=VERBS["cluster"], context_settings=_PASS_ON)
def cluster_verb(context: typer.Context):
    from . import cluster

    sys.exit(cluster.main(context.args))


@app.command("doctor", help=VERBS["doctor"])
def doctor_verb(
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Start no MPI to ask it.")] = False,
):
    from . import doctor_report

    sys.exit(doctor_report.main(json, quick))


_Size = Annotated[str, typer.Option("--page-size", help="2M or 1G.")]


def _page_bytes(text):
    from .hugepages import SIZES

    if text.upper() not in SIZES:
        raise CommandError(f"--page-size: '{text}', expected {' or '.join(SIZES)}")
    return SIZES[text.upper()]


def _print(lines):
    print("\n".join(lines))


@pool.command("status", help="Show the pools and what ropewalk added to them.")
def pool_status():
    from . import hugepages

    _print(hugepages.status_lines())


@pool.command("reserve", help="Add N pages (64) or a size (64M, 1G) to the pool, as root.")
def pool_reserve(n: Annotated[str, typer.Argument(metavar="N")], page_size: _Size = "2M"):
    from . import hugepages

    size = _page_bytes(page_size)
    change = hugepages.reserve(hugepages.pages_of(n, size), size)
    _print(hugepages.reserve_lines(change))
    sys.exit(0 if change.done == change.asked else 1)


@pool.command("release", help="Give back what `reserve` added, or N pages.")
def pool_release(
    n: Annotated[str | None, typer.Argument(metavar="[N]")] = None,
    page_size: Annotated[str | None, typer.Option("--page-size", help="2M or 1G.")] = None,
):
    from . import hugepages

    size = _page_bytes(page_size) if page_size else None
    pages = hugepages.pages_of(n, size or hugepages.SIZES["2M"]) if n else None
    _print(hugepages.release_lines(hugepages.release("/", size, pages)))
