"""Figures of the study of the analytical models, in the form of GPUMech's figures 11 to 16."""

from __future__ import annotations

from collections.abc import Sequence

from ppt_gpu.report.figures.common import COLOURS, STYLE, pyplot, save
from ppt_gpu.validate.models.study import SWEEPS, TABLE_II, Accuracy, Stack
from ppt_gpu.validate.tables.rows import Row

BLACK = "#000000"


def draw_accuracy(rows: Sequence[Row], path: str) -> None:
    """Error of each case by model, one panel a policy; cases in order of GPUMech's error."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(2, 1, figsize=(10, 6), sharex=False)
        for axis, policy in zip(axes, ("lrr", "gto"), strict=True):
            errors = {model: _errors(rows, policy, model) for model in TABLE_II}
            order = sorted(errors["gpumech"], key=lambda case: errors["gpumech"][case])
            for colour, (model, by_case) in zip(COLOURS, errors.items(), strict=False):
                axis.plot(range(len(order)), [by_case[case] for case in order], ".-", color=colour, label=model, lw=0.8)
            axis.set_xticks(range(len(order)), order, rotation=90, fontsize=6)
            axis.set_ylabel(f"error, {policy}")
            axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes[0].legend(ncols=len(TABLE_II), fontsize=7)
        figure.tight_layout()
    save(figure, path)


def _errors(rows: Sequence[Row], policy: str, model: str) -> dict[str, float]:
    return {row.case: abs(row.error) for row in rows if row.mode == f"{policy} {model}"}


def draw_sweep(name: str, found: dict[int, list[Accuracy]], path: str) -> None:
    """Mean error of each model over the values of a sweep."""
    plt = pyplot()
    with plt.rc_context(STYLE):
        figure, axis = plt.subplots(figsize=(5, 3))
        for colour, model in zip(COLOURS, TABLE_II, strict=False):
            means = [next(item.mean for item in items if item.model == model) for items in found.values()]
            axis.plot(list(found), means, "o-", color=colour, label=model)
        axis.set_xlabel(f"{SWEEPS[name].title}, {SWEEPS[name].unit}")
        axis.set_ylabel("mean error")
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axis.set_ylim(bottom=0)
        axis.legend(fontsize=7)
    save(figure, path)


def draw_stacks(found: Sequence[Stack], path: str) -> None:
    """Bars of the CPI stack, a line of the simulated CPI; one panel a kernel."""
    plt = pyplot()
    cases = list(dict.fromkeys(one.case for one in found))
    bars = [colour for colour in COLOURS if colour != BLACK]  # the simulation is black
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(1, len(cases), figsize=(3 * len(cases), 3), squeeze=False)
        for axis, case in zip(axes[0], cases, strict=True):
            members = [one for one in found if one.case == case]
            bottom = [0.0] * len(members)
            for index, colour in zip(range(len(members[0].parts)), bars, strict=False):
                heights = [one.parts[index][1] for one in members]
                axis.bar(range(len(members)), heights, bottom=bottom, color=colour, label=members[0].parts[index][0])
                bottom = [low + height for low, height in zip(bottom, heights, strict=True)]
            axis.plot(range(len(members)), [one.simulated for one in members], ".-", color=BLACK, label="simulation")
            axis.set_xticks(range(len(members)), [str(one.warps) for one in members])
            axis.set_title(case, fontsize=9)
            axis.set_xlabel("warps per SM")
        axes[0][0].set_ylabel("CPI by that of 8 warps")
        axes[0][-1].legend(fontsize=6)
        figure.tight_layout()
    save(figure, path)
