"""What every test lives under: no network but loopback, no home but its own, the same examples each time."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Nothing here may depend on how fast the machine is. HYPOTHESIS_PROFILE=explore looks for new examples.
settings.register_profile("fixed", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Refuse connections that leave the machine; keep caches and settings in a folder of the test's own."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: object) -> None:
        if isinstance(address, tuple) and not str(address[0]).startswith(LOOPBACK):
            raise RuntimeError(f"a test tried to reach {address[0]}")
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setenv("FOT_HOME", str(tmp_path / "fot-home"))
    for name in ("FOT_DEBUG", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio."""
    return "asyncio"
