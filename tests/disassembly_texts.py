"""Disassembly as the tools print it."""

#: a kernel with a loop, a division with a slow path, a 64-bit division, and padding, as nvdisasm -c -hex prints it
NVDISASM = """\
\t.target\tsm_80

//--------------------- .text.halve --------------------------
\t.section\t.text.halve,"ax",@progbits
        .other          halve,@"STO_CUDA_ENTRY STV_DEFAULT"
halve:
.text.halve:
        /*0000*/                   MOV R1, c[0x0][0x28] ;             /* 0x00000a0000017a02 */
                                                                      /* 0x000fe40000000f00 */
.L_x_1:
        /*0010*/                   MUFU.RCP R2, R1 ;                  /* 0x0000000100027308 */
                                                                      /* 0x000e240000001000 */
        /*0020*/                   FCHK P0, R3, R1 ;
        /*0030*/              @!P0 BRA `(.L_x_2) ;
        /*0040*/                   MOV R4, 0x60 ;
        /*0050*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath) ;
        /*0060*/                   MOV R2, R5 ;
.L_x_2:
        /*0070*/                   CALL.REL.NOINC `($__internal_1_$__cuda_sm20_div_u64) ;
        /*0080*/              @!P1 CALL.REL.NOINC `($__internal_1_$__cuda_sm20_div_u64) ;
        /*0090*/               @P0 BRA `(.L_x_1) ;
        /*00a0*/                   EXIT ;
        .weak           $__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath
$__internal_0_$__cuda_sm3x_div_rn_noftz_f32_slowpath:
        /*00b0*/                   FMUL R5, R5, R5 ;
        /*00c0*/                   RET.REL.NODEC R4 `(halve) ;
$__internal_1_$__cuda_sm20_div_u64:
        /*00d0*/                   IMAD.WIDE.U32 R6, R7, R8, R6 ;
        /*00e0*/                   NOP ;
        /*00f0*/                   RET.REL.NODEC R4 `(halve) ;
.L_x_9:
        /*0100*/                   BRA `(.L_x_9);
        /*0110*/                   NOP;
.L_x_10:
"""
CUOBJDUMP = """\
\tcode for sm_70
\t\tFunction : copy
\t.headerflags\t@"EF_CUDA_SM70 EF_CUDA_PTX_SM(EF_CUDA_SM70)"
        /*0000*/              @!PT SHFL.IDX PT, RZ, RZ, RZ, RZ ;                 /* 0x000000fffffff389 */
                                                                                 /* 0x000fe200000e00ff */
        /*0010*/                   LDG.E.SYS R0, [R2] ;                          /* 0x0000000002007381 */
                                                                                 /* 0x000ea200001ee900 */
        /*0020*/               @P0 BRA 0x10 ;                                    /* 0xffffffe000000947 */
                                                                                 /* 0x000fea000383ffff */
        /*0030*/                   EXIT ;                                        /* 0x000000000000794d */
                                                                                 /* 0x000fea0003800000 */
        /*0040*/                   BRA 0x40;                                     /* 0xfffffff000007947 */
                                                                                 /* 0x000fc0000383ffff */
"""
