MemcpyHtoD,0x7f1000000000
kernel-1.traceg
