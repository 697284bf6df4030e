"""The files of the example belong together: ports, names, options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from claimspan_serve._options import ServeOptions, options_from, read_config
from claimspan_serve._traces import Outcome

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "serve"
HTTP: Final = ServeOptions.model_fields["http_port"].default
GRPC: Final = ServeOptions.model_fields["grpc_port"].default


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))
    return found


def test_the_collector_sends_each_span_to_the_backend_and_to_our_port() -> None:
    collector, services = read("collector.yaml"), read("compose.yaml")["services"]

    exporters = collector["exporters"]
    assert exporters["otlphttp/claimspan"]["endpoint"] == f"http://serve:{HTTP}"
    assert {"serve", "phoenix", "collector"} == set(services)
    assert collector["service"]["pipelines"]["traces"]["exporters"] == [*exporters]
    protocols = collector["receivers"]["otlp"]["protocols"]
    assert [protocols[name]["endpoint"] for name in ("http", "grpc")] == [
        f"0.0.0.0:{HTTP}",
        f"0.0.0.0:{GRPC}",
    ]
    assert services["collector"]["ports"] == [
        f"127.0.0.1:{GRPC}:{GRPC}",
        f"127.0.0.1:{HTTP}:{HTTP}",
    ]


def test_the_options_of_the_example_work_with_a_token_alone() -> None:
    read_options = read_config(EXAMPLE / "serve.yaml")

    options, _ = options_from(read_options | {"token": "given"})

    assert (options.http_port, options.export) == (HTTP, "http://phoenix:6006")
    with pytest.raises(Exception, match="CLAIMSPAN_SERVE_TOKEN"):
        options_from(read_options)


def test_the_image_opens_our_ports_and_has_more_time_to_end_than_the_service_takes() -> None:
    image = (EXAMPLE / "Dockerfile").read_text(encoding="utf-8")
    grace: str = read("compose.yaml")["services"]["serve"]["stop_grace_period"]

    assert f"EXPOSE {GRPC} {HTTP}" in image
    assert float(grace.removesuffix("s")) > float(read("serve.yaml")["exit_timeout"])


def test_the_page_has_every_option_and_its_yaml_is_taken() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "beside.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"```yaml\n(host: .*?)```", page, re.DOTALL)
    given: dict[str, Any] = yaml.safe_load(written)

    options, _ = options_from({name: given[name] for name in given if name != "dispatch"})

    assert ServeOptions.model_fields.keys() - given.keys() == {"tls_key", "client_ca"}
    assert options == ServeOptions(sinks=("phoenix",))


def test_the_page_names_every_outcome_of_a_span() -> None:
    page = (EXAMPLE.parents[1] / "docs" / "beside.md").read_text(encoding="utf-8")

    assert {each for each in Outcome if f"`{each}`" not in page} == {Outcome.JOINED}
