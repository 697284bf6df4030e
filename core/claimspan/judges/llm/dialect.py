"""What a model takes of a request, and what is learned of it from its refusals.

OpenAI's protocol is spoken in dialects: one endpoint refuses a fixed temperature, another the JSON
schema, a third the name of the limit on a reply. A refusal that names a parameter is an answer: the
next request is made without it, or with its other name. What was learned holds for the model in
this process.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from claimspan.judges.llm.chat import FORMS, ChatRequest, Form, Message, Prompt, Settings, Traits
from claimspan.judges.llm.refusals import Refusal
from claimspan.text.tokens import count_tokens

__all__ = ["LIMITS", "REASONING_TOKENS", "Dialect", "is_reasoning_model"]

LIMITS: Final = ("max_tokens", "max_completion_tokens")
"""Fields that limit the completion tokens; an endpoint knows one of them, or both."""

REASONING_TOKENS: Final = 25_000
"""The reserve for a model's reasoning that OpenAI's guide recommends."""

# OpenAI's o1 and later, gpt-5 and later: also as `openai/gpt-5-mini`, `ft:gpt-5-mini:x`, `gpt5-x`.
_REASONING_MODEL: Final = re.compile(
    r"(?:^|[/:._-])(?:o[1-9](?:$|[-:.])|gpt-?[5-9])", re.IGNORECASE
)

# Models of others that think before they reply, as far as their names tell.
_THINKING_MODEL: Final = re.compile(
    r"gemini-(?:2\.5-(?:pro|flash)(?!-lite)|[3-9])|deepseek-r(?:easoner|\d)|magistral|qwq"
    r"|qwen3(?!.*instruct)|gpt-oss|grok-(?:3-mini|4)|thinking",
    re.IGNORECASE,
)

_NAMES: Final[Mapping[str, re.Pattern[str]]] = {
    name: re.compile(words, re.IGNORECASE)
    for name, words in {
        "temperature": r"temperature",
        "seed": r"\b(random_)?seed\b",
        "logprobs": r"log_?\s?prob(s|abilit)|top_?logprobs",
        "response_format": (
            r"response[_ ]?(format|schema|mime_?type)|json[_ ]?(schema|object|mode)"
            r"|output_(format|config)|structured[_ ]outputs?|guided_json|grammar|tool_?choice"
            r"|tool use|required for format|json_validate_failed"
        ),
        "max_tokens": r"max_?(completion_?|output_?|new_?)?tokens|maximum tokens you requested",
    }.items()
}
"""Parameters, and the words by which servers name them."""

# As a word of a schema; `type`, `items` and the like are in every schema, and never refused.
_KEYWORD: Final = re.compile(
    r"\b(pattern|const|enum|minLength|maxLength|minItems|maxItems|prefixItems|additionalProperties|"
    r"strict)\b"
)
_SYSTEM: Final = re.compile(
    r"\b(system|developer)\b.{0,60}\b(role|message|prompt|instruction)|role.{0,60}"
    r"\bsystem\b|roles must alternate",
    re.IGNORECASE,
)
_VAGUE: Final = re.compile(
    r"invalid[_ ](argument|request|input)|bad request|unsupported|not supported|not permitted"
    r"|unknown (parameter|field|argument|name)|unrecogni[sz]ed|extra (inputs|fields)|unexpected",
    re.IGNORECASE,
)
_AT_MOST: Final = re.compile(
    r"(?:at most|less than or equal to|<=|maximum (?:allowed )?(?:value|number)?[^.\d]{0,40}"
    r"|up to|limit of|\b1(?: ?, ?| to |-)|\d >)[\s`]*(\d{3,7})|to (\d{3,7}) \(exclusive",
    re.IGNORECASE,
)
_TOO_SHORT: Final = re.compile(r"higher max_tokens|output limit was reached", re.IGNORECASE)
_WINDOW: Final = re.compile(
    r"(?:context (?:length|window|size)|max_model_len|n_ctx|max_new_tokens` must be)[^.\d]{0,40}"
    r"(\d{3,8})",
    re.IGNORECASE,
)

_TEMPLATE_TOKENS: Final = 64
"""What a chat template adds to the texts, generously."""

_MEASURE: Final = 1.15
"""Tokens of a text by the model's tokenizer, by our estimate, at most in most languages."""


