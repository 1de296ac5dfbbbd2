"""The special registers of the PTX ISA, without their leading %."""

from __future__ import annotations

VECTORS = ("tid", "ntid", "ctaid", "nctaid", "clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid")
_SCALARS = (
    "laneid warpid nwarpid smid nsmid gridid is_explicit_cluster cluster_ctarank cluster_nctarank "
    "lanemask_eq lanemask_le lanemask_lt lanemask_ge lanemask_gt clock clock_hi clock64 "
    "globaltimer globaltimer_lo globaltimer_hi reserved_smem_offset_begin reserved_smem_offset_end "
    "reserved_smem_offset_cap reserved_smem_offset_0 reserved_smem_offset_1 total_smem_size aggr_smem_size "
    "dynamic_smem_size current_graph_exec"
)

SPECIALS: frozenset[str] = frozenset(
    [f"{name}.{axis}" for name in VECTORS for axis in "xyzw"]
    + list(VECTORS)
    + _SCALARS.split()
    + [f"pm{i}" for i in range(8)]
    + [f"pm{i}_64" for i in range(8)]
    + [f"envreg{i}" for i in range(32)]
)

#: 0 in a functional run: what the driver sets but for the workspace of a grid_group, and performance counters
ZEROS: tuple[str, ...] = (
    *(f"envreg{i}" for i in range(32) if i not in (1, 2)),
    *(f"pm{i}" for i in range(8)),
    *(f"pm{i}_64" for i in range(8)),
    "current_graph_exec",
)
