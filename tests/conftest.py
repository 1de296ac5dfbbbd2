"""For all tests: caches in a folder of their own, so that no test sees what the user's predictions kept."""

import os
import tempfile

_FOLDER = tempfile.TemporaryDirectory(prefix="ppt_gpu-tests-")
os.environ["PPT_GPU_CACHE"] = _FOLDER.name
