"""The command `ropewalk`: its verbs, its help, its errors, and what each part may import."""

import ast
import io
import json
import pathlib
import re
import subprocess
import sys

import pytest

import ropewalk
from ropewalk import command, completion, options, run
from ropewalk.cluster import command as cluster
from ropewalk.doctor import mpi_facts
from support import environment
from support import run as run_command

FOLDER = pathlib.Path(ropewalk.__file__).parent
NAMES = [verb.name for verb in command.VERBS]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("verb", NAMES)
def test_help_teaches(verb, capsys):
    try:
        status = command.main([verb, "--help"])
    except SystemExit as end:
        status = end.code
    shown = capsys.readouterr().out
    assert not status
    assert shown.startswith(f"usage: ropewalk {verb}")
    for part in ("examples:", f"\n  ropewalk {verb}", "exit status:"):
        assert part in shown
    assert max(map(len, shown.splitlines())) <= 100
    assert "\033" not in shown


# What each verb is called with to print results as JSON on standard output. `bench` writes its rows
# to a file; those of the others print no results of their own.
PRINTS = {
    "run": ["--dry-run", "--json", "--mpi", "mpich", "--", "true"],
    "report": ["--json", "-o", "FOLDER/page.html", "FOLDER/rows.json"],
    "doctor": ["--quick", "--json"],
    "config": ["--json"],
    "explain": ["allreduce", "--json"],
    "tune": ["--help"],
    "hugepages": ["status", "--json"],
}
PRINTS_NOTHING = {"bench", "cluster", "completion"}
ROW = {"bench": "attach", "bytes": 4096, "attach_us": 1.0}


def test_every_verb_that_prints_results_has_json():
    assert {*PRINTS, *PRINTS_NOTHING} == set(NAMES)
    for name, (_, parser) in completion.parsers().items():
        has = any("--json" in action.option_strings for action in parser._actions)
        assert has == (name in PRINTS or name == "bench"), name


@pytest.mark.parametrize("verb", sorted(set(PRINTS) - {"tune"}))  # that measures for minutes
def test_json_is_all_of_standard_output(verb, tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps(ROW) + "\n")
    words = [word.replace("FOLDER", str(tmp_path)) for word in PRINTS[verb]]
    done = run_command([sys.executable, "-m", "ropewalk", verb, *words])
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)


def test_json_of_a_program_is_refused(capsys):
    assert command.main(["run", "--json", "true"]) == 2
    assert "--json: it is for --dry-run" in capsys.readouterr().err


def test_doctor_shows_what_it_waits_for(capsys, monkeypatch):
    monkeypatch.setattr(mpi_facts, "ask", lambda one: {"error": "not asked"})
    assert command.main(["doctor", "--json"]) == 0
    shown = capsys.readouterr()
    found = [one["family"] for one in json.loads(shown.out)["mpi"]]
    assert shown.err.count("-- starting one rank of ") == len(found)


def test_the_command_lists_its_verbs(capsys):
    assert command.main([]) == 2
    shown = capsys.readouterr().err
    for verb in command.VERBS:
        assert re.search(rf"^  {verb.name} +{re.escape(verb.help)}$", shown, re.MULTILINE)


def test_version(capsys):
    assert command.main(["--version"]) == 0
    assert capsys.readouterr().out == f"ropewalk {ropewalk.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rum"], ["ropewalk: VERB: 'rum'", "did you mean run?"]),
        (["--nope"], ["ropewalk: --nope: no such option"]),
        (["run", "--lane", "2", "x"], ["--lane: no such option", "did you mean --lanes?"]),
        (["run", "-n", "two", "x"], ["-n/--ranks: 'two', expected a whole number"]),
        (["run", "--launcher", "x", "y"], ["--launcher: invalid choice", "srun"]),
        (["cluster", "--rails", "1.5"], ["--rails: '1.5', expected a whole number"]),
        (["doctor", "--jsn"], ["ropewalk doctor: --jsn", "--json?", "`ropewalk doctor --help`"]),
        (["hugepages", "give"], ["invalid choice: 'give'"]),
        (["hugepages", "reserve"], ["N: none given", "64M"]),
        (["hugepages", "reserve", "4", "--page-size", "3M"], ["--page-size: '3M'", "2M or 1G"]),
        (["hugepages", "status", "4"], ["status: takes nothing"]),
    ],
)
def test_errors_are_one_line(arguments, words, capsys):
    assert command.main(arguments) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    for word in words:
        assert word in complaint


