"""scripts/prove: unchanged programs give the same answers under the drop-in as without it.

    scripts/prove mpi4py   [--mpi NAME] [-n RANKS] [--short]  mpi4py's own test suite
    scripts/prove programs [NAME ...] [--pairs N]             programs of Debian and PyPI
    scripts/prove mixed    [--seeds A..B] [--ranks N,...]     random programs of tests/dropin/mixed
    scripts/prove torch    [-n RANKS] [--short]               torch's own tests, beside Gloo
    scripts/prove list                                        what could be run here

The status is 0 when everything that could be run was the same; what is missing is skipped, with
the reason.
"""

import argparse
import collections
import difflib
import json
import pathlib
import statistics
import sys
import tempfile

import launching
import mixed_seeds
import mpi4py_suite
import recipes
import torch_suite


def parser():
    made = argparse.ArgumentParser(prog="scripts/prove", description=__doc__.split("\n\n")[0])
    verbs = made.add_subparsers(dest="verb", required=True)
    suite = verbs.add_parser("mpi4py", help="mpi4py's own test suite")
    suite.add_argument("--short", action="store_true", help="collectives and windows only")
    suite.add_argument("-i", "--include", action="append", help="modules (a regular expression)")
    suite.add_argument("-x", "--exclude", action="append", default=[], help="tests to leave out")
    programs = verbs.add_parser("programs", help="programs of Debian and PyPI")
    programs.add_argument("names", nargs="*", metavar="NAME", help="all, if none is named")
    programs.add_argument("--pairs", type=int, default=1, help="runs with and without (1)")
    programs.add_argument("--json", help="a file for the figures, one JSON line a program")
    mixed = verbs.add_parser("mixed", help="random programs, by seed")
    mixed.add_argument("--seeds", default="1..50", help="as A..B,C (1..50)")
    mixed.add_argument("--limit", type=int, default=60, help="seconds; longer is a hang (60)")
    mixed.add_argument("--most-bad", type=int, default=10, help="then a column is given up (10)")
    mixed.add_argument("--synchronous", action="store_true", help="sends wait for receives")
    mixed.add_argument("--multiple", action="store_true", help="ask for MPI_THREAD_MULTIPLE")
    mixed.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    mixed.add_argument("--plain", metavar="NAME", help="the MPI of the plain runs (the same)")
    mixed.add_argument("--json", help="a file for the rows, as JSON lines")
    torch = verbs.add_parser("torch", help="torch's own tests of torch.distributed, beside Gloo")
    torch.add_argument("names", nargs="*", metavar="TEST", help="all, if none is named")
    torch.add_argument("--short", action="store_true", help="one test of each kind")
    torch.add_argument("-n", "--ranks", default="2,3,4", help="a list (2,3,4)")
    torch.add_argument("--timeout", type=float, default=1800, help="seconds for one run (1800)")
    verbs.add_parser("list", help="what can be run here")
    for verb, ranks in ((suite, "1,2,3,4,5"), (programs, "2"), (mixed, "1,2,3,4,8")):
        verb.add_argument("-n", "--ranks", default=ranks, help=f"a list ({ranks})")
        verb.add_argument("--mpi", default="", help="a list (all that are installed)")
        verb.add_argument("--build", default=str(launching.ROOT / "build/release"))
        verb.add_argument("--only", choices=("mpi", "malloc"), help="one of the two libraries")
        verb.add_argument("--timeout", type=float, default=900, help="seconds for one run (900)")
    return made


def main():
    options = parser().parse_args()
    try:
        proofs = {"mpi4py": prove_mpi4py, "programs": prove_programs, "mixed": prove_mixed}
        proofs["torch"] = prove_torch
        return (proofs | {"list": show})[options.verb](options)
    except launching.Skip as reason:
        print(f"skipped: {reason}")
        return 0


