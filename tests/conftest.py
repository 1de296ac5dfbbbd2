"""For all tests: caches in a folder of their own, so that no test sees what the user's predictions kept.

What tests report as `record_property("worst anomaly", text)` is printed at the end, whichever process found it.
"""

import gc
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

from ppt_gpu.common.threads import VARIABLE, processors

# The default run draws the same examples every time; `--hypothesis-seed` draws others. A slow machine is no error.
settings.register_profile(
    "fixed",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("seeded", settings.get_profile("fixed"), derandomize=False)
settings.load_profile("fixed")
# Hypothesis would mix the constants of all loaded modules of ppt_gpu into what it draws: the examples would change with
# the order of the tests and with every constant that is changed. There is no setting for that.
setattr(providers, "is_local_module_file", lambda path: False)  # noqa: B010

#: environment variable by which a fresh seed reaches the processes of pytest-xdist
SEED = "PPT_GPU_TEST_SEED"

_FOLDER = tempfile.TemporaryDirectory(prefix="ppt_gpu-tests-")
os.environ["PPT_GPU_CACHE"] = _FOLDER.name
os.environ["PPT_GPU_CONFIG"] = os.path.join(_FOLDER.name, "config")
os.environ.pop("PPT_GPU_CACHE_LIMIT", None)
# Processes that tests start import this checkout too, wherever they run, and share what was compiled.
_PATH = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH"))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, _PATH))
os.environ.pop("COLUMNS", None)  # reports are 120 columns wide
if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # threads of one process would wait for processors that another one has
    os.environ.setdefault(VARIABLE, str(max(1, processors() // int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))))

#: Files of tests, the longest first: begun last, one of them would keep one process busy alone. Those that compile the
#: same loops stand apart.
LONGEST = (
    "property/test_chip_agreement.py",
    "property/test_every_form.py",
    "golden/test_readme.py",
    "unit/test_pipeline.py",
    "unit/spec/test_collectors.py",
    "golden/test_pages.py",
    "unit/scale/test_irregular.py",
    "property/test_sm_agreement.py",
    "unit/test_traces_kept.py",
    "property/test_exec_agree.py",
    "property/test_staged_agreement.py",
    "property/test_more_hardware_is_not_slower.py",
    "unit/cluster/test_mpi.py",
    "unit/sm/test_dram_load.py",
    "property/test_ptx_robustness.py",
    "unit/emulator/test_matrix_products.py",
    "unit/test_blocks_that_share.py",
    "unit/test_levels_kernels.py",
    "unit/emulator/test_wgmma.py",
    "unit/emulator/test_atomic_forms.py",
    "unit/test_compiled_cache.py",
    "property/test_trace_without_results.py",
    "property/test_lower_passes.py",
    "unit/test_published.py",
)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """`--hypothesis-seed=N` draws the examples of seed N; `fresh` stands for a new seed, the same in every process."""
    seed = config.getoption("--hypothesis-seed")
    if seed is None:
        return
    settings.load_profile("seeded")
    if seed == "fresh":
        if not hasattr(config, "workerinput"):
            os.environ[SEED] = str(secrets.randbelow(1 << 32))
        config.option.hypothesis_seed = os.environ[SEED]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """No property test draws by chance, not even one whose settings were made before the profile was loaded."""
    test = getattr(item, "obj", None)
    if is_hypothesis_test(test):
        own, profile = test._hypothesis_internal_use_settings, settings.default
        for name in ("derandomize", "database", "deadline"):
            if getattr(own, name) != getattr(profile, name):
                pytest.fail(f"its settings say {name}={getattr(own, name)!r}: leave that to tests/conftest.py")


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
    seed = terminalreporter.config.getoption("--hypothesis-seed")
    if seed is not None:
        terminalreporter.write_line(f"--hypothesis-seed={seed} draws the examples of this run again")
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    found = [value for report in reports for name, value in report.user_properties if name == "worst anomaly"]
    for text in sorted(found, reverse=True):
        terminalreporter.write_line(f"worst anomaly {text}")