def test_colours_are_for_terminals_only(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain, shown = io.StringIO(), Terminal()
    run.parser().print_help(plain)
    run.parser().print_help(shown)
    assert "\033[1musage:\033[0m ropewalk run" in shown.getvalue()
    assert "\033[36m  --mpi NAME\033[0m" in shown.getvalue()
    assert re.sub(r"\033\[\d*m", "", shown.getvalue()) == plain.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not options.is_colourful(Terminal())


# ---- options that several verbs share ------------------------------------------------------------

WORDS = [
    *("--ranks=3", "--mpi=mpich", "--lanes=2", "--no-bind", "--env=A=1", "--env=B=2"),
    *("--launcher-option=-v", "--no-malloc", "--no-preload", "--stats"),
]


def test_options_of_run_reach_the_run_inside_a_box():
    given = cluster.parse([*WORDS, "--", "./program"])
    assert cluster.run_words(given) == WORDS
    again = run.parse([*cluster.run_words(given), "--", "./program"])
    for name in ("ranks", "mpi", "lanes", "bind", "env", "malloc", "preload", "stats"):
        assert getattr(again, name) == getattr(given, name) != getattr(run.RunOptions(), name)
    assert cluster.run_words(cluster.parse(["./program"])) == []


def test_options_of_one_call_are_not_those_of_the_next():
    assert run.parse(["--env", "A=1", "x"]).env == ["A=1"]
    assert run.parse(["x"]).env == []


# ---- what imports what ---------------------------------------------------------------------------


def walk(node):
    """All nodes but those below `if TYPE_CHECKING`, which are never run."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from walk(child)


def imports_of(path):
    """The modules of the package that a file imports, wherever in it it does."""
    package = [ropewalk.__name__, *path.relative_to(FOLDER).parts[:-1]]
    for node in walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - node.level + 1]
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                yield from (".".join(base), ".".join([*base, alias.name]))


def test_no_module_imports_itself_through_others():
    paths = {
        ".".join([ropewalk.__name__, *path.relative_to(FOLDER).with_suffix("").parts]): path
        for path in FOLDER.rglob("*.py")
        if path.name != "__init__.py"
    }
    graph = {name: set(imports_of(path)) & set(paths) for name, path in paths.items()}
    assert "ropewalk.options" in graph["ropewalk.cluster.command"]
    while True:
        ends = {name for name, needed in graph.items() if not needed}
        if not ends:
            break
        graph = {name: needed - ends for name, needed in graph.items() if name not in ends}
    assert graph == {}


def modules_after(code, *options):
    done = subprocess.run(
        [sys.executable, *options, "-c", f"{code}; import sys; print(*sys.modules)"],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_ranks_import_no_front_end():
    names = "[getattr(ropewalk, name) for name in ropewalk.__all__]"
    found = modules_after(f"import ropewalk; {names}")
    assert {"numpy", "ropewalk.exchange", "ropewalk.reduction"} <= found
    front_end = {"rich", "matplotlib", "argparse", "ropewalk.options", "ropewalk.command"}
    assert not found & front_end


def test_a_box_starts_with_little():
    path = str(FOLDER.parent)
    code = f"import sys; sys.path.insert(0, {path!r}); import ropewalk.cluster.node"
    ours = {name for name in modules_after(code, "-IS") if name.split(".")[0] == "ropewalk"}
    assert ours == {
        "ropewalk",
        "ropewalk._version",
        "ropewalk.errors",
        "ropewalk.paths",
        "ropewalk.cluster",
        *(
            f"ropewalk.cluster.{name}"
            for name in ("network", "node", "server", "session", "spaces")
        ),
    }
    assert not modules_after(code, "-IS") & {"argparse", "numpy", "rich", "typing"}
