"""SMs with collector units, as GPGPU-Sim has them."""
