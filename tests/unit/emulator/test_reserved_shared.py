"""The shared memory that the system reserves: apart from the kernel's, and not counted as the kernel's."""

import numpy as np
from jit_kernels import check_against_interpreter, pointer, text_case

from ppt_gpu.emulator.launch.layout import RESERVED, layout
from ppt_gpu.workload.workload import Buffer

#: a word of the reserved region changes; the kernel's own first word must not
KERNEL = """
.visible .entry k(.param .u64 p)
{
    .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .align 4 .b8 own[20];
    ld.param.u64 %d1, [p];
    st.shared.u32 [own], 7; st.shared.u32 [own+16], 8;
    mov.u32 %r1, %reserved_smem_offset_1; cvt.u64.u32 %d2, %r1; cvta.shared.u64 %d2, %d2;
    red.or.release.cta.b32 [%d2], -1;
    mov.u32 %r2, %reserved_smem_offset_begin; st.shared.u32 [%r2], -1;
    ld.shared.u32 %r3, [own]; ld.shared.u32 %r4, [own+16];
    mov.u32 %r5, %total_smem_size; mov.u32 %r6, %aggr_smem_size; mov.u32 %r7, %reserved_smem_offset_cap;
    mov.u32 %r8, %reserved_smem_offset_end;
    st.global.v4.u32 [%d1], {%r3, %r4, %r5, %r6}; st.global.v4.u32 [%d1+16], {%r7, %r8, %r1, %r2};
    ret;
}"""


def test_the_reserved_region_is_apart_from_the_kernels() -> None:
    case = text_case(KERNEL, (1,), (1,), [pointer("a")], [Buffer("a", "u32", 8)], dynamic=12)
    memory, trace = check_against_interpreter(case)
    begin = 128  # behind 20 B, and 12 B of dynamic memory from byte 32
    expected = [7, 8, 44, begin + RESERVED, RESERVED, begin + RESERVED, begin + RESERVED // 2, begin]
    assert memory.view("a", "u4").tolist() == expected
    assert trace.warnings == ()
    assert layout(case.module, case.kernel, 12).shared_bytes == 44


def test_other_kernels_have_none() -> None:
    case = text_case(KERNEL.replace("reserved_smem_offset", "envreg0; //"), (1,), (1,), [pointer("a")], [])
    places = layout(case.module, case.kernel, 12)
    assert (places.reserved, places.shared_room) == (-1, 44)
    assert np.array(list(places.shared.values())).tolist() == [0]
