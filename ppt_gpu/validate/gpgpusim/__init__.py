"""GPGPU-Sim."""
