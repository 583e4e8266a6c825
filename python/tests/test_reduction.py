"""Repeated reductions: what arrays are taken, and plans under the MPIs of set-up."""

import json
import pathlib

import numpy as np
import pytest

import ropewalk
from support import DlpackOnly, mpis, run_ranks

try:
    from ropewalk import _core
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)


def test_arrays_tell_where_they_are():
    array = np.zeros((3, 4), np.float32)
    address = array.__array_interface__["data"][0]
    for one in (array, DlpackOnly(array)):
        assert _core.describe_output(one) == (address, 12, 10, True, True)
        assert _core.describe_input(one) == (address, 12, 10, True, True)
    assert _core.describe_input(array.T)[3] is False
    assert _core.describe_input(np.zeros(4, np.complex128))[2] == 14
    assert _core.describe_input(np.zeros(4, np.uint16))[2] == 3
    array.flags.writeable = False
    assert _core.describe_input(array)[1] == 12
    with pytest.raises(TypeError):
        _core.describe_output(array)


# ---- under a real MPI ----------------------------------------------------------------------------

# A tensor of each kind, in every place; halves against sums that are made in float32 and rounded
# once.
REDUCE = """
import json, numpy as np, ropewalk
from support import DlpackOnly

def values(rank, n, seed): return np.random.default_rng(100 * seed + rank).normal(size=n)
def to_bfloat16(x):  # nearest, ties to even
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)
def from_bfloat16(x): return (x.astype(np.uint32) << 16).view(np.float32)
def add(parts):
    total = parts[0]
    for part in parts[1:]: total = total + part
    return total

a = np.empty((30, 20), np.float32); b = ropewalk.empty(200_000, np.float64)
c = np.empty(50, np.uint16); d = np.empty(60, np.float32); e = np.empty(70, np.float16)
source, result = np.empty(80, np.float32), np.zeros(80, np.float32)
tensors = [a, DlpackOnly(d), ropewalk.as_bfloat16(c), e, b, (source, result),
           ((5, 8), "float32"), (9, "bfloat16")]
good = []
with ropewalk.ReductionPlan(tensors, "average", fuse_bytes=4096, bucket_bytes=8192,
                            thread=THREAD) as plan:
    memory, half = plan.data(6), plan.data(7)
    n = plan.size
    for step in range(3):
        a[:] = values(plan.rank, 600, 1 + step).reshape(30, 20)
        b[:] = values(plan.rank, 200_000, 2 + step)
        c[:] = to_bfloat16(values(plan.rank, 50, 3 + step))
        d[:] = values(plan.rank, 60, 4 + step)
        e[:] = values(plan.rank, 70, 5 + step)
        source[:] = values(plan.rank, 80, 6 + step)
        memory[:] = values(plan.rank, 40, 7 + step).reshape(5, 8)
        half[:] = to_bfloat16(values(plan.rank, 9, 8 + step))
        if step == 0: plan.reduce()
        elif step == 1:
            pending = [plan.start(bucket) for bucket in range(plan.buckets)]
            for one in pending: one.wait()
        else:
            for tensor in range(8): plan.ready(tensor)
            plan.wait()
        def all_ranks(n_, seed): return [values(r, n_, seed + step) for r in range(n)]
        def f32(n_, seed):
            return add([x.astype(np.float32) for x in all_ranks(n_, seed)]) / np.float32(n)
        def bf16(n_, seed):
            return to_bfloat16(add([from_bfloat16(to_bfloat16(x)) for x in all_ranks(n_, seed)])
                               / np.float32(n))
        good += [np.array_equal(a.ravel(), f32(600, 1)),
                 np.array_equal(b, add(all_ranks(200_000, 2)) / n),
                 np.array_equal(c, bf16(50, 3)), np.array_equal(d, f32(60, 4)),
                 np.array_equal(e, (add([x.astype(np.float16).astype(np.float32)
                                         for x in all_ranks(70, 5)]) / np.float32(n))
                                   .astype(np.float16)),
                 np.array_equal(result, f32(80, 6)), np.array_equal(memory.ravel(), f32(40, 7)),
                 np.array_equal(half, bf16(9, 8)), not np.array_equal(source, result) or n == 1]
    other = np.full(80, 2.0, np.float32)
    plan.bind(5, other)
    plan.start(plan.bucket_of(5)).wait()
    good.append((other == 2).all())
    view = plan.data(6)
assert view.shape == (5, 8)  # of memory that outlives close()
tell(json.dumps([len(good), all(map(bool, good))]))
"""

