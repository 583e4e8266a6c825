"""ropewalk.Window: what becomes an element of its type, and what is refused."""

import json

import pytest

from support import mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

CONVERTED = """
import array, json, ml_dtypes, numpy as np, ropewalk
bad = []
def right(dtype, given, expected):
    with ropewalk.Window(4, dtype) as window:
        window.put(given, 0)
        expected = np.array(expected, window.dtype).ravel()
        if window.array[: len(expected)].tobytes() != expected.tobytes():
            bad.append([str(dtype), repr(given), str(window.array)])
for dtype in ("f8", "f4", "i8", "u1", "c16", ml_dtypes.bfloat16):
    for given in (3, [1, 2], (1, 2, 3, 4), [[1, 2], [3, 4]], [], np.int64(3), [np.int8(7)], True):
        right(dtype, given, given)
for dtype in ("f8", "f4", "c8"):
    for given in (1.5, [1.5, 2], np.float64(0.25), np.float32(0.25)):
        right(dtype, given, given)
right("?", [0, 1], [False, True])
right("i8", [-(1 << 63), (1 << 63) - 1], [-(1 << 63), (1 << 63) - 1])
right("u8", (1 << 64) - 1, (1 << 64) - 1)
right("u8", [1, 1 << 63], [1, 1 << 63])
right("u8", (np.int64(2), (1 << 64) - 1), [2, (1 << 64) - 1])
right("f4", [1.5, np.inf, 16777217.0], [1.5, np.inf, 16777216.0])
right("f8", 1 << 70, 2.0**70)
right("M8[D]", ["2026-01-01"], ["2026-01-01"])
right("i4,f8", [(1, 2.5), (3, 4.5)], [(1, 2.5), (3, 4.5)])
right("u1", b"text", list(b"text"))
right("f8", array.array("d", [1, 2]), [1, 2])
right("q", np.arange(4, dtype="i8"), [0, 1, 2, 3])
tell(json.dumps(bad))
"""


@mpis
def test_numbers_become_elements(path, tmp_path):
    pytest.importorskip("ml_dtypes")
    assert run_ranks(path, 1, CONVERTED, tmp_path)[0] == ["[]"]


REFUSED = """
import array, json, numpy as np, ropewalk
bad = []
class Series:  # as of pandas: neither a buffer nor DLPack
    def __array__(self, *given, **named): return np.arange(4)
def refused(dtype, text, wrong):
    with ropewalk.Window(4, dtype) as window:
        try: wrong(window)
        except ropewalk.ArgumentError as error:
            if not str(error).startswith(text): bad.append(str(error))
        else: bad.append("no error: " + text)
        if window.array.any(): bad.append("written: " + text)
ints, big = np.arange(4), np.arange(4, dtype=">f8")
for dtype, text, given in (
    ("f8", "array: dtype int64, expected float64; convert it with array.astype('float64')", ints),
    ("f8", "array: dtype >f8, expected float64", big),
    ("i8", "array: dtype uint64, expected int64", ints.astype("u8")),
    ("f8", "array: dtype int64, expected float64", Series()),
    ("f8", "array: dtype int64, expected float64", array.array("q", [1])),
    ("i1", "array: dtype uint8, expected int8", b"text"),
    ("M8[s]", "array: dtype datetime64[D], expected", ints.astype("M8[D]")),
    ("f8", "array: dtype object", None),
    ("i8", "array: [1.9, 2.0], expected int64 from -92", [1.9, 2.0]),
    ("i8", "array: 1.0, expected int64", 1.0),
    ("i8", "array: ", np.float64(1)),
    ("f8", "array: 1j, expected float64", 1j),
    ("i8", "array: 92233", 1 << 63),
    ("i8", "array: [118", [1 << 70]),
    ("i8", "array: (-1, 92", (-1, 1 << 63)),
    ("i1", "array: 300, expected int8 from -128 to 127; convert it", 300),
    ("i1", "array: ", np.int64(300)),
    ("u1", "array: ", [np.int64(-1)]),
    ("?", "array: 2, expected bool from 0 to 1", 2),
    ("f2", "array: 100000, expected float16", 100_000),
    ("f8", "array: 1000", 10**400),
    ("f4", "array: [1e+300], expected float32", [1e300]),
    ("f8", "array: ['a'], expected float64", ["a"]),
    ("f8", "array: [None], expected float64", [None]),
    ("f8", "array: [[1], [2, 3]], expected float64", [[1], [2, 3]]),
):
    refused(dtype, text, lambda window: window.put(given, 0))
    refused(dtype, text, lambda window: window.accumulate(given, 0))
for out in (np.zeros(4, int), array.array("q", [1])):
    refused("f8", "out: dtype int64, expected float64", lambda window: window.get(out, 0))
refused("f8", "out: list", lambda window: window.get([0], 0))
for value in (-1, 256, 1.5, [1, 2], np.int64(-1)):
    refused("u1", "value: ", lambda window: window.fetch_and_op(value, 0))
    refused("u1", "expected: ", lambda window: window.compare_and_swap(value, 0, 0))
    refused("u1", "desired: ", lambda window: window.compare_and_swap(0, value, 0))
tell(json.dumps(bad))
"""


@mpis
def test_numbers_do_not_become_others(path, tmp_path):
    told, _ = run_ranks(path, 1, REFUSED, tmp_path)
    assert json.loads(told[0]) == []


SINGLE = """
import numpy as np, ropewalk
good = []
for dtype in ("u1", "u2", "u4", "u8", "i8", "f4"):
    with ropewalk.Window(1, dtype) as window:
        good += [window.fetch_and_op(5, 0) == 0, window.fetch_and_op(np.int64(2), 0) == 5]
        good += [window.compare_and_swap(7, 9, 0) == 7, window.fetch(0) == 9]
        good.append(type(window.fetch(0)) is window.dtype.type)
with ropewalk.Window(1, bool) as window:
    good += [not window.fetch_and_op(1, 0, op="lor"), window.compare_and_swap(1, 0, 0) == 1]
    good.append(not window.fetch(0))
tell("good" if all(good) else str(good))
"""


@mpis
def test_single_elements_are_plain_integers_of_any_type(path, tmp_path):
    assert run_ranks(path, 1, SINGLE, tmp_path)[0] == ["good"]


TENSORS = """
import ropewalk, torch
with ropewalk.Window(4) as window:
    window.put(torch.ones(4, dtype=torch.float64), 0)
    tell(str(window.array.tolist()))
    for wrong in (window.put, window.get, window.accumulate):
        try: wrong(torch.ones(4, dtype=torch.int64), 0)
        except ropewalk.ArgumentError as error: tell(str(error).split(";")[0])
"""


@mpis
def test_tensors_have_its_type(path, tmp_path):
    pytest.importorskip("torch")
    told, _ = run_ranks(path, 1, TENSORS, tmp_path)
    refused = [f"{name}: dtype int64, expected float64" for name in ("array", "out", "array")]
    assert told == ["[1.0, 1.0, 1.0, 1.0]", *refused]
