"""Renders the page on which people label claims: one HTML file that needs no network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Final

from claimspan.errors import MissingExtraError
from claimspan.labelling.claim_labels import COLUMNS
from claimspan.labelling.picking import PickedClaim
from claimspan.report import ReportEntry
from claimspan.text.closest import SearchedSentences
from claimspan.text.visible import visible

__all__ = ["render_label_page"]

_TEMPLATE: Final = "label.html.j2"


def render_label_page(picked: Sequence[PickedClaim], *, title: str = "Label claims") -> str:
    """Render one self-contained page. It makes no request and opens from a file.

    The page does not show what the judge said, which would lead people. Texts are data that the
    script puts into the page as text: markup in a chunk is shown and never runs.

    Args:
        picked: The claims, in the order in which they are asked.
        title: The heading of the page.

    Returns:
        The HTML of the page.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    try:
        import jinja2
    except ModuleNotFoundError:
        raise MissingExtraError("jinja2", "report") from None
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("claimspan", "labelling"),
        # Jinja's default is off for templates whose name ends in .j2.
        autoescape=True,
        undefined=jinja2.StrictUndefined,
    )
    script = _read("labelling", "label.js")
    # The style of the report comes first, with its colours for light and dark.
    style = _read("report", "report.css") + _read("labelling", "label.css")
    return environment.get_template(_TEMPLATE).render(
        title=visible(title),
        n=len(picked),
        style=style,
        script=script,
        # The Content-Security-Policy admits only the script with this hash.
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=_data(picked),
    )


def _read(room: str, name: str) -> str:
    return resources.files("claimspan").joinpath(room, name).read_text("utf-8")


def _data(picked: Sequence[PickedClaim]) -> dict[str, object]:
    """What the script reads: the claims, and each record once."""
    records = {each.record: each.entry for each in picked}
    places = {record: place for place, record in enumerate(records)}
    searched = {
        record: [SearchedSentences(visible(chunk.text)) for chunk in entry.chunks]
        for record, entry in records.items()
    }
    keys = "\n".join(f"{each.record}|{each.number}|{each.digest}" for each in picked)
    return {
        # Under this name the browser keeps the labels: another choice of claims has another one.
        "id": hashlib.sha256(keys.encode("utf-8", "replace")).hexdigest()[:16],
        "columns": COLUMNS,
        "records": [_record(entry) for entry in records.values()],
        "claims": [_claim(e, places[e.record], searched[e.record]) for e in picked],
    }


def _record(entry: ReportEntry) -> dict[str, object]:
    return {
        "question": visible(entry.query),
        "response": visible(entry.response),
        "chunks": [visible(chunk.text) for chunk in entry.chunks],
        "left_out": entry.chunks_left_out,
    }


def _claim(
    picked: PickedClaim, place: int, searched: Sequence[SearchedSentences]
) -> dict[str, object]:
    found = (sentences.closest(picked.claim.text) for sentences in searched)
    return {
        # Of the columns of the file, all but the label.
        "cells": [picked.record, picked.number, picked.digest, picked.share, picked.share_claims],
        "place": place,
        "text": visible(picked.claim.text),
        "sentence": visible(picked.claim.sentence or ""),
        # Of each chunk the beginning and the end of its closest sentence, in code points.
        "closest": [None if each is None else list(each) for each in found],
    }
