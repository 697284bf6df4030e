"""Why a model gave no reply: read from the errors of any client, and told without any content.

Clients share no error type, but most carry an HTTP status and what the server has sent, under one
of a few names. What a server says may quote the prompt or the key, so no word of either is passed
on.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final, Literal, NamedTuple, cast, get_args

from claimspan.errors import JudgeError, JudgeUnavailableError

__all__ = [
    "KINDS",
    "Kind",
    "Refusal",
    "TooLongError",
    "behind",
    "read_refusal",
    "refusal_in",
    "retry_after_seconds",
]

Kind = Literal["quota", "length", "filter", "rate", "key", "place", "away", "other"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

MAX_SAID: Final = 200
"""Characters of a server's message that an error repeats."""

_OVERLOADED: Final = frozenset({408, 409, 425, 429})
"""Statuses below 500 that may pass: too slow, in conflict, too early, too many."""


class TooLongError(JudgeError):
    """The texts of a call do not fit into the model's window; fewer of them might."""


class Refusal(NamedTuple):
    """The facts about a request without a reply."""

    status: int | None
    """HTTP status; None if there was no response."""

    message: str = ""
    """The server's words, as they came: they may quote the prompt or the key."""

    param: str = ""
    """The parameter that the server names."""

    code: str = ""
    """The server's code of the error."""

    wait: float = 0.0
    """Seconds that the server asks to wait; 0 or less if it does not."""

    is_final: bool = False
    """Whether the server says that the request should not be sent again."""

    cause: str = ""
    """The class of the error behind it."""

    @property
    def said(self) -> str:
        """All that the server has said."""
        return f"{self.param} {self.code} {self.message}"

    @property
    def kind(self) -> Kind:
        """The first of the kinds whose signs the refusal has."""
        said = f"{self.code} {self.message}"
        # Gemini calls a limit per minute a quota as well, and then says when to come back.
        if self.status == 402 or (self.wait <= 0 and _QUOTA.search(said)):
            return "quota"
        if self.status is None:
            return "away" if _NO_CONNECTION.search(self.cause) else "other"
        for statuses, words, kind in _SIGNS:
            if self.status in statuses and (words is None or words.search(said)):
                return kind
        return "away" if _is_passing(self.status) else "other"

    def without_echo(self, texts: Sequence[str]) -> Refusal:
        """The same without what the message repeats of the prompt, which says nothing of the model.

        A record may speak of parameters, of accounts and of limits: four of its words in a row are
        the record's.
        """
        words = list(_WORD.finditer(self.message))
        sent = f" {' '.join(word.casefold() for text in texts for word in _WORD.findall(text))} "
        echoed: set[int] = set()
        for i in range(len(words) - _ECHO + 1):
            run = " ".join(word[0].casefold() for word in words[i : i + _ECHO])
            if f" {run} " in sent:
                echoed.update(range(i, i + _ECHO))
        if not echoed:
            return self
        kept, end = "", 0
        for i, word in enumerate(words):
            kept += self.message[end : word.start()] + ("" if i in echoed else word[0])
            end = word.end()
        return self._replace(message=kept + self.message[end:])

    @property
    def told(self) -> str:
        """What happened, in a few words without any of the server's."""
        if self.status is None:
            return f"the connection failed ({self.cause})"
        return f"the endpoint answered with HTTP {self.status}"

    def error(
        self,
        n_requests: int,
        *,
        texts: Sequence[str],
        secrets: Sequence[str],
        has_options: bool = False,
        of_object: bool = False,
    ) -> JudgeError:
        """The error for the user: what happened, why, and what to do.

        Args:
            n_requests: Requests that were made.
            texts: What no word is repeated of: the texts of the prompt.
            secrets: Keys, which are not repeated either.
            has_options: Whether the request had options of the user's own.
            of_object: Whether a model object has the parameters, and not the judge.
        """
        kind, made = self.kind, f"; requests made: {n_requests}"
        if self.status is None:
            if kind != "away":
                return JudgeError(f"the model's client raised {self.cause}{made}")
            hint = f": {_CERTIFICATE_ADVICE}" if _CERTIFICATE.search(self.cause) else ""
            return JudgeUnavailableError(f"{self.told}{made}{hint}")
        named = [
            f"{name} {value}"
            for name, value in (("param", self.param), ("code", self.code))
            if _CODE.fullmatch(value) and _without(value, texts, secrets) == value
        ]
        said = _without(self.message, texts, secrets)
        advice = _ADVICE.get(kind) or (_REDIRECTED if self.status in _REDIRECTS else "")
        if not advice and not said and self.status in (400, 422):
            advice = _NO_REASON
        if not advice and self.status in (400, 422) and (self.param or has_options):
            advice = (
                f"set or leave out {self.param or 'it'} on the model object"
                if of_object
                else "give other options=, or None to leave one out"
            )
        parts = [f"{self.told} ({', '.join(named)})" if named else self.told, said, advice]
        text = ": ".join(part.rstrip(".:") for part in parts if part)
        if kind == "length":
            return TooLongError(text)
        if kind == "quota":
            return JudgeUnavailableError(text)
        return JudgeUnavailableError(text + made) if _is_passing(self.status) else JudgeError(text)


