"""ropewalk.Channel with arrays in memory of a CUDA device, over the tests' fake driver."""

import pathlib

import pytest

from support import PACKAGES, mpis, run_ranks

try:
    from ropewalk import _core  # noqa: F401
except ImportError:
    pytest.skip("the extension is not built", allow_module_level=True)

# It lies in the folder that the package under test was built in.
_found = [
    folder / "tests/support/fake_cuda/libcuda.so.1" for folder in pathlib.Path(PACKAGES).parents
]
DRIVER = next((library for library in _found if library.exists()), None)

needs_driver = pytest.mark.skipif(DRIVER is None, reason="the fake driver is not built")

# Two kinds of arrays on a device: one speaks as CuPy's do, the other DLPack alone.
ARRAYS = """
import ctypes, numpy as np, ropewalk
from ctypes import byref, c_int32, c_size_t, c_uint64, c_void_p
cuda = ctypes.CDLL(DRIVER, mode=ctypes.RTLD_GLOBAL)

def call(name, *arguments):
    assert getattr(cuda, name)(*arguments) == 0, name

context = c_void_p()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", byref(context), 0)
call("cuCtxSetCurrent", context)

class OnDevice:
    def __init__(self, array):
        self.like, self.shape, self.address = array, array.shape, c_uint64()
        call("cuMemAlloc_v2", byref(self.address), c_size_t(array.nbytes))
        call("cuMemcpy", self.address, c_uint64(array.ctypes.data), c_size_t(array.nbytes))
    def get(self):
        out = np.empty_like(self.like)
        call("cuMemcpy", c_uint64(out.ctypes.data), self.address, c_size_t(out.nbytes))
        return out

class Interface(OnDevice):
    def __init__(self, array, read_only=False, **more):
        super().__init__(array)
        self.__cuda_array_interface__ = {
            "shape": array.shape, "typestr": array.dtype.str, "version": 3,
            "data": (self.address.value, read_only), **more}

class Tensor(ctypes.Structure):  # DLManagedTensor of dlpack.h
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device", c_int32),
                ("ndim", c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", c_void_p), ("strides", c_void_p),
                ("offset", c_uint64), ("context", c_void_p), ("deleter", c_void_p)]

capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
kept = []

@ctypes.CFUNCTYPE(None, c_void_p)
def deleter(tensor): pass

class Dlpack(OnDevice):
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, **options):
        shape = (ctypes.c_int64 * len(self.shape))(*self.shape)
        tensor = Tensor(self.address.value, 2, 0, len(self.shape), 2, 64, 1,
                        ctypes.addressof(shape), None, 0, None,
                        ctypes.cast(deleter, c_void_p).value)
        kept.append((shape, tensor))
        return capsule(ctypes.addressof(tensor), b"dltensor", None)
"""

MESSAGES = (
    ARRAYS
    + """
channel = ropewalk.Channel()
rank, other = channel.rank, 1 - channel.rank
bad = []
for kind in (Interface, Dlpack):
    for elements in (1, 100, 3000, 300_000):
        for sends_device, takes_device in ((True, True), (True, False), (False, True)):
            sent = np.arange(elements, dtype=float).reshape(1, -1) + rank
            array = kind(sent) if sends_device else sent
            out = kind(np.zeros_like(sent)) if takes_device else np.zeros_like(sent)
            status = channel.send_receive(array, other, out, other)
            came = out.get() if takes_device else out
            if status.count != elements or not (came == sent - rank + other).all():
                bad.append((kind.__name__, elements, sends_device, takes_device))
            send = channel.prepare_send(array, other, 5)
            receive = channel.prepare_receive(out, other, 5)
            for _ in range(2):
                receive.start(); send.start(); receive.result(); send.result()
            pending = channel.start_receive(out, other)
            channel.start_send(array, other).result()
            pending.result()
channel.close()
tell(str(bad))
"""
)


@needs_driver
@mpis
def test_messages_of_device_memory(path, tmp_path):
    told, _ = run_ranks(path, 2, MESSAGES.replace("DRIVER", repr(str(DRIVER))), tmp_path)
    assert told == ["[]"] * 2


WRONG = (
    ARRAYS
    + """
channel = ropewalk.Channel()
array = np.zeros((4, 6))
class Detached:
    @property
    def __cuda_array_interface__(self): raise RuntimeError("the tensor needs a gradient")
for one, words in (
    (Interface(array, strides=(8, 32)), "array: not contiguous (strides (8, 32))"),
    (Detached(), "array: the tensor needs a gradient; detach it first"),
):
    try: channel.send(one, 0)
    except ropewalk.ArgumentError as error: tell(str(str(error).startswith(words)))
try: channel.receive(Interface(array, read_only=True), 0)
except ropewalk.ArgumentError as error: tell(str(str(error).startswith("out: read-only")))
try: ropewalk.Communicator().allreduce(Interface(array))
except ropewalk.ArgumentError as error: tell(str(str(error).startswith("array: ")))
"""
)


@needs_driver
@mpis
def test_arrays_that_are_refused(path, tmp_path):
    told, _ = run_ranks(path, 1, WRONG.replace("DRIVER", repr(str(DRIVER))), tmp_path)
    assert told == ["True"] * 4
