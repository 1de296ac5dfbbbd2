"""For all tests: caches in a folder of their own, so that no test sees what the user's predictions kept.

What tests report as `record_property("worst anomaly", text)` is printed at the end, whichever process found it.
"""

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# A slow or busy machine is no error.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_FOLDER = tempfile.TemporaryDirectory(prefix="ppt_gpu-tests-")
os.environ["PPT_GPU_CACHE"] = _FOLDER.name
os.environ["PPT_GPU_CONFIG"] = os.path.join(_FOLDER.name, "config")
os.environ.pop("COLUMNS", None)  # reports are 120 columns wide


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = [value for report in reports for name, value in report.user_properties if name == "worst anomaly"]
    for text in sorted(found, reverse=True):
        terminalreporter.write_line(f"worst anomaly {text}")
