"""This module has allreduce, reduce and reduce_scatter of a process group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import (
    AllreduceCoalescedOptions,
    AllreduceOptions,
    ReduceOptions,
    ReduceScatterOptions,
)

from ..exceptions import ArgumentError, Error
from . import tensors as of
from .base import COMPLETE, Base, Form, make, refusing, serving
from .exceptions import for_torch
from .profiling import entered, leave, profiling
from .sparse import add_up, is_sparse
from .tensors import CODES, Tensor
from .work import FinishedWork, PendingWork

_ALLREDUCE = AllreduceOptions()
_COALESCED = AllreduceCoalescedOptions()
_REDUCE = ReduceOptions()
_REDUCE_SCATTER = ReduceScatterOptions()
# These are values that a caller may give in the place of options.
_OF_A_REDUCTION = {"op": "reduceOp", "timeout": "timeout"}


def _multiplied(tensor: Tensor, op: dist.ReduceOp) -> Tensor:
    """Returns what is summed: the tensor itself, or a copy multiplied by PREMUL_SUM's factor."""
    by = of.factor(op)
    if by is None:
        return tensor
    return tensor.detach().clone().mul_(by)  # raises where the type would change


class Reductions(Base):
    def allreduce(
        self,
        tensors: Sequence[Tensor],
        opts: AllreduceOptions = _ALLREDUCE,
        timeout: timedelta | None = None,
        op: dist.ReduceOp | None = None,
    ) -> dist.Work:
        """Reduces one tensor in place. A small tensor takes this path, so each question about it is
        asked once, and here."""
        if op is not None or not isinstance(opts, AllreduceOptions) or type(tensors) is not list:
            return self._allreduce_otherwise(tensors, opts if op is None else op)
        if len(tensors) != 1:
            return self._allreduce(tensors, opts)
        tensor = tensors[0]
        code = CODES.get((tensor.dtype, hash(opts.reduceOp)))
        address = of.place(tensor)
        if code is None or address == 0:
            return self._allreduce(tensors, opts)
        record = entered("all_reduce", (tensor,)) if profiling() else None
        # One rank alone has nothing to wait for, so that another thread would cost more.
        try:
            if opts.asyncOp and self._group_size > 1:
                started = self._ranks.allreduce(address, address, tensor.numel(), *code, tensor)
                return self._named(PendingWork((started,), [tensor]))
            self._ranks.allreduce(address, address, tensor.numel(), *code, None)
        except Error as error:
            raise for_torch(error, self._members) from None
        finally:
            if record is not None:
                leave(record)
        return FinishedWork([tensor]) if opts.asyncOp else COMPLETE

    @refusing
    def _allreduce_otherwise(self, tensors: Sequence[Tensor], opts: Any) -> dist.Work:
        """Serves the forms of ProcessGroup.allreduce that take an operation, or a single tensor."""
        options = opts
        if not isinstance(opts, AllreduceOptions):
            options = AllreduceOptions()
            options.reduceOp = opts
        return self._allreduce([of.only(tensors, "tensors")], options)

    @serving("all_reduce")
    def _allreduce(self, tensors: Sequence[Tensor], opts: AllreduceOptions) -> dist.Work:
        """Reduces a tensor of any layout in memory, by any operation."""
        if len(tensors) == 1 and is_sparse(tensors[0]):
            return add_up(self, tensors[0], opts.reduceOp, not opts.asyncOp)
        return self._reduce_all(list(tensors), opts.reduceOp, not opts.asyncOp)

    @serving("all_reduce")
    def allreduce_coalesced(
        self, tensors: Sequence[Tensor], opts: AllreduceCoalescedOptions = _COALESCED
    ) -> dist.Work:
        """Reduces any number of tensors in place. Tensors of one type are reduced together."""
        if not tensors:
            raise ArgumentError("tensors: none, expected at least one")
        return self._reduce_all(list(tensors), opts.reduceOp, not opts.asyncOp)

    def _reduce_all(self, tensors: list[Tensor], op: dist.ReduceOp, waits: bool) -> dist.Work:
        tensors = [of.held(each, "tensor") for each in tensors]
        calls, steps, kept = [], [], []
        for dtype in dict.fromkeys(each.dtype for each in tensors):
            same = [each for each in tensors if each.dtype == dtype]
            joined, after = self._joined(same, op)
            address = joined.data_ptr()
            code = of.codes(dtype, op)
            calls.append((self._ranks.allreduce, address, address, joined.numel(), *code))
            steps.append(after)
            kept.append(joined)

        def put() -> None:
            for step in steps:
                step()

        return make(waits, calls, tensors, (tensors, kept), put)

    def _joined(
        self, tensors: list[Tensor], op: dist.ReduceOp
    ) -> tuple[Tensor, Callable[[], None]]:
        """Returns the memory to reduce, and a function that is to be called when it is reduced."""
        first = tensors[0]
        by = of.factor(op)
        if len(tensors) == 1 and of.plain(first) and by is None:
            joined = first
        else:
            joined = of.flat(tensors)
            if by is not None:
                joined.mul_(by)  # raises where the type would change

        def put() -> None:
            if of.is_average(op):
                of.divide(joined, self._group_size)
            if joined is not first:
                of.deal(joined, tensors)

        return joined, put

    @serving("reduce", Form(ReduceOptions, 1, {"root": "rootRank", **_OF_A_REDUCTION}))
    def reduce(
        self, tensors: Sequence[Tensor] | Tensor, opts: ReduceOptions = _REDUCE
    ) -> dist.Work:
        tensor = of.one(tensors, "tensors")
        op = opts.reduceOp
        code = of.codes(tensor.dtype, op)
        given = _multiplied(of.compact(tensor), op)
        is_root = opts.rootRank == self._my_rank
        address = given.data_ptr()

        def put() -> None:
            if is_root and of.is_average(op):
                of.divide(given, self._group_size)
            if is_root and given is not tensor:
                of.put(given, tensor)

        call = (self._ranks.reduce, address, address, given.numel(), *code, opts.rootRank)
        return make(not opts.asyncOp, [call], [tensor], (tensor, given), put)

    @serving("reduce_scatter", Form(ReduceScatterOptions, 2, _OF_A_REDUCTION))
    def reduce_scatter(
        self,
        outputs: Sequence[Tensor] | Tensor,
        inputs: Sequence[Sequence[Tensor]] | Sequence[Tensor],
        opts: ReduceScatterOptions = _REDUCE_SCATTER,
    ) -> dist.Work:
        """Gives rank r the sum of all ranks' r-th tensors. The r-th tensor may differ in size from
        the others."""
        output = of.one(outputs, "outputs")
        given = [of.held(each, "inputs") for each in of.only_list(inputs)]
        if len(given) != self._group_size:
            raise ArgumentError(f"inputs: {len(given)} tensors, expected {self._group_size}")
        for each in given:
            if each.dtype != given[0].dtype:
                raise ArgumentError(f"inputs: {each.dtype}, expected {given[0].dtype} as others")
        joined = of.flat(given)
        return self._scatter_sum([(output, joined, [each.numel() for each in given])], opts)

    def reduce_scatter_single(
        self,
        output: Tensor,
        given: Tensor,
        opts: ReduceScatterOptions = _REDUCE_SCATTER,
    ) -> dist.Work:
        """Reduces a tensor and gives each rank an equal part. Two tensors that can be used as they
        are take this path, so each question about them is asked once, and here."""
        code = CODES.get((given.dtype, hash(opts.reduceOp)))
        count = output.numel()
        source, target = of.place(given), of.place(output)
        if (
            code is None
            or output.dtype != given.dtype
            or given.numel() != count * self._group_size
            or source == 0
            or target == 0
            or of.overlap(output, given)
        ):
            return self._reduce_scatter_otherwise(output, given, opts)
        kept = (output, given) if opts.asyncOp else None
        counts = [count] * self._group_size
        record = entered("reduce_scatter", (given,)) if profiling() else None
        try:
            started = self._ranks.reduce_scatter(source, target, counts, *code, kept)
        except Error as error:
            raise for_torch(error, self._members) from None
        finally:
            if record is not None:
                leave(record)
        return self._named(PendingWork((started,), [output])) if opts.asyncOp else COMPLETE

    @serving("reduce_scatter")
    def _reduce_scatter_otherwise(
        self, output: Tensor, given: Tensor, opts: ReduceScatterOptions
    ) -> dist.Work:
        return self._scatter_sum([self._dealt(output, given)], opts)

    @serving("reduce_scatter")
    def reduce_scatter_single_coalesced(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        opts: ReduceScatterOptions = _REDUCE_SCATTER,
    ) -> dist.Work:
        pairs = zip(outputs, inputs, strict=True)
        return self._scatter_sum([self._dealt(*pair) for pair in pairs], opts)

    def _dealt(self, output: Tensor, given: Tensor) -> tuple[Tensor, Tensor, list[int]]:
        output = of.held(output, "output")
        if given.numel() != output.numel() * self._group_size:
            raise ArgumentError(
                f"input: {given.numel()} elements, expected {self._group_size} times the "
                f"{output.numel()} of the output"
            )
        whole = of.dense(given, "input")
        if of.overlap(output, whole):
            whole = whole.clone()
        return output, whole, [output.numel()] * self._group_size

    def _scatter_sum(
        self,
        parts: Sequence[tuple[Tensor, Tensor, list[int]]],
        opts: ReduceScatterOptions,
    ) -> dist.Work:
        """Reduces and scatters each part, which consists of the output, the input, and the number
        of elements that each rank gets."""
        op = opts.reduceOp
        calls, results, kept = [], [], []
        for output, given, counts in parts:
            if output.numel() != counts[self._my_rank] or output.dtype != given.dtype:
                raise ArgumentError(
                    f"output: {output.numel()} elements of {output.dtype}, expected "
                    f"{counts[self._my_rank]} of {given.dtype}"
                )
            summed = _multiplied(given, op)
            result = of.compact(output)
            code = of.codes(given.dtype, op)
            calls.append(
                (self._ranks.reduce_scatter, summed.data_ptr(), result.data_ptr(), counts, *code)
            )
            results.append(result)
            kept.append(summed)
        outputs = [part[0] for part in parts]

        def put() -> None:
            for output, result in zip(outputs, results, strict=True):
                if of.is_average(op):
                    of.divide(result, self._group_size)
                if result is not output:
                    of.put(result, output)

        return make(not opts.asyncOp, calls, outputs, (outputs, results, kept), put)

    # Before version 2.13 torch called these methods by the following names.
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