WRONG = """
import numpy as np, ropewalk
rank = ropewalk.CartesianGrid([2]).rank
good = np.zeros(6, np.float32)
frozen = np.zeros(6, np.float32); frozen.flags.writeable = False
def refused(text, call):
    try:
        call()
        tell("no error")
    except ropewalk.ArgumentError as error:
        tell("refused" if text in str(error) or rank == 0 else str(error))
for wrong, text in (
    (np.zeros((6, 6))[:, ::2], "not contiguous"), (frozen, "read-only"), ("text", "str, expected"),
    ((3, "float128"), "dtype"), ((-3, "float32"), "shape"), (np.zeros(6, "M8[s]"), "expected"),
    ((good, np.zeros(7, np.float32)), "expected the same"), ((good, good, good), "3 parts"),
):
    tensors = [wrong] if rank == 1 else [good]  # one rank alone is wrong
    refused(text, lambda: ropewalk.ReductionPlan(tensors))
refused("", lambda: ropewalk.ReductionPlan([np.zeros(4 + rank)]))
refused("", lambda: ropewalk.ReductionPlan([good], "mean"))
refused("", lambda: ropewalk.ReductionPlan([good], bucket_bytes=0))
plan = ropewalk.ReductionPlan([good, np.zeros(90_000)])
refused("3 elements of float32", lambda: plan.bind(0, np.zeros(3, np.float32)))
refused("bucket: 9", lambda: plan.start(9))
pending = plan.start(1 - rank)  # not the same order on all ranks
refused("bucket", pending.wait)
plan.close()
refused("closed", plan.reduce)
"""


CLOSED = """
import gc, numpy as np, ropewalk
plan = ropewalk.ReductionPlan([(1 << 16, "float64"), (40, "float32")])
views = plan.data(0), plan.data(1)
for view in views: view[:] = 7
pending = plan.start()
plan.close()
gc.collect()
others = [ropewalk.zeros(1 << 16) for _ in range(3)]  # they do not get that memory
tell("kept" if all((view == 14).all() for view in views) else "gone")
for call in (pending.test, pending.wait, plan.reduce, lambda: plan.data(0)):
    try: call(); tell("no error")
    except ropewalk.ArgumentError as error: tell("closed" if "closed" in str(error) else str(error))
plan.close()
"""


@mpis
def test_what_stays_of_a_closed_plan(path, tmp_path):
    told, _ = run_ranks(path, 2, CLOSED, tmp_path)
    assert sorted(told) == ["closed"] * 8 + ["kept"] * 2


PATH = f"import sys; sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})\n"


@mpis
@pytest.mark.parametrize(("ranks", "thread"), [(1, True), (2, True), (3, False)])
def test_reduce(path, tmp_path, ranks, thread):
    told, _ = run_ranks(path, ranks, PATH + REDUCE.replace("THREAD", str(thread)), tmp_path)
    assert [json.loads(line) for line in told] == [[28, True]] * ranks


@mpis
def test_errors_on_every_rank(path, tmp_path):
    assert run_ranks(path, 2, WRONG, tmp_path)[0] == ["refused"] * 30


# This runs what docs/how-to/gradient-reduction.md shows, word for word.
@mpis
def test_the_example_of_the_documentation(path, tmp_path):
    root = pathlib.Path(__file__).parents[2]
    text = (root / "docs/how-to/gradient-reduction.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    told, _ = run_ranks(path, 2, code + "\ntell(str(round(float(loss), 6)))\n", tmp_path)
    assert len(set(told)) == 1
    assert float(told[0]) < 0.01


def test_names_are_lazy():
    assert ropewalk.ReductionPlan.__module__ == "ropewalk.reduction"
