"""The ranks of `ropewalk bench torch` have cores of their own, unless they are told not to."""

import os

import pytest

pytest.importorskip("torch")

from ropewalk import cores
from ropewalk.bench import pytorch, pytorch_ranks


def allowed(options, gloo, ours):
    import torch.distributed as dist

    masks = [None] * dist.get_world_size()
    dist.all_gather_object(masks, sorted(os.sched_getaffinity(0)), gloo)
    return [{"masks": masks}]


@pytest.mark.parametrize("words", [[], ["--no-bind"]])
def test_ranks_have_cores_of_their_own(words, tmp_path):
    options = pytorch.options_of(words)
    (row,) = pytorch_ranks._run(2, allowed, options, str(tmp_path))
    if words:
        assert row["masks"] == [sorted(os.sched_getaffinity(0))] * 2
    else:
        assert row["masks"] == [sorted(cores.share_of_rank(rank, 2)) for rank in range(2)]
        apart = set(row["masks"][0]).isdisjoint(row["masks"][1])
        assert apart == (cores.allowed_cores() >= 2)
