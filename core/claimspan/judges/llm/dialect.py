"""What a model takes of a request, and what is learned of it from its refusals.

OpenAI's protocol is spoken in dialects: one endpoint refuses a fixed temperature, another the JSON
schema, a third the name of the limit on a reply. A refusal that names a parameter is an answer: the
next request is made without it, or with its other name (``Dialect.learn``; ``_steps`` is the table
of what comes next). A ``response_format`` that is refused is asked for in the next of ``FORMS``.
What was learned holds for the model in this process.

``refusals`` reads what a server has said, and ``endpoint`` waits and repeats what may pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from pydantic import JsonValue

from claimspan.judges.llm.chat import FORMS, ChatRequest, Form, Message, Prompt, Settings, Traits
from claimspan.judges.llm.refusals import KINDS, Kind, Refusal
from claimspan.text.tokens import count_tokens

__all__ = ["LIMITS", "REASONING_TOKENS", "TEMPLATE_TOKENS", "Dialect", "is_reasoning_model"]

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
_OVER_LIMIT: Final = re.compile("maximum tokens you requested")
_TOO_SHORT: Final = re.compile(r"higher max_tokens|output limit was reached", re.IGNORECASE)
_WINDOW: Final = re.compile(
    r"(?:context (?:length|window|size)|max_model_len|n_ctx|max_new_tokens` must be)[^.\d]{0,40}"
    r"(\d{3,8})",
    re.IGNORECASE,
)

TEMPLATE_TOKENS: Final = 64
"""What a chat template adds to the texts, generously."""

_MEASURE: Final = 1.15
"""Tokens of a text by the model's tokenizer, by our estimate, at most in most languages."""


def is_reasoning_model(model: str) -> bool:
    """Whether OpenAI's names tell that a model reasons: it takes no temperature and no logprobs."""
    return bool(_REASONING_MODEL.search(model))


_REFUSED: Final = frozenset({400, 403, 422})
_ANY: Final = range(300, 600)


class _Refused(NamedTuple):
    refusal: Refusal
    sent: ChatRequest
    prompt: Prompt


_Step: TypeAlias = tuple[
    Collection[int | None],
    Collection[Kind],
    re.Pattern[str] | None,
    Callable[[_Refused], str | None],
]
"""Statuses, kinds and words of a refusal, and the change to make: returns what is left out from now
on, None if nothing is."""


