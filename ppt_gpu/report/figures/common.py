"""What all figures share: matplotlib where it is installed, one look, and a file written whole."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from ppt_gpu.common.errors import PptError
from ppt_gpu.common.outputs import write_whole

#: colours that people with the usual colour blindnesses can tell apart (Okabe and Ito)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C8C8C")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E5E5E5",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "savefig.dpi": 150,
    "svg.hashsalt": "ppt_gpu",
}
SUFFIXES = (".png", ".svg", ".pdf")


def check_target(path: str) -> None:
    """Raises PptError for a file name with an ending that is no picture, or where there is no matplotlib."""
    if Path(path).suffix not in SUFFIXES:
        raise PptError(
            f"--plot {path}: unknown kind of picture", hint=f"expected a name ending in {', '.join(SUFFIXES)}"
        )
    pyplot()


def pyplot() -> Any:
    """matplotlib.pyplot, drawing to files only. Raises PptError where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise PptError("drawing needs matplotlib", hint="pip install 'ppt_gpu[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as found

    return found


def save(figure: Any, path: str) -> None:
    """Write the figure and close it; the same figure gives the same bytes. Raises PptError where that fails."""
    metadata = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    suffix = Path(path).suffix
    drawn = BytesIO()
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure.savefig(drawn, format=suffix[1:], metadata=metadata[suffix], bbox_inches="tight")
    plt.close(figure)
    write_whole(path, drawn.getvalue())
