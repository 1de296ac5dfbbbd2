"""The names of the warp schedulers' policies (ppt_gpu/sm/README.md), for commands, hardware files and loops."""

POLICIES = ("lrr", "gto", "gto_launch", "gto_block")