def show(options):
    for name, mpi in launching.mpis().items():
        print(f"MPI {name}: {mpi.launcher}")
    for recipe in recipes.RECIPES:
        try:
            with tempfile.TemporaryDirectory() as folder:
                recipe.prepare(pathlib.Path(folder))
            print(f"{recipe.name}: {recipe.source}")
        except launching.Skip as reason:
            print(f"{recipe.name}: skipped: {reason}")
    return 0


def chosen_mpis(names):
    found = launching.mpis()
    for name in filter(None, names.split(",")):
        if name not in found:
            raise SystemExit(f"--mpi: {name} is not installed; here are {', '.join(found)}")
    return {name: mpi for name, mpi in found.items() if not names or name in names.split(",")}


# ---- mpi4py's test suite ------------------------------------------------------------------------
def prove_mpi4py(options):
    preload = launching.preloads(options.build, options.only)
    modules = options.include or (mpi4py_suite.SHORT if options.short else ())
    extra = [word for name in options.exclude for word in ("-x", name)]
    same = True
    print(f"{'MPI':10} ranks  {'plain':>34}  {'drop-in':>34}  differences")
    for name, mpi in chosen_mpis(options.mpi).items():
        if name not in ("mpich", "openmpi"):
            continue
        for ranks in map(int, options.ranks.split(",")):
            runs = [
                mpi4py_suite.run(mpi, ranks, libraries, modules, options.timeout, extra)
                for libraries in ((), preload)
            ]
            same = compare_suites(name, ranks, *runs) and same
    return 0 if same else 1


def compare_suites(name, ranks, plain, dropin):
    (before, first), (after, second) = plain, dropin
    differ = mpi4py_suite.differences(before, after)
    texts = (f"{text(mpi4py_suite.counts(r))}" for r in (before, after))
    print(f"{name:10} {ranks:5}  ", "   ".join(f"{t:>34}" for t in texts), f" {len(differ)}")
    print(f"{'':17} {first.seconds:32.0f} s   {second.seconds:32.0f} s")
    for label, results, outcome in (("without", before, first), ("with", after, second)):
        if outcome.status not in (0, 1):
            ended = "did not end" if outcome.status is None else f"status {outcome.status}"
            print(f"    {label}: {ended}; in these tests:")
            for (rank, test), result in sorted(results.items()):
                if result in ("begun", "no record"):
                    print(f"        rank {rank}: {test}")
    for rank, test, left, right in [row for row in differ if "missing" not in row][:40]:
        print(f"    rank {rank}: {test}: {left} without, {right} with")
    sys.stdout.flush()
    return not differ and first.status == second.status


def text(counts):
    names = ("passed", "skipped", "failed", "error", "expected", "unexpected", "begun", "no record")
    return ", ".join(f"{counts[name]} {name}" for name in names if counts[name])


# ---- torch's tests ------------------------------------------------------------------------------
def prove_torch(options):
    names = options.names or (torch_suite.SHORT if options.short else ())
    bad = []
    print(f"{'named':6} ranks  {'Gloo':>34}  {'ropewalk':>34}  worse")
    for ranks in map(int, options.ranks.split(",")):
        gloo, _ = torch_suite.run("gloo", "gloo", ranks, names, options.timeout)
        ours, worse = compare_torch("gloo", ranks, gloo, names, options)
        _, more = compare_torch("mpi", ranks, {}, torch_suite.for_mpi(ours), options)
        bad += worse + more
    return 1 if bad else 0


def compare_torch(like, ranks, gloo, names, options):
    ours, seconds = torch_suite.run("ropewalk", like, ranks, names, options.timeout)
    worse = torch_suite.compare(ours, gloo)
    texts = (text(collections.Counter(kind for kind, _ in each.values())) for each in (gloo, ours))
    print(f"{like:6} {ranks:5}  ", "   ".join(f"{t:>34}" for t in texts), f" {len(worse)}")
    print(f"{'':50} {seconds:32.0f} s")
    for test, outcome, reason in worse:
        print(f"    {test}: {outcome}: {reason}")
    sys.stdout.flush()
    return ours, worse