def is_reasoning_model(model: str) -> bool:
    """Whether OpenAI's names tell that a model reasons: it takes no temperature and no logprobs."""
    return bool(_REASONING_MODEL.search(model))


class Dialect:
    """How one model is asked; changes if it has refused something.

    Requests under way in many tasks share it: a change is one assignment, and a request that was
    made before it is made again.
    """

    def __init__(
        self,
        model: str,
        settings: Settings,
        traits: Traits,
        *,
        limit: str | None,
    ) -> None:
        """Set what is known before the first request.

        ``limit`` is the field of the limit on completion tokens; None goes by the model.
        """
        sends_parameters = traits.sends_parameters
        reasons = is_reasoning_model(model)
        self.options: Final = dict(settings.options)
        self.reasoning_tokens: Final = settings.reasoning_tokens
        self.window: int | None = None
        """Tokens of the model's window, as it has told them."""
        self._limit = (limit or (LIMITS[1] if reasons else LIMITS[0])) if sends_parameters else ""
        self._limits_refused: set[str] = set()
        self._most: int | None = None
        # The chat variants, such as gpt-5-chat, do not reason and refuse a limit as high as that.
        thinks = (reasons and "-chat" not in model) or bool(_THINKING_MODEL.search(model))
        self._room = self.reasoning_tokens if thinks and sends_parameters else 0
        self._top_logprobs = settings.top_logprobs
        self._fixed: dict[str, JsonValue] = {}
        if sends_parameters and not reasons:
            self._fixed["temperature"] = 0
        if sends_parameters and settings.seed is not None:
            self._fixed["seed"] = settings.seed
        self._dropped: set[str] = set() if sends_parameters and not reasons else {"logprobs"}
        self._forms: list[Form] = [each for each in FORMS if each in traits.forms]
        self._has_keywords = True
        self._has_system = True

    @property
    def has_room(self) -> bool:
        """Whether a reply may already take all that was set aside for reasoning."""
        return self._room >= self.reasoning_tokens

    def give_room(self) -> None:
        """From now on lets replies be as long as the reasoning of a model may make them."""
        self._room = self.reasoning_tokens

    # --- a request ---

    def request(self, prompt: Prompt) -> ChatRequest:
        """The request for a prompt in this dialect."""
        form = self._forms[0]
        schema = prompt.schema
        if prompt.plain_schema is not None and not self._has_keywords:
            schema = prompt.plain_schema
        if form == "plain":
            schema = _bare(prompt.plain_schema or prompt.schema)
        parameters = {name: each for name, each in self._fixed.items() if name not in self._dropped}
        if self._has_own_format:  # what it does not say of the form, the words have to
            is_schema = "json_schema" in json.dumps(self.options["response_format"])
            form = "plain" if is_schema else "words"
        elif form != "words":
            parameters["response_format"] = _format(form, prompt.schema_name, schema)
        if prompt.logprobs and "logprobs" not in self._dropped:
            parameters |= {"logprobs": True, "top_logprobs": self._top_logprobs}
        max_tokens = self._limited(prompt)
        if self._limit and not any(name in self.options for name in LIMITS):
            parameters[self._limit] = max_tokens
        parameters |= {k: v for k, v in self.options.items() if k not in self._dropped}
        parameters = {name: each for name, each in parameters.items() if each is not None}
        own = [parameters.get(name) for name in LIMITS]
        max_tokens = max((each for each in own if isinstance(each, int)), default=max_tokens)
        says_form = form in ("object", "words")
        return ChatRequest(
            messages=self._messages(prompt, prompt.plain_schema or schema if says_form else None),
            schema=None if form == "words" else schema,
            max_tokens=max_tokens,
            parameters=parameters,
        )

    @property
    def _has_own_format(self) -> bool:
        return "response_format" in self.options and "response_format" not in self._dropped

    def _messages(self, prompt: Prompt, schema: Mapping[str, JsonValue] | None) -> list[Message]:
        system = prompt.system
        if schema is not None:
            system += f"\n\nThe JSON schema of the answer: {json.dumps(_bare(schema))}"
        if not self._has_system:
            return [{"role": "user", "content": f"{system}\n\n{prompt.user}"}]
        return [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]

    def _limited(self, prompt: Prompt) -> int:
        wanted = prompt.max_tokens + self._room
        if self._most is not None:
            wanted = min(wanted, self._most)
        if self.window is not None:
            # Some servers refuse a limit that the window has no room for beside the prompt.
            left = self.window - self.tokens_of(prompt) - _TEMPLATE_TOKENS
            wanted = min(wanted, max(left, prompt.max_tokens))
        return wanted

    @staticmethod
    def tokens_of(prompt: Prompt) -> int:
        """An estimate of the prompt's tokens that is seldom too low."""
        schema = json.dumps(dict(prompt.schema))
        return int(_MEASURE * sum(map(count_tokens, (*prompt.texts, schema))))

    # --- refusals ---

    def learn(self, refusal: Refusal, sent: ChatRequest, prompt: Prompt) -> str | None:
        """Changes the dialect by what a refusal of a request for a prompt names.

        Returns:
            What is left out or asked for otherwise from now on, empty if that was known already;
            None if nothing can be changed, so that the refusal stands.
        """
        # Another task has learned it meanwhile, perhaps: then the request is made as it is now.
        if self.request(prompt) != sent:
            return ""
        told = self._learned(refusal, sent, prompt)
        return None if told is None or self.request(prompt) == sent else told

    def _learned(self, refusal: Refusal, sent: ChatRequest, prompt: Prompt) -> str | None:
        parameters, kind = sent.parameters, refusal.kind
        said = f"{refusal.param} {refusal.code} {refusal.message}"
        is_limit = "maximum tokens you requested" in said
        if _TOO_SHORT.search(said) and not self.has_room:
            self.give_room()
            return "so short a reply"
        if kind == "length" and refusal.status != 413 and not is_limit:
            return self._fitted(refusal, sent, prompt)
        if refusal.status == 500 and _SYSTEM.search(said) and self._has_system:
            self._has_system = False
            return "a message of the system"
        if refusal.status == 500 and _NAMES["response_format"].search(said):
            return self._step_down(said, has_keyword=False)
        if refusal.status not in (400, 403, 422) or kind not in ("other", "key", "length"):
            return None
        if kind != "key" and (changes := self._named_changes(said, parameters, refusal)):
            return ", ".join(changes)
        # Before log probabilities were common, servers answered with a bare status.
        if "logprobs" in parameters:
            self._dropped.add("logprobs")
            return "logprobs"
        if kind == "other" and _SYSTEM.search(said) and len(sent.messages) > 1:
            self._has_system = False
            return "a message of the system"
        if kind == "other" and refusal.message and _VAGUE.search(said):
            return self._everything(parameters)
        return None

    def _named_changes(
        self, said: str, parameters: Mapping[str, JsonValue], refusal: Refusal
    ) -> list[str]:
        """Changes whatever a refusal names of what was sent."""
        changes: list[str] = []
        # What is named as a parameter counts alone: a message may list what it would take.
        param = refusal.param
        by_param = [name for name, words in _NAMES.items() if param and words.search(param)]
        named = by_param or [name for name, words in _NAMES.items() if words.search(said)]
        limit = next((name for name in LIMITS if name in parameters), None)
        if "response_format" in parameters:
            keyword = _KEYWORD.search(said)
            if "response_format" in named or (keyword and "schema" in said.lower()):
                changes.append(self._step_down(said, keyword is not None))
        if "max_tokens" in named and limit is not None:
            change = self._other_limit(limit, said, parameters)
            changes += [change] if change else []
        for name in ("temperature", "seed", "logprobs"):
            if name in named and name in parameters:
                self._dropped |= {name, "top_logprobs"} if name == "logprobs" else {name}
                changes.append(name)
        for name in sorted(self.options.keys() & parameters.keys() - self._dropped - {*changes}):
            if name not in (*LIMITS, "response_format") and re.search(rf"\b{name}\b", said):
                self._dropped.add(name)
                changes.append(name)
        return changes

    def _step_down(self, said: str, has_keyword: bool) -> str:
        """Asks for the form of a reply in the next way; returns what was refused."""
        if self._has_own_format:
            self._dropped.add("response_format")
            return "response_format"
        form = self._forms[0]
        if has_keyword and form == "strict" and self._has_keywords and "'strict'" not in said:
            self._has_keywords = False  # keywords of the exact schema; the usual one has none
            if _KEYWORD.search(said) is None or "additionalProperties" not in said:
                return "keywords of the JSON schema"
        following = self._forms[1:] or self._forms
        # A schema that is refused whole is refused as a hint as well.
        self._forms = [
            each for each in following if has_keyword or each in ("object", "words")
        ] or following
        refused = {"strict": "the strict JSON schema", "plain": "the JSON schema"}
        return refused.get(form, "json_object")

    def _other_limit(
        self, limit: str, said: str, parameters: Mapping[str, JsonValue]
    ) -> str | None:
        """Lowers the limit on a reply to what a refusal allows, or sends it by its other name."""
        sent = parameters[limit]
        most = [int(each) for found in _AT_MOST.findall(said) for each in found if each]
        smaller = [each for each in most if isinstance(sent, int) and each < sent]
        if smaller and not re.search(r"\buse\b", said, re.IGNORECASE):
            self._most = min(smaller) - ("exclusive" in said)
            return f"more than {self._most} completion tokens"
        other = LIMITS[1 - LIMITS.index(limit)]
        self._limits_refused.add(limit)
        if other in self._limits_refused:
            return None
        self._limit = other
        if limit in self.options:
            self.options[other] = self.options.pop(limit)
        return limit

    def _everything(self, parameters: Mapping[str, JsonValue]) -> str | None:
        """Leaves out all that can be: the refusal names nothing."""
        if self._forms[0] == "words" and not ({"temperature", "seed"} & parameters.keys()):
            return None
        self._dropped |= {"temperature", "seed", "logprobs"}
        self._forms = [each for each in self._forms if each == "words"] or self._forms[-1:]
        return "an option that it does not name"

    def _fitted(self, refusal: Refusal, sent: ChatRequest, prompt: Prompt) -> str | None:
        """Keeps the limit on a reply within the window, if that is what did not fit."""
        told = [int(each) for each in _WINDOW.findall(refusal.message)]
        if told:
            self.window = min(told)
        # Not the texts were too long, but texts and reply together.
        if self._room and sent.max_tokens > prompt.max_tokens:
            before, self._room = self._room, 0
            if self.window is not None and self.request(prompt).max_tokens < sent.max_tokens:
                left = self.window - self.tokens_of(prompt) - prompt.max_tokens
                self._room = min(max(0, left), before)
            return "so long a reply"
        return None


def _format(form: Form, name: str, schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    if form == "object":
        return {"type": "json_object"}
    strict: dict[str, JsonValue] = {"strict": True} if form == "strict" else {}
    return {"type": "json_schema", "json_schema": {"name": name, **strict, "schema": dict(schema)}}


def _bare(schema: JsonValue | Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A schema with the keywords alone that every server knows."""
    kept = {"type", "properties", "required", "items", "enum", "description"}

    def bare(value: JsonValue | Mapping[str, JsonValue], names: bool) -> JsonValue:
        if isinstance(value, Mapping):
            return {
                key: bare(each, key == "properties" and not names)
                for key, each in value.items()
                if names or key in kept
            }
        return [bare(each, False) for each in value] if isinstance(value, list) else value

    made = bare(schema, False)
    return made if isinstance(made, dict) else {}
