"""What it costs to have Remuda at all: the modules that `import remuda` loads, and the code there is to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def modules_that_should_be_absent() -> list[str]:
    """Those of the big optional packages that `import remuda` loads all the same."""
    code = "import sys, remuda; print(*sorted({'pyspark', 'pandas', 'polars', 'duckdb'} & set(sys.modules)))"
    return _python(code).stdout.split()


def lines_by_package() -> dict[str, int]:
    """Lines of Python, by package of `remuda`; blank lines and comments counted, as one reads past them too."""
    lines: dict[str, int] = {}
    for path in sorted((SOURCE / "remuda").rglob("*.py")):
        name = path.relative_to(SOURCE / "remuda").parts[0]
        lines[name] = lines.get(name, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return lines


def _python(code: str) -> subprocess.CompletedProcess[str]:
    path = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); "
    return subprocess.run([sys.executable, "-c", path + code], check=True, capture_output=True, text=True)
