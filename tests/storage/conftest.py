"""Most tests of storage look at which files there are: they keep no versions but where they ask for them."""

from __future__ import annotations

import pytest

from remuda.storage.folder import kept_versions


@pytest.fixture(autouse=True)
def without_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_versions, "DEFAULT_RETENTION", 0)
