"""GPUPerf."""
