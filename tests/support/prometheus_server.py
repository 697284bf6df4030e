"""A real Prometheus on loopback, for as long as a block runs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from redis_server import free_port

__all__ = ["Prometheus", "Sample", "find_promtool", "prometheus_server"]

START_SECONDS: Final = 30.0
INSTALL_SECONDS: Final = 300.0
"""About 30 MB from the mirror of the distribution."""

CONFIG: Final = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: shop
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""

Sample = tuple[Mapping[str, str], float]
"""Labels and value."""


class Prometheus:
    """Answers queries by its HTTP API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[Sample]:
        """The samples of an instant query.

        Raises:
            AssertionError: Prometheus refuses the expression.
        """
        data = self._get("query", query=expression)
        result = data["result"]
        if data["resultType"] == "scalar":
            return [({}, float(result[1]))]
        return [(each["metric"], float(each["value"][1])) for each in result]

    def label_values(self, selector: str, label: str) -> list[str]:
        """The values of a label, as a dashboard's variable asks for them."""
        values: list[str] = self._get(f"label/{label}/values", **{"match[]": selector})
        return values

    def rules(self) -> list[dict[str, Any]]:
        """All alert rules with their state and health."""
        groups = self._get("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def is_ready(self) -> bool:
        try:
            self._read("/-/ready")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True

    # Any: JSON of another program.
    def _get(self, path: str, **parameters: str) -> Any:
        try:
            reply = self._read(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
            return json.loads(reply)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    def _read(self, path: str) -> bytes:
        with urllib.request.urlopen(self._url + path, timeout=20) as reply:  # noqa: S310 - loopback
            body: bytes = reply.read()
            return body


@contextmanager
def prometheus_server(folder: Path, port: int, rules: Path) -> Generator[Prometheus]:
    """Start a server that scrapes a port each second, and kill it at the end of the block.

    Args:
        folder: For its configuration and its database.
        port: Of the application on loopback.
        rules: A file of alert rules.
    """
    config = folder / "prometheus.yaml"
    config.write_text(CONFIG.format(rules=json.dumps(str(rules)), port=port), encoding="utf-8")
    own = free_port()
    options = [
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{own}",
    ]
    log = folder / "prometheus.log"
    with log.open("wb") as out:
        command = [_find("prometheus"), *options]
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
    try:
        server = Prometheus(f"http://127.0.0.1:{own}")
        deadline = time.monotonic() + START_SECONDS
        while not server.is_ready():
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait(10)


def find_promtool() -> str:
    """The path of Prometheus's own checker, which comes with the server."""
    return _find("promtool")


def _find(program: str) -> str:
    """The path of a program; Debian's package is installed where root can."""
    found = shutil.which(program)
    if found is None:
        assert os.geteuid() == 0, f"{program} is missing: install Prometheus as root"
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", "prometheus")
        found = shutil.which(program)
    assert found is not None
    return found


def _apt(*arguments: str) -> None:
    command: Sequence[str] = ["apt-get", "--quiet", *arguments]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    ended = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS
    )
    assert ended.returncode == 0, ended.stderr