class Dialect:
    """How one model is asked; changes if it has refused something.

    Requests under way in many tasks share it: a change is one assignment, and a request that was
    made before it is made again.
    """

    def __init__(self, model: str, settings: Settings, traits: Traits) -> None:
        sends_parameters = traits.sends_parameters
        reasons = is_reasoning_model(model)
        self.options: Final = dict(settings.options)
        self.reasoning_tokens: Final = settings.reasoning_tokens
        self.window: int | None = None
        """Tokens of the model's window, as it has told them."""
        limit = traits.limit_field or LIMITS[1 if reasons else 0]
        self._limit = limit if sends_parameters else ""
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
        exact = prompt.exact_schema if self._has_keywords else None
        schema = _bare(prompt.schema) if form == "plain" else exact or prompt.schema
        parameters = {name: each for name, each in self._fixed.items() if name not in self._dropped}
        if self._has_own_format:  # what it does not say of the form, the words have to
            is_schema = "json_schema" in json.dumps(self.options["response_format"])
            form = "plain" if is_schema else "words"
        elif form == "object":
            parameters["response_format"] = {"type": "json_object"}
        elif form != "words":
            strict: dict[str, JsonValue] = {"strict": True} if form == "strict" else {}
            told: dict[str, JsonValue] = {"name": prompt.schema_name, **strict}
            told["schema"] = dict(schema)
            parameters["response_format"] = {"type": "json_schema", "json_schema": told}
        if prompt.logprobs and "logprobs" not in self._dropped:
            parameters |= {"logprobs": True, "top_logprobs": self._top_logprobs}
        max_tokens = self._limited(prompt)
        if self._limit and not any(name in self.options for name in LIMITS):
            parameters[self._limit] = max_tokens
        parameters |= {k: v for k, v in self.options.items() if k not in self._dropped}
        parameters = {name: each for name, each in parameters.items() if each is not None}
        own = [parameters.get(name) for name in LIMITS]
        return ChatRequest(
            messages=self._messages(prompt, says_form=form in ("object", "words")),
            schema=None if form == "words" else schema,
            max_tokens=max((each for each in own if isinstance(each, int)), default=max_tokens),
            parameters=parameters,
        )

    @property
    def _has_own_format(self) -> bool:
        return "response_format" in self.options and "response_format" not in self._dropped

    def _messages(self, prompt: Prompt, *, says_form: bool) -> list[Message]:
        system = prompt.system
        if says_form:
            system += f"\n\nThe JSON schema of the answer: {json.dumps(_bare(prompt.schema))}"
        if not self._has_system:
            return [{"role": "user", "content": f"{system}\n\n{prompt.user}"}]
        return [{"role": "system", "content": system}, {"role": "user", "content": prompt.user}]

    def _limited(self, prompt: Prompt) -> int:
        wanted = prompt.max_tokens + self._room
        if self._most is not None:
            wanted = min(wanted, self._most)
        if self.window is not None:
            # Some servers refuse a limit that the window has no room for beside the prompt.
            wanted = min(wanted, max(self._left_of_window(prompt), prompt.max_tokens))
        return wanted

    def _left_of_window(self, prompt: Prompt) -> int:
        """Tokens that the window has room for beside a prompt, by an estimate seldom too high."""
        texts = (*prompt.texts, json.dumps(dict(prompt.exact_schema or prompt.schema)))
        return (self.window or 0) - int(_MEASURE * sum(map(count_tokens, texts))) - TEMPLATE_TOKENS

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
        refused = _Refused(refusal, sent, prompt)
        for statuses, kinds, words, change in self._steps():
            fits = refusal.status in statuses and refusal.kind in kinds
            if fits and (words is None or words.search(refusal.said)):
                told = change(refused)
                if told is not None:
                    return None if self.request(prompt) == sent else told
        return None

    def _with_room(self, _: _Refused) -> str | None:
        """Lets replies be longer: a model refuses a limit that it cannot think within."""
        if self.has_room:
            return None
        self.give_room()
        return "so short a reply"

    def _fitted(self, refused: _Refused) -> str | None:
        """Keeps the limit on a reply within the window, if that is what did not fit."""
        told = [int(each) for each in _WINDOW.findall(refused.refusal.message)]
        if told:
            self.window = min(told)
        # Not the texts were too long, but texts and reply together.
        if not self._room or refused.sent.max_tokens <= refused.prompt.max_tokens:
            return None
        before, self._room = self._room, 0
        is_shorter = self.request(refused.prompt).max_tokens < refused.sent.max_tokens
        if self.window is not None and is_shorter:
            left = self._left_of_window(refused.prompt) - refused.prompt.max_tokens
            self._room = min(max(0, left), before)
        return "so long a reply"

    def _without_system(self, refused: _Refused) -> str | None:
        """Puts what the system says before what the user says."""
        if len(refused.sent.messages) < 2:
            return None
        self._has_system = False
        return "a message of the system"

    def _without_logprobs(self, refused: _Refused) -> str | None:
        # Before log probabilities were common, servers answered with a bare status.
        if "logprobs" not in refused.sent.parameters:
            return None
        self._dropped.add("logprobs")
        return "logprobs"

    def _without_what_is_named(self, refused: _Refused) -> str | None:
        said, parameters = refused.refusal.said, refused.sent.parameters
        changes: list[str] = []
        # What is named as a parameter counts alone: a message may list what it would take.
        param = refused.refusal.param
        by_param = [name for name, words in _NAMES.items() if param and words.search(param)]
        named = by_param or [name for name, words in _NAMES.items() if words.search(said)]
        keyword = _KEYWORD.search(said)
        names_form = "response_format" in named or (keyword and "schema" in said.lower())
        if "response_format" in parameters and names_form:
            changes.append(self._step_down(said, keyword is not None))
        limit = next((name for name in LIMITS if name in parameters), None)
        if "max_tokens" in named and limit is not None:
            changes += filter(None, [self._other_limit(limit, said, parameters)])
        for name in ("temperature", "seed", "logprobs"):
            if name in named and name in parameters:
                self._dropped |= {name, "top_logprobs"} if name == "logprobs" else {name}
                changes.append(name)
        for name in sorted(self.options.keys() & parameters.keys() - self._dropped - {*changes}):
            if name not in (*LIMITS, "response_format") and re.search(rf"\b{name}\b", said):
                self._dropped.add(name)
                changes.append(name)
        return ", ".join(changes) or None

    def _in_next_form(self, refused: _Refused) -> str:
        return self._step_down(refused.refusal.said, has_keyword=False)

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

    def _without_all(self, refused: _Refused) -> str | None:
        """Leaves out all that can be: the refusal names nothing."""
        is_bare = not {"temperature", "seed"} & refused.sent.parameters.keys()
        if not refused.refusal.message or (self._forms[0] == "words" and is_bare):
            return None
        self._dropped |= {"temperature", "seed", "logprobs"}
        self._forms = [each for each in self._forms if each == "words"] or self._forms[-1:]
        return "an option that it does not name"

    def _steps(self) -> Sequence[_Step]:
        """What a refusal means for the next request, by its status, kind and words.

        The first change that can be made counts.
        """
        return (
            (_ANY, KINDS, _TOO_SHORT, self._with_room),
            (_REFUSED, {"length"}, _OVER_LIMIT, self._without_what_is_named),
            ({400, 422, 429, 500}, {"length"}, None, self._fitted),
            ({500}, {"away", "place"}, _SYSTEM, self._without_system),
            ({500}, {"away", "place"}, _NAMES["response_format"], self._in_next_form),
            (_REFUSED, {"other"}, None, self._without_what_is_named),
            (_REFUSED, {"other", "key"}, None, self._without_logprobs),
            (_REFUSED, {"other"}, _SYSTEM, self._without_system),
            (_REFUSED, {"other"}, _VAGUE, self._without_all),
        )


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
