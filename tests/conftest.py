"""For all tests: caches in a folder of their own, so that no test sees what the user's predictions kept.

What tests report as `record_property("worst anomaly", text)` is printed at the end, whichever process found it.
"""

import gc
import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from ppt_gpu.threads import VARIABLE, processors

# A slow or busy machine is no error.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

_FOLDER = tempfile.TemporaryDirectory(prefix="ppt_gpu-tests-")
os.environ["PPT_GPU_CACHE"] = _FOLDER.name
os.environ["PPT_GPU_CONFIG"] = os.path.join(_FOLDER.name, "config")
os.environ.pop("COLUMNS", None)  # reports are 120 columns wide
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # threads of one process would wait for processors that another one has
    os.environ.setdefault(VARIABLE, str(max(1, processors() // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))))

#: Files of tests, the longest first: begun last, one of them would keep one process busy alone. Those that compile the
#: same loops stand apart.
LONGEST = (
    "property/test_chip_agreement.py",
    "unit/test_pipeline.py",
    "golden/test_pages.py",
    "golden/test_readme.py",
    "property/test_sm_agreement.py",
    "property/test_exec_agree.py",
    "property/test_staged_agreement.py",
    "property/test_more_hardware_is_not_slower.py",
    "unit/scale/test_irregular.py",
    "unit/exec/test_wgmma.py",
    "unit/scale/test_block_timing.py",
    "unit/exec/test_repeated_segments.py",
    "unit/analytic/test_degenerate_kernels.py",
    "unit/cluster/test_mpi.py",
    "unit/spec/test_collectors.py",
    "property/test_trace_without_results.py",
    "unit/exec/test_matrix_products.py",
    "unit/sm/test_dram_load.py",
    "unit/test_published.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {os.path.join(os.path.dirname(__file__), name): number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(str(item.path), len(place)))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Ten thousand tests are half a million objects that stay: the garbage collector does not look at them meanwhile.

    They go to its oldest generation at once. They do not stay frozen, with which the parser could not do the same.
    """
    gc.disable()
    yield
    gc.freeze()
    gc.unfreeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = [value for report in reports for name, value in report.user_properties if name == "worst anomaly"]
    for text in sorted(found, reverse=True):
        terminalreporter.write_line(f"worst anomaly {text}")