_ADVICE: Final[Mapping[str, str]] = {
    "quota": "the account has nothing left or is closed, see the billing page of the provider",
    "length": "the texts are too long for the model: give fewer or shorter chunks",
    "filter": "the provider's content filter stops these texts: allow them there",
    "key": "check the key, and what it may do",
    "place": "check base_url and the model's name",
}
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REDIRECTED: Final = "redirects are not followed, give the final base_url"
_NO_REASON: Final = "it does not say why: check the model's name, and options="
_CERTIFICATE_ADVICE: Final = (
    "the certificate is not trusted; SSL_CERT_FILE can name a file with the company's"
)

_QUOTA: Final = re.compile(
    r"insufficient[_ ](quota|balance|credit|fund)|exceeded your current quota|billing[_ ]"
    r"(hard[_ ])?(limit|not)|credit balance|out of credits|payment required"
    r"|(account|organi[sz]ation|project)\b.{0,40}\b(deactivated|suspended|closed|disabled)"
    r"|account_deactivated|in arrears|(spend|usage|spending)[_ ]limit|budget has been exceeded"
    r"|crossed budget|tokens per day|purchase credits|(any|no) credits",
    re.IGNORECASE,
)
_LENGTH: Final = re.compile(
    r"context[_ ]length|context[_ ](window|size)|maximum context|max_model_len|prompt is too long"
    r"|(input|prompt|request|message)s?\b.{0,40}\btoo (long|large)|too many (input )?tokens"
    r"|exceeds? .{0,60}(token|context)|reduce the length|string_above_max_length"
    r"|input[_ ]?(token)?s?[_ ]?length|longer than the model|max_tokens must be at least 1, got"
    r"|must have (less|fewer) than \d+ tokens|tokens`? \+ `?max_new_tokens",
    re.IGNORECASE,
)
_FILTER: Final = re.compile(r"content[_ ](filter|management|policy)|safety system|moderation", re.I)
_KEY: Final = re.compile(r"api[_ ]key|unauthori[sz]ed|authenticat|no[_ ](connected[_ ])?db", re.I)
_PLACE: Final = re.compile(
    r"(not a valid model|model[_ ]not[_ ]found|unknown model|invalid model|no such model|deployment"
    r"\b.{0,40}\bnot|model\b.{0,80}\b(does not|doesn't) exist|model identifier is invalid"
    r"|unexpected endpoint"
    r"|on-demand throughput)",
    re.IGNORECASE,
)
_SIGNS: Final[Sequence[tuple[Collection[int], re.Pattern[str] | None, Kind]]] = (
    ({413}, None, "length"),
    ({429}, re.compile("request too large", re.IGNORECASE), "length"),
    ({400, 422, 500}, _LENGTH, "length"),
    ({400, 403}, _FILTER, "filter"),
    ({429}, None, "rate"),
    ({401, 403}, None, "key"),
    ({400}, _KEY, "key"),
    ({404}, None, "place"),
    ({400, 500}, _PLACE, "place"),
)
"""The kinds of a response by its status and, if given, by words of it; the first that fits."""

_NO_CONNECTION: Final = re.compile(
    r"Connect|Timeout|TimedOut|Network|ReadError|WriteError|Protocol|SSL|gaierror|^OSError|BrokenPipe"
)
_CERTIFICATE: Final = re.compile(r"certificate|ssl", re.IGNORECASE)


def _is_passing(status: int | None) -> bool:
    """Whether a failure may pass: no response, too many requests, or a fault of the server."""
    return status is None or status in _OVERLOADED or status >= 500


# --- reading -------------------------------------------------------------------------------------


