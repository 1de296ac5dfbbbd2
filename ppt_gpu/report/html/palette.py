"""The colours of the page, light and dark: text at least 4.5:1 against what it stands on, marks 3:1 (WCAG 2.2)."""

from __future__ import annotations

from collections.abc import Mapping

from ppt_gpu.sm.program.result import STALL_REASONS

#: name -> (light, dark)
THEME: Mapping[str, tuple[str, str]] = {
    "page": ("#f4f5f7", "#101317"),
    "card": ("#ffffff", "#191d23"),
    "text": ("#1b1f24", "#e6e9ee"),
    "muted": ("#535b65", "#a3adba"),
    "line": ("#d5d9df", "#333a44"),
    "accent": ("#0b5cad", "#6cb2ff"),
    "mark": ("#c2410c", "#ff9e64"),
    "fill": ("#0b6bc4", "#4f9ff0"),
    "empty": ("#e6e9ed", "#2a3038"),
    "warning": ("#9a3412", "#ffb585"),
}

#: reason -> (light, dark)
STALLS: Mapping[str, tuple[str, str]] = dict(
    zip(
        STALL_REASONS,
        (
            ("#1a7f37", "#3fb950"),
            ("#66801a", "#b3cc66"),
            ("#b35900", "#f0883e"),
            ("#8a6100", "#e3c341"),
            ("#0b5cad", "#58a6ff"),
            ("#1f8299", "#56d4dd"),
            ("#6639ba", "#a98eff"),
            ("#a04fc4", "#d9b3ff"),
            ("#cf222e", "#ff7b72"),
            ("#bf3989", "#f778ba"),
            ("#7d6150", "#c8a98f"),
            ("#808994", "#7d8794"),
        ),
        strict=True,
    )
)

#: what stands on what: (foreground, background, least contrast)
PAIRS = (
    *((text, ground, 4.5) for text in ("text", "muted", "accent", "warning") for ground in ("page", "card")),
    *((mark, "card", 3.0) for mark in ("fill", "mark")),
)


def variables(theme: int) -> str:
    """CSS declarations of all colours: theme 0 is light, 1 dark."""
    named = [f"--{name}:{pair[theme]}" for name, pair in THEME.items()]
    stalls = [f"--s{number}:{pair[theme]}" for number, pair in enumerate(STALLS.values())]
    return ";".join([*named, *stalls])


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours "#rrggbb" (WCAG 2.2, relative luminance): 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def stall(reason: str) -> str:
    """The CSS colour of a stall reason."""
    return f"var(--s{STALL_REASONS.index(reason)})"
