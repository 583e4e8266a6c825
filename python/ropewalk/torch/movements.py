"""This module has the calls of a process group that move data without reducing it: broadcast, the
gathers, scatter and the all-to-alls. It has the barrier, too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import torch.distributed as dist
from torch._C._distributed_c10d import (
    AllgatherOptions,
    AllToAllOptions,
    BarrierOptions,
    BroadcastOptions,
    GatherOptions,
    ScatterOptions,
)

from ..exceptions import ArgumentError
from . import tensors as of
from .base import Base, Form, make, serving
from .tensors import Tensor

_BROADCAST = BroadcastOptions()
_ALLGATHER = AllgatherOptions()
_GATHER = GatherOptions()
_SCATTER = ScatterOptions()
_ALLTOALL = AllToAllOptions()
_BARRIER = BarrierOptions()


# These are the values that a caller may give in the place of options.
_OF_A_ROOT = {"root": "rootRank", "timeout": "timeout"}
_TIMEOUT = {"timeout": "timeout"}


def _same_size(tensors: Sequence[Tensor], like: Tensor, size: int, name: str) -> list[Tensor]:
    """Returns the tensors that have the elements, which are as many as those of `like`."""
    if len(tensors) != size:
        raise ArgumentError(f"{name}: {len(tensors)} tensors, expected one a rank, {size}")
    found = [of.held(each, name) for each in tensors]
    for each in found:
        if each.numel() != like.numel() or each.dtype != like.dtype:
            raise ArgumentError(
                f"{name}: {each.numel()} elements of {each.dtype}, expected {like.numel()} of "
                f"{like.dtype}"
            )
    return found


class Movements(Base):
    @serving("barrier")
    def barrier(
        self, opts: BarrierOptions | timedelta = _BARRIER, timeout: timedelta | None = None
    ) -> dist.Work:
        waits = isinstance(opts, BarrierOptions) and not opts.asyncOp
        return make(waits, [(self._ranks.barrier,)], [], ())

    @serving("broadcast", Form(BroadcastOptions, 1, _OF_A_ROOT))
    def broadcast(
        self, tensors: Sequence[Tensor] | Tensor, opts: BroadcastOptions = _BROADCAST
    ) -> dist.Work:
        tensor = of.one(tensors, "tensors")
        given = of.compact(tensor)

        def put() -> None:
            if given is not tensor and opts.rootRank != self._my_rank:
                of.put(given, tensor)

        call = (self._ranks.broadcast, given.data_ptr(), given.nbytes, opts.rootRank)
        return make(not opts.asyncOp, [call], [tensor], (tensor, given), put)

    # ---- gathers

    @serving("all_gather", Form(AllgatherOptions, 2, _TIMEOUT))
    def allgather(
        self,
        outputs: Sequence[Sequence[Tensor]] | Sequence[Tensor],
        inputs: Sequence[Tensor] | Tensor,
        opts: AllgatherOptions = _ALLGATHER,
    ) -> dist.Work:
        return self._gather_lists([(of.only_list(outputs), of.only(inputs, "inputs"))], opts)

    @serving("all_gather")
    def allgather_coalesced(
        self,
        output_lists: Sequence[Sequence[Tensor]],
        inputs: Sequence[Tensor],
        opts: AllgatherOptions = _ALLGATHER,
    ) -> dist.Work:
        """Gathers several tensors at once: output_lists[r][i] gets the i-th input of rank r."""
        pairs = [([each[i] for each in output_lists], given) for i, given in enumerate(inputs)]
        return self._gather_lists(pairs, opts)

    def _gather_lists(
        self, pairs: Sequence[tuple[Sequence[Tensor], Tensor]], opts: AllgatherOptions
    ) -> dist.Work:
        calls, steps, kept = [], [], []
        for wanted, tensor in pairs:
            given = of.dense(tensor, "inputs")
            outputs = _same_size(wanted, given, self._group_size, "outputs")
            whole = outputs[0]
            if not of.lie_together(outputs):
                whole = of.new(given.numel() * self._group_size, given.dtype)
                steps.append((whole, outputs))
            given = self._apart(given, whole.data_ptr(), given.nbytes * self._group_size)
            calls.append((self._ranks.allgather, given.data_ptr(), whole.data_ptr(), given.nbytes))
            kept.append((given, whole, outputs))

        def put() -> None:
            for whole, outputs in steps:
                of.deal(whole, outputs)

        flat = [each for outputs, _ in pairs for each in outputs]
        return make(not opts.asyncOp, calls, flat, kept, put)

    def _apart(self, given: Tensor, begin: int, length: int) -> Tensor:
        """Returns the input of an allgather into that memory, or a copy of it where it lies in the
        part of another rank."""
        own = begin + self._my_rank * given.nbytes
        first, end = given.data_ptr(), given.data_ptr() + given.nbytes
        overlaps = first != own and first < begin + length and begin < end
        return given.clone() if overlaps else given

    @serving("all_gather")
    def all_gather_single(
        self, output: Tensor, given: Tensor, opts: AllgatherOptions = _ALLGATHER
    ) -> dist.Work:
        return self._gather_whole([(output, given)], opts)

    @serving("all_gather")
    def all_gather_single_coalesced(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        opts: AllgatherOptions = _ALLGATHER,
    ) -> dist.Work:
        return self._gather_whole(list(zip(outputs, inputs, strict=True)), opts)

    def _gather_whole(
        self, pairs: Sequence[tuple[Tensor, Tensor]], opts: AllgatherOptions
    ) -> dist.Work:
        calls, steps, kept = [], [], []
        for target, tensor in pairs:
            output = of.held(target, "output")
            given = of.dense(tensor, "input")
            wanted = given.numel() * self._group_size
            if output.numel() != wanted or output.dtype != given.dtype:
                raise ArgumentError(
                    f"output: {output.numel()} elements of {output.dtype}, expected {wanted} of "
                    f"{given.dtype}"
                )
            whole = output if of.plain(output) else of.new(wanted, given.dtype)
            if whole is not output:
                steps.append((whole, output))
            given = self._apart(given, whole.data_ptr(), whole.nbytes)
            calls.append((self._ranks.allgather, given.data_ptr(), whole.data_ptr(), given.nbytes))
            kept.append((given, whole))

        def put() -> None:
            for whole, output in steps:
                of.put(whole.view(output.shape), output)

        return make(not opts.asyncOp, calls, [output for output, _ in pairs], (pairs, kept), put)

    @serving("gather", Form(GatherOptions, 2, _OF_A_ROOT))
    def gather(
        self,
        outputs: Sequence[Sequence[Tensor]] | Sequence[Tensor],
        inputs: Sequence[Tensor] | Tensor,
        opts: GatherOptions = _GATHER,
    ) -> dist.Work:
        given = of.dense(of.only(inputs, "inputs"), "inputs")
        results: list[Tensor] = []
        whole = given
        if opts.rootRank == self._my_rank:
            results = _same_size(of.only_list(outputs), given, self._group_size, "outputs")
            whole = of.new(given.numel() * self._group_size, given.dtype)

        def put() -> None:
            of.deal(whole, results)

        addresses = (given.data_ptr(), whole.data_ptr())
        call = (self._ranks.gather, *addresses, given.nbytes, opts.rootRank)
        return make(not opts.asyncOp, [call], results, (given, whole, results), put)

    @serving("scatter", Form(ScatterOptions, 2, _OF_A_ROOT))
    def scatter(
        self,
        outputs: Sequence[Tensor] | Tensor,
        inputs: Sequence[Sequence[Tensor]] | Sequence[Tensor],
        opts: ScatterOptions = _SCATTER,
    ) -> dist.Work:
        output = of.one(outputs, "outputs")
        result = of.compact(output)
        whole = result
        if opts.rootRank == self._my_rank:
            given = _same_size(of.only_list(inputs), output, self._group_size, "inputs")
            whole = of.flat(given)

        def put() -> None:
            if result is not output:
                of.put(result, output)

        addresses = (whole.data_ptr(), result.data_ptr())
        call = (self._ranks.scatter, *addresses, result.nbytes, opts.rootRank)
        return make(not opts.asyncOp, [call], [output], (whole, result), put)

    # ---- all-to-alls

    @serving("all_to_all", Form(AllToAllOptions, 4, _TIMEOUT))
    def all_to_all_single(
        self,
        output: Tensor,
        given: Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: AllToAllOptions = _ALLTOALL,
    ) -> dist.Work:
        """Sends rows to each rank. The splits count rows of the first axis. Where they are empty,
        each rank gets equally many rows."""
        output = of.held(output, "output")
        whole = of.dense(given, "input")
        if output.dtype != whole.dtype:  # as many bytes of another type are other numbers
            raise ArgumentError(f"output: {output.dtype}, expected {whole.dtype} as the input")
        result = of.compact(output)
        if of.overlap(whole, result):
            whole = whole.clone()
        sends = self._split_bytes(whole, input_splits, "input")
        receives = self._split_bytes(result, output_splits, "output")

        def put() -> None:
            if result is not output:
                of.put(result, output)

        call = (self._ranks.alltoallv, whole.data_ptr(), sends, result.data_ptr(), receives)
        return make(not opts.asyncOp, [call], [output], (whole, result, output), put)

    def _split_bytes(self, tensor: Tensor, splits: Sequence[int], name: str) -> list[int]:
        size = self._group_size
        rows = tensor.shape[0] if tensor.dim() > 0 else 1
        if not splits:
            if rows % size != 0:
                raise ArgumentError(f"{name}: {rows} rows, expected a multiple of {size}")
            return [tensor.nbytes // size] * size
        if len(splits) != size or sum(splits) != rows:
            raise ArgumentError(
                f"{name}_split_sizes: {list(splits)}, expected {size} numbers with the sum {rows}"
            )
        row = tensor.nbytes // rows if rows > 0 else 0
        return [count * row for count in splits]

    @serving("all_to_all")
    def alltoall(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        opts: AllToAllOptions = _ALLTOALL,
    ) -> dist.Work:
        if len(outputs) != self._group_size or len(inputs) != self._group_size:
            raise ArgumentError(f"tensors: expected lists of one a rank, {self._group_size}")
        outputs = [of.held(each, "tensors") for each in outputs]
        inputs = [of.held(each, "tensors") for each in inputs]
        for each in (*outputs, *inputs):
            if each.dtype != inputs[0].dtype:
                raise ArgumentError(f"tensors: {each.dtype}, expected {inputs[0].dtype} as others")
        whole = of.flat(inputs)
        results = of.new(sum(each.numel() for each in outputs), outputs[0].dtype)
        sends = [each.nbytes for each in inputs]
        receives = [each.nbytes for each in outputs]

        def put() -> None:
            of.deal(results, outputs)

        call = (self._ranks.alltoallv, whole.data_ptr(), sends, results.data_ptr(), receives)
        return make(not opts.asyncOp, [call], outputs, (whole, results, outputs), put)

    # Before version 2.13 torch called these methods by the following names.
    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    alltoall_base = all_to_all_single