def read_refusal(error: BaseException) -> Refusal:
    """Reads an error of openai, anthropic, google, boto3, ollama, httpx, or of what wraps them."""
    chain = list(behind(error))
    root = chain[-1]
    for each in chain:
        status = _status_of(each)
        if status is not None:
            headers = _headers_of(each)
            found = refusal_in(_body_of(each) or _own_words(each), status)
            wait = retry_after_seconds(headers)
            return found._replace(
                wait=wait if wait > 0 else found.wait,
                is_final=headers.get("x-should-retry") == "false",
                cause=type(root).__name__,
            )
    is_certificate = any(_CERTIFICATE.search(str(each)[:200]) for each in chain)
    name = type(root).__name__
    return Refusal(None, cause=f"{name}, certificate" if is_certificate else name)


def refusal_in(body: object, status: int) -> Refusal:
    """Reads the body of an error, text or parsed JSON, in any of the forms in use.

    Servers nest what they say under names of their own, and gateways the provider's error below
    theirs: all texts under the names of messages count, and the first code and parameter.
    """
    if isinstance(body, bytes | str):
        with suppress(ValueError, RecursionError):
            body = json.loads(body)
    if isinstance(body, str | bytes):
        text = body if isinstance(body, str) else body.decode("utf-8", "replace")
        return Refusal(status, message="" if text.lstrip()[:1] == "<" else text[:2000])
    fields = list(_fields(body))
    places = [cast("list[object]", value) for name, value in fields if name == "loc"]
    params = [".".join(str(each) for each in place if each != "body") for place in places]
    params += [value for name, value in fields if name == "param" and isinstance(value, str)]
    # A code that is but the status once more says nothing.
    codes = [str(value) for wanted in _CODES for name, value in fields if name == wanted and value]
    telling = [code for code in codes if code != str(status)] or codes
    said = dict.fromkeys(value for name, value in fields if name in _MESSAGES)
    message = " ".join(each for each in said if isinstance(each, str))[:2000]
    return Refusal(
        status,
        message=message,
        param=next(iter(params), "")[:100],
        code=next(iter(telling), "")[:60],
        wait=_asked_wait(f"{message} {str(body)[:4000]}"),
    )


def _fields(body: object) -> Iterator[tuple[str, object]]:
    """The fields of all objects in a JSON value, the outermost first, with the lists of ``loc``."""
    waiting = [body]
    for _ in range(_MAX_NODES):
        node = waiting.pop(0) if waiting else None
        if isinstance(node, list):
            waiting += cast("list[object]", node)[:5]
        elif isinstance(node, dict):
            for name, value in cast("dict[str, object]", node).items():
                if not isinstance(value, dict | list) or name == "loc":
                    yield name, value
                else:
                    waiting.append(cast("object", value))


_CODES: Final = ("code", "Code", "error_code", "type", "error_type")
_MESSAGES: Final = frozenset("message Message msg error detail raw".split())
_MAX_NODES: Final = 40


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """Seconds that headers, in lower case, ask to wait; 0 or less if they do not."""
    with suppress(KeyError, ValueError):
        return float(headers["retry-after-ms"]) / 1000
    with suppress(KeyError, ValueError):
        return float(headers["retry-after"])
    with suppress(KeyError, ValueError, OverflowError):
        return parsedate_to_datetime(headers["retry-after"]).timestamp() - time.time()
    return 0.0


_WAIT: Final = re.compile(
    r"""(?:(?:retry|again) (?:after|in)|retryDelay['"]?:) *['"]?"""
    r"(?:(\d{1,3})h)?(?:(\d{1,3})m)?(\d{1,6}(?:\.\d{1,9})?) ?(ms|s)",
    re.IGNORECASE,
)


def _asked_wait(text: str) -> float:
    """Seconds that a message asks to wait, as in ``Please retry after 60 seconds``."""
    found = _WAIT.search(text)
    if not found:
        return 0.0
    seconds = float(found[3]) / (1000 if found[4].lower() == "ms" else 1)
    return 3600 * float(found[1] or 0) + 60 * float(found[2] or 0) + seconds


def behind(error: BaseException) -> Iterator[BaseException]:
    """An error, and the errors behind it, the first cause last; each once."""
    seen: set[int] = set()
    step: BaseException | None = error
    while step is not None and id(step) not in seen and len(seen) < 10:
        seen.add(id(step))
        yield step
        step = step.__cause__ or (None if step.__suppress_context__ else step.__context__)