# ---- random programs ----------------------------------------------------------------------------
def prove_mixed(options):
    preload = launching.preloads(options.build, options.only)
    rows = []
    plain = next(iter(chosen_mpis(options.plain).values())) if options.plain else None
    print(mixed_seeds.HEADING)
    for mpi in chosen_mpis(options.mpi).values():
        for ranks in map(int, options.ranks.split(",")):
            try:
                rows.append(mixed_seeds.compare(mpi, plain or mpi, ranks, options, preload))
            except launching.Skip as reason:
                print(f"{mpi.name:10} skipped: {reason}")
                continue
            if options.json:
                with open(options.json, "a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    return 0 if rows and all(map(mixed_seeds.holds, rows)) else 1


# ---- programs -----------------------------------------------------------------------------------
def prove_programs(options):
    preload = launching.preloads(options.build, options.only)
    known = [recipe.name for recipe in recipes.RECIPES]
    for name in options.names:
        if name not in known:
            raise SystemExit(f"NAME: {name}; there are {', '.join(known)}")
    mpis = chosen_mpis(options.mpi)
    verdicts = []
    print(f"{'program':12} {'MPI':8} ranks  {'answer':10} {'plain':>9} {'drop-in':>9}  ratio")
    for recipe in recipes.RECIPES:
        if options.names and recipe.name not in options.names:
            continue
        for name in recipe.mpis:
            if name in mpis:
                for ranks in map(int, options.ranks.split(",")):
                    verdicts.append(prove(recipe, mpis[name], ranks, preload, options))
    return 0 if all(verdicts) else 1


def prove(recipe, mpi, ranks, preload, options):
    head = f"{recipe.name:12} {mpi.name:8} {ranks:5}  "
    try:
        times, answers = measure(recipe, mpi, ranks, preload, options)
    except launching.Skip as reason:
        print(f"{head}skipped: {reason}")
        return True
    except (AssertionError, ValueError, OSError) as error:
        print(f"{head}failed: {error}")
        return False
    plain, dropin = (statistics.median(column) for column in times)
    ratios = [left / right for left, right in zip(*times, strict=True)]
    same = all(answer == answers[0] for answer in answers)
    verdict = "equal" if same else "DIFFERENT"
    ratio = statistics.median(ratios)
    print(f"{head}{verdict:10} {plain:8.3f}s {dropin:8.3f}s  {ratio:.2f}", flush=True)
    if not same:
        show_difference(answers)
    if options.json:
        row = {"program": recipe.name, "mpi": mpi.name, "ranks": ranks, "same": same}
        row |= {"plain_s": times[0], "dropin_s": times[1], "ratio": ratio}
        row["answer_lines"] = len(answers[0])
        with open(options.json, "a") as file:
            file.write(json.dumps(row) + "\n")
    return same


def measure(recipe, mpi, ranks, preload, options):
    """Times without and with, in turns, and all answers."""
    times, answers = ([], []), []
    for _ in range(options.pairs):
        for which, libraries in enumerate(((), preload)):
            with tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                program = recipe.prepare(folder)
                outcome = launching.start(
                    mpi, ranks, program, libraries, recipe.variables(mpi), options.timeout, folder,
                    recipe.stdin,
                )  # fmt: skip
                label = "with" if which else "without"
                tail = "\n".join((outcome.output + outcome.errors).splitlines()[-25:])
                assert outcome.status == 0, f"status {outcome.status} {label}\n{tail}"
                answer = recipe.answer(outcome)
                assert answer, f"no answer {label}\n{tail}"
                answers.append(answer)
                times[which].append(recipe.seconds(outcome))
    return times, answers


def show_difference(answers):
    other = next(answer for answer in answers if answer != answers[0])
    for line in list(difflib.unified_diff(answers[0], other, "first", "other", n=0))[:20]:
        print("    " + line)


if __name__ == "__main__":
    sys.exit(main())
