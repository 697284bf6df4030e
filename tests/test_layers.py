"""Which package may import which: integrations import tracing, tracing imports core, not back.

The benchmarks import core alone, and nothing imports them.
"""

from __future__ import annotations

from typing import Final

import pytest

from source_imports import BENCH, CORE, INTEGRATIONS, TRACING, imports_of, modules_of, sources

FRAMEWORKS: Final = (
    *("langchain", "langgraph", "langsmith", "llama_index", "haystack", "celery"),
    *("phoenix", "mlflow", "langfuse"),
)

OURS: Final = "claimspan_"
"""The prefix of every package of ours except core."""

DATA: Final = "claimspan_local_weights"
"""The weights of the local judge of core: files, and the path of their folder."""

OWN_FRAMEWORK: Final = {
    "claimspan_langchain": ("langchain", "langgraph", "langsmith"),
    "claimspan_llama_index": ("llama_index",),
    "claimspan_haystack": ("haystack",),
    "claimspan_openinference": (),
    "claimspan_celery": ("celery", "kombu", "redis"),
    "claimspan_phoenix": ("phoenix",),
    "claimspan_mlflow": ("mlflow",),
    "claimspan_langfuse": ("langfuse",),
    "claimspan_backfill": (),
    "claimspan_serve": (),
}
"""Integration to the prefixes of the frameworks that it may import."""

BUILT_ON: Final = {
    "claimspan_backfill": (
        *("claimspan_openinference", "claimspan_phoenix"),
        *("claimspan_mlflow", "claimspan_langfuse"),
    ),
    "claimspan_serve": ("claimspan_openinference",),
}
"""Integration to those that it is built on: a command puts together what knows nothing of it."""

OFFERED_TO_INTEGRATIONS: Final = frozenset(
    {"claimspan_tracing", "claimspan_tracing.adapters", "claimspan_tracing.semconv"}
    | {"claimspan_tracing.otlp.decoding"}
)
"""The only modules of tracing that an integration may import; the last one needs protobuf."""


def top(name: str) -> str:
    return name.partition(".")[0]


def is_framework(name: str) -> bool:
    """Whether a name belongs to a framework, in any of its distributions."""
    return top(name).startswith(FRAMEWORKS)


def is_forbidden_in_core(name: str) -> bool:
    if name == DATA:
        return False
    return top(name).startswith((OURS, "opentelemetry", "openinference")) or is_framework(name)


def is_forbidden_in_benchmarks(name: str) -> bool:
    return top(name) != "claimspan_bench" and is_forbidden_in_core(name)


def is_forbidden_in_tracing(name: str) -> bool:
    return is_framework(name) or (top(name).startswith(OURS) and top(name) != "claimspan_tracing")


def is_forbidden_in_integration(name: str, package: str) -> bool:
    allowed = {package, "claimspan_tracing", *BUILT_ON.get(package, ())}
    return top(name).startswith(OURS) and top(name) not in allowed


def is_framework_of_others(name: str, package: str) -> bool:
    """Whether a name belongs to a framework that is not the one that the package adapts."""
    return is_framework(name) and not top(name).startswith(OWN_FRAMEWORK[package])


def is_inside_of_tracing(name: str) -> bool:
    """Whether a name belongs to a module of tracing that is not offered to integrations."""
    return top(name) == "claimspan_tracing" and name not in OFFERED_TO_INTEGRATIONS


def test_core_imports_no_tracing_no_integration_and_no_framework() -> None:
    found = {path: text for path, text in sources(CORE).items() if "/bench/" not in path}

    assert "core/claimspan/evaluation/evaluate.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_core(name)
    }
    assert wrong == set()


def test_the_benchmarks_import_core_alone() -> None:
    found = sources(BENCH)

    assert "core/bench/claimspan_bench/pandachat/command.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_benchmarks(name)
    }
    assert wrong == set()


def test_tracing_imports_no_integration_no_framework_and_no_example() -> None:
    found = sources(TRACING)

    assert "tracing/claimspan_tracing/monitor.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_tracing(name)
    }
    assert wrong == set()


def test_an_integration_imports_no_other_integration_and_no_example() -> None:
    # The namespace that integrations of Haystack share has one file of ours, with one name.
    shared = "integrations/haystack_integrations/"
    found = {path: text for path, text in sources(INTEGRATIONS).items() if shared not in path}

    assert "integrations/claimspan_langchain/__init__.py" in found
    assert "integrations/claimspan_llama_index/__init__.py" in found
    assert "integrations/claimspan_haystack/__init__.py" in found
    wrong = {
        (path, name)
        for path, source in found.items()
        for name in imports_of(source)
        if is_forbidden_in_integration(name, package=path.split("/")[1])
    }
    assert wrong == set()


def test_every_integration_names_its_framework() -> None:
    folders = {path.name for path in INTEGRATIONS.iterdir() if (path / "__init__.py").is_file()}

    assert folders == OWN_FRAMEWORK.keys()