def _metadata_of(error: BaseException) -> Mapping[str, object]:
    """What botocore tells of a response, which is a mapping there."""
    response: object = getattr(error, "response", None)
    if not isinstance(response, dict):
        return {}
    found = cast("dict[str, object]", response).get("ResponseMetadata")
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _status_of(error: BaseException) -> int | None:
    candidates: Sequence[object] = (
        getattr(error, "status_code", None),
        getattr(error, "http_status", None),
        _metadata_of(error).get("HTTPStatusCode"),
        getattr(cast("object", getattr(error, "response", None)), "status_code", None),
        getattr(error, "code", None),
    )
    for each in candidates:
        number = getattr(each, "value", each)
        number = number[0] if isinstance(number, tuple) and number else number  # pyright: ignore[reportUnknownVariableType] - google's enum of codes
        if isinstance(number, int) and not isinstance(number, bool) and 300 <= number < 600:
            return number
    return None


def _body_of(error: BaseException) -> object:
    response: object = getattr(error, "response", None)
    if isinstance(response, dict):
        return cast("object", response)
    # The response first: the openai package keeps but a part of its body.
    for source in (response, cast("object", error)):
        for name in ("content", "body", "details", "text"):
            with suppress(Exception):  # a response that is not read yet raises
                value = getattr(source, name, None)
                if value and isinstance(value, dict | list | str | bytes):
                    return cast("object", value)
    return ""


def _own_words(error: BaseException) -> str:
    """What an error without a body says; nothing if it only names the status."""
    said = str(getattr(error, "message", "") or error)
    return "" if said.startswith("Error code: ") else said


def _headers_of(error: BaseException) -> dict[str, str]:
    response: object = getattr(error, "response", None)
    headers = _metadata_of(error).get("HTTPHeaders") or getattr(response, "headers", None)
    if not hasattr(headers, "items"):
        return {}
    items = cast("Mapping[object, object]", headers).items()
    # A proxy of LiteLLM passes the provider's headers on under names of its own.
    return {str(name).lower().removeprefix("llm_provider-"): str(value) for name, value in items}


# --- telling -------------------------------------------------------------------------------------

_WORD: Final = re.compile(r"\w+(?:[-.'’]\w+)*")
_QUOTED: Final = re.compile(r"[{\\].*|\[(?![\d, .]*\]).*|(?<![\w'\"`”])(['\"`“])[^'\"`”]{40,}.*")
_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)")
_CODE: Final = re.compile(r"[\w.\[\]-]{1,60}")
_KEY_LIKE: Final = re.compile(
    r"(?i)^(sk|pk|key|bearer|basic|token)[-_.]|(?=\w*\d)(?=\w*[a-z])[\w-]{20,}"
)

_ECHO: Final = 4
"""Words in a row that are an echo of the prompt."""

_KEY_BEGINNING: Final = re.compile(r"\b(?:sk|pk|rk)-\S+")
"""A key, also one of which a server shows the beginning and the end alone."""

_OF_ENDPOINTS: Final = frozenset(
    """
    a an and any are as at be but by can cannot could does exceed exceeds for from has have however
    if in invalid is it its maximum minimum more must no not of on only or please resulted retry
    than that the this to too was were with you your after again before error expected given length
    limit max message messages model models parameter provided reduce request requests requested
    response schema supported support supports token tokens unsupported use value value's when
    context window input output long large unknown unrecognized format type key api incorrect
    """.split()
)
"""Words that servers say of requests; a record that has them as well gives nothing away."""


def _without(message: str, texts: Sequence[str], secrets: Sequence[str]) -> str:
    """The first line of a message without any word of the prompt or of a key; ``…`` for them."""
    line = next((each.strip() for each in message.splitlines() if each.strip()), "")
    for secret in secrets:
        line = line.replace(secret, "…") if len(secret) > 3 else line
    line = _KEY_BEGINNING.sub("…", _QUOTED.sub("", line[: 4 * MAX_SAID])).strip(" :'\"`“")
    # A text of JSON as it stands there, and as the server may have read it.
    sent = "\n".join([*texts, *(_ESCAPE.sub(" ", text) for text in texts)]).casefold()
    words, keys = {*_WORD.findall(sent)}, "\n".join(secrets).casefold()

    def shown(match: re.Match[str]) -> str:
        word = match[0].casefold()
        # A word that was cut is a part of one.
        is_known = any(
            part in words or (len(part) > 3 and part in sent) or (len(part) > 2 and part in keys)
            for part in {word, *re.split(r"[-.'’]", word)} - _OF_ENDPOINTS
        )
        return "…" if is_known or _KEY_LIKE.search(word) else match[0]

    said = re.sub(r"…(?:[^\w…]*…)+", "…", " ".join(_WORD.sub(shown, line).split()))
    return said if len(said) <= MAX_SAID else f"{said[: MAX_SAID - 1]}…"
