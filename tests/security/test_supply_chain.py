"""What comes with claimspan, and what it does on its own. Row S6 of the reliability matrix."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from processes import environment

ROOT: Final = Path(__file__).parents[2]
LOCKS: Final = sorted(
    path
    for folder in ("requirements", "tests/peers/locks")
    for path in (ROOT / folder).glob("*.txt")
)
MODULES: Final = sorted(
    path.relative_to(folder).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    for folder in (ROOT / "core", ROOT / "core" / "bench", ROOT / "tracing", ROOT / "integrations")
    for path in folder.glob("claimspan*/**/*.py")
    if path.name != "__main__.py"
)

IMPORT_ALL: Final = """
import json, sys
sys.dont_write_bytecode = True
found = []

def audit(event, arguments):
    # A look-up of a name, a connection, a datagram; and a socket pair of asyncio is none of these.
    if event in {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}:
        found.append([event, repr(arguments)])

sys.addaudithook(audit)
# What the frameworks do when they are imported is theirs.
import celery, haystack, langchain_core, llama_index.core, onnxruntime, openai
theirs = len(found)
from importlib import import_module
for name in json.load(sys.stdin):
    import_module(name)
print(json.dumps(found[theirs:]))
"""


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_every_package_is_pinned_with_a_hash(lock: Path) -> None:
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [
        line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")
    ]

    assert lines
    for line in lines:
        assert re.match(r"[\w.\[\]-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", line), line


def test_every_installation_of_the_makefile_asks_for_the_hashes() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    installations = re.findall(r"^\t@\$\(INSTALL\w*\) (.*)$", text, re.MULTILINE)

    assert installations
    for installation in installations:
        # Ours is installed from this folder, and brings nothing with it.
        assert "--require-hashes" in installation or "--no-deps" in installation


def test_importing_all_of_it_opens_no_connection(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL],
        input=json.dumps(MODULES),
        cwd=tmp_path,
        env=environment(HAYSTACK_TELEMETRY_ENABLED="False"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert len(MODULES) > 100
    assert json.loads(done.stdout) == []
    assert list(tmp_path.iterdir()) == []
