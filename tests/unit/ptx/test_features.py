import pytest

from ppt_gpu.common.errors import LackError, PptError
from ppt_gpu.ptx.features import needs, require, require_clusters
from ppt_gpu.ptx.parsing.parser import parse_module


@pytest.mark.parametrize(
    ("instruction", "least"),
    [
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%f1,%f1}, {%r1}, {%r1}, {%f1,%f1};", (7, 0)),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f1}, {%r1}, {%r1}, {%f1,%f1};", (8, 0)),
        ("cp.async.ca.shared.global [%rd1], [%rd1], 4;", (8, 0)),
        ("cp.async.bulk.commit_group;", (9, 0)),
        ("redux.sync.add.s32 %r1, %r1, -1;", (8, 0)),
        ("shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;", None),
        ("fma.rn.f32 %f1, %f1, %f1, %f1;", None),
    ],
)
def test_needs(instruction: str, least: tuple[int, int] | None) -> None:
    registers = ".reg .f32 %f<2>; .reg .b32 %r<2>; .reg .b64 %rd<2>;"
    text = f".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {{ {registers}\n{instruction}\nret; }}"
    module = parse_module(text, "k.ptx")
    (first, *_) = module.kernels["k"].instructions
    found = needs(first)
    assert (found and found[0]) == least
    if least:
        require(module.kernels["k"].instructions, module, least, "this")
        with pytest.raises(PptError, match=r"which old .* lacks") as caught:
            require(module.kernels["k"].instructions, module, (least[0] - 1, 9), "old")
        assert caught.value.line == 5
    else:
        require(module.kernels["k"].instructions, module, (1, 0), "old")


def test_clusters_came_with_hopper() -> None:
    require_clusters(1, (8, 0), "a100")
    require_clusters(4, (9, 0), "h100")
    with pytest.raises(LackError, match=r"clusters of 4 blocks needs clusters, which a100 \(compute capability 8.0\)"):
        require_clusters(4, (8, 0), "a100")


def test_wgmma_is_of_hopper_alone() -> None:
    text = ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { wgmma.fence.sync.aligned; ret; }"
    module = parse_module(text, "k.ptx")
    require(module.kernels["k"].instructions, module, (9, 0), "h100")
    for later in ((10, 0), (10, 3), (12, 0)):
        with pytest.raises(PptError, match="needs tensor cores that warp groups share") as caught:
            require(module.kernels["k"].instructions, module, later, "this")
        assert caught.value.hint == "it takes a GPU of compute capability 9.0 or later, but before 10.0"
