"""The colours and fonts of the picture, in a light and in a dark palette, as a style sheet."""

from __future__ import annotations

CLASS = "remuda-plan"
"""The class of the drawing, which every rule begins with: a notebook has other drawings beside it."""

SANS = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"
MONO = "ui-monospace,SFMono-Regular,Menlo,'DejaVu Sans Mono','Liberation Mono',Consolas,monospace"

_COLOURS: dict[str, tuple[str, str]] = {
    "ground": ("#f6f8fa", "#0d1117"),
    "panel": ("#ffffff", "#161b22"),
    "line": ("#d0d7de", "#30363d"),
    "text": ("#1f2328", "#e6edf3"),
    "quiet": ("#59636e", "#9198a1"),
    "edge": ("#b6c2cf", "#465261"),
    "read": ("#0969da", "#4493f8"),
    "join": ("#8250df", "#ab7df8"),
    "group": ("#1a7f37", "#3fb950"),
    "move": ("#bc4c00", "#db6d28"),
    "write": ("#cf222e", "#f85149"),
    "row": ("#6e7781", "#7d8590"),
    "track": ("#eaeef2", "#262c36"),
    "bar": ("#54aeff", "#316dca"),
    "hot": ("#e16f24", "#db6d28"),
    "touched": ("#0969da", "#58a6ff"),
    "untouched": ("#dfe5ec", "#2b323c"),
    "fair-ground": ("#fff3c4", "#3d2e00"),
    "fair": ("#7d4e00", "#e3b341"),
    "bad-ground": ("#ffdcd7", "#51140f"),
    "bad": ("#a40e26", "#ffa198"),
}
"""Light and dark, by what they stand for."""

_RULES = (
    (".ground", "fill", "ground"),
    (".card", "fill", "panel"),
    (".card,.rule", "stroke", "line"),
    ("text", "fill", "text"),
    (".quiet", "fill", "quiet"),
    (".edge", "stroke", "edge"),
    (".edge.move", "stroke", "move"),
    *((f".kind.{kind}", "fill", kind) for kind in ("read", "join", "group", "move", "write", "row")),
    (".band", "fill", "track"),
    (".track", "fill", "track"),
    (".bar", "fill", "bar"),
    (".bar.hot", "fill", "hot"),
    (".all", "fill", "bar"),
    (".touched", "fill", "touched"),
    (".untouched", "fill", "untouched"),
    (".unknown", "stroke", "quiet"),
    (".pill.fair", "fill", "fair-ground"),
    ("text.fair", "fill", "fair"),
    (".pill.bad", "fill", "bad-ground"),
    ("text.bad", "fill", "bad"),
    ("text.decided", "fill", "move"),
)
"""Selector, property and colour."""

_FONTS = (
    f"text{{font-family:{SANS};font-size:11px}}"
    f".m{{font-family:{MONO}}}"
    ".b{font-weight:600}"
    ".e{text-anchor:end}"
    ".card{stroke-width:1}"
    ".edge{fill:none;opacity:.85}"
    ".edge.move{stroke-dasharray:8 5;opacity:.75}"
    ".unknown{fill:none;stroke-dasharray:2 2}"
)


def style_sheet() -> str:
    """Return the rules: light ones, dark ones where the reader's system is dark, and those of notebooks' own themes."""
    light, dark = _rules(0), _rules(1)
    themes = {
        "[data-jp-theme-light=true]": light,
        "[data-jp-theme-light=false]": dark,
        "body.vscode-light": light,
        "body.vscode-dark": dark,
    }
    own = "".join(_scoped(rules, f"{theme} ") for theme, rules in themes.items())
    return f"{_scoped(_FONTS)}{_scoped(light)}@media (prefers-color-scheme:dark){{{_scoped(dark)}}}{own}"


def standalone_style_sheet() -> str:
    """Return the rules for a drawing in a file of its own, which no notebook's theme reaches."""
    return f"{_scoped(_FONTS)}{_scoped(_rules(0))}@media (prefers-color-scheme:dark){{{_scoped(_rules(1))}}}"


def _rules(palette: int) -> str:
    return "".join(f"{selector}{{{name}:{_COLOURS[colour][palette]}}}" for selector, name, colour in _RULES)


def _scoped(rules: str, above: str = "") -> str:
    """Put the class of the drawing before every selector."""
    scoped = []
    for rule in rules.split("}")[:-1]:
        selectors, _, body = rule.partition("{")
        prefixed = ",".join(f"{above}.{CLASS} {selector}" for selector in selectors.split(","))
        scoped.append(f"{prefixed}{{{body}}}")
    return "".join(scoped)