def test_an_integration_imports_no_framework_but_its_own() -> None:
    wrong = {
        (path, name)
        for path, source in sources(INTEGRATIONS).items()
        for name in imports_of(source)
        if is_framework_of_others(name, package=path.split("/")[1])
    }
    assert wrong == set()


def test_an_integration_imports_from_tracing_only_what_is_offered_to_it() -> None:
    wrong = {
        (path.split("/")[1], name)
        for path, source in sources(INTEGRATIONS).items()
        for name in modules_of(source)
        if is_inside_of_tracing(name)
    }
    assert wrong == set()


# --- the check itself ---


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import claimspan_tracing.monitor as m", "claimspan_tracing.monitor"),
        ("from langchain_core.runnables import Runnable", "langchain_core.runnables"),
        ("def f():\n    from claimspan_demo import corpus", "claimspan_demo"),
        ("class A:\n    def f(self):\n        import haystack", "haystack"),
        ("if TYPE_CHECKING:\n    from llama_index.core import X", "llama_index.core"),
        ("try:\n    import opentelemetry\nexcept ImportError:\n    pass", "opentelemetry"),
        ("module = import_module('langgraph.graph')", "langgraph.graph"),
        ("module = importlib.import_module('langchain', None)", "langchain"),
    ],
)
def test_an_import_is_seen_wherever_it_stands(source: str, name: str) -> None:
    assert imports_of(source) == {name}


def test_a_relative_import_and_a_mention_are_no_imports_of_others() -> None:
    source = '"""import langchain"""\nfrom . import haystack\nname = "langchain_core"'

    assert imports_of(source) == set()


@pytest.mark.parametrize(
    "name",
    [
        "claimspan_tracing",
        "claimspan_bench.pandachat",
        "claimspan_langchain._reader",
        "claimspan_demo",
        "opentelemetry.trace",
        "langchain_openai",
        "llama_index.core",
        "haystack",
    ],
)
def test_core_may_not_have(name: str) -> None:
    assert is_forbidden_in_core(name)


@pytest.mark.parametrize("name", ["claimspan", "claimspan.errors", "pydantic", "asyncio"])
def test_core_may_have(name: str) -> None:
    assert not is_forbidden_in_core(name)


@pytest.mark.parametrize("name", ["claimspan_langchain", "claimspan_demo.corpus", "langchain_core"])
def test_tracing_may_not_have(name: str) -> None:
    assert is_forbidden_in_tracing(name)


@pytest.mark.parametrize(
    "name", ["claimspan.errors", "claimspan_tracing.write.spans", "opentelemetry.sdk"]
)
def test_tracing_may_have(name: str) -> None:
    assert not is_forbidden_in_tracing(name)


def test_an_integration_may_have_its_own_framework_and_what_is_below_it() -> None:
    fine = ["claimspan", "claimspan_tracing", "claimspan_langchain._reader", "langchain_core"]
    wrong = ["claimspan_haystack", "claimspan_llama_index", "claimspan_demo.model"]

    forbidden = [
        name
        for name in fine + wrong
        if is_forbidden_in_integration(name, package="claimspan_langchain")
    ]

    assert forbidden == wrong


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("haystack", "claimspan_langchain"),
        ("langchain_core.runnables", "claimspan_haystack"),
        ("langchain_core", "claimspan_openinference"),
        ("llama_index.core", "claimspan_openinference"),
    ],
)
def test_an_integration_may_not_have_the_framework_of_another(name: str, package: str) -> None:
    assert is_framework_of_others(name, package)


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("langchain_core.runnables", "claimspan_langchain"),
        ("langgraph.graph", "claimspan_langchain"),
        ("langsmith", "claimspan_langchain"),
        ("llama_index.core", "claimspan_llama_index"),
        ("haystack_experimental", "claimspan_haystack"),
        ("opentelemetry.trace", "claimspan_openinference"),
    ],
)
def test_an_integration_may_have_its_own_framework(name: str, package: str) -> None:
    assert not is_framework_of_others(name, package)


@pytest.mark.parametrize(
    ("source", "inside"),
    [
        ("from claimspan_tracing import Monitor, semconv", set[str]()),
        ("from claimspan_tracing.adapters import Capture", set[str]()),
        ("from claimspan_tracing.semconv import SCORE", set[str]()),
        ("import claimspan_tracing", set[str]()),
        ("from claimspan_tracing.monitor import Monitor", {"claimspan_tracing.monitor"}),
        ("from claimspan_tracing import Monitor, monitor", {"claimspan_tracing.monitor"}),
        ("import claimspan_tracing.monitor", {"claimspan_tracing.monitor"}),
    ],
)
def test_an_integration_may_not_look_inside_of_tracing(source: str, inside: set[str]) -> None:
    assert {name for name in modules_of(source) if is_inside_of_tracing(name)} == inside
