"""Keys, tokens and passwords: by the form that their provider documents, or by what names them.

A form is a pattern whose group ``secret`` is taken out, with what its text has to fulfil. Each
pattern begins where the sign before cannot be a part of it, and each repetition is possessive or
bounded, so that no text takes more than linear time.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from claimspan_tracing.redact.folding import Place

__all__ = ["find_jwts", "find_keys"]

# Beginnings that providers document so that scanners may find their keys; those without a source
# of their own are on GitHub's list of supported patterns
# (docs.github.com/code-security/reference/secret-security/supported-secret-scanning-patterns).
_DOCUMENTED: Final = (
    # OpenAI, Anthropic (-ant-), OpenRouter (-or-), DeepSeek, Langfuse (-lf-), LiteLLM
    r"[ps]k-[\w-]{16,}+",
    # Groq, xAI, Pinecone, Perplexity, Replicate, NVIDIA, Cerebras, Tavily, LlamaCloud, Jina, E2B
    r"gsk_\w{20,}+|xai-\w{20,}+|pc(?:sk|db)_\w{20,}+|pplx-\w{20,}+|r8_\w{20,}+|nvapi-[\w-]{20,}+",
    r"csk-\w{20,}+|tvly-[\w-]{16,}+|llx-\w{20,}+|jina_[\w-]{20,}+|e2b_\w{20,}+|fw_\w{20,}+",
    # LangSmith; Hugging Face, of users and of organisations; Together
    r"lsv2_(?:pt|sk)_\w{20,}+|ls__\w{20,}+|hf_\w{20,}+|api_org_\w{20,}+|tgp_v1_[\w-]{20,}+",
    # AWS: docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
    # with the secret, where a table has it in the next cell
    r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![A-Za-z0-9])(?:[\s,;:|\"']{1,3}[A-Za-z0-9/+]{40}(?!\w))?",
    # Google: keys of APIs, OAuth tokens and client secrets, refresh tokens
    r"AIza[\w-]{30,}+|ya29\.[\w-]{20,}+|GOCSPX-[\w-]{20,}+|1//0[\w-]{30,}+",
    # Azure: client secrets of Entra ID
    r"\w{3}\dQ~[\w.~-]{31,}+",
    # GitHub: github.blog/engineering/behind-githubs-new-authentication-token-formats
    r"gh[opsur]_\w{20,}+|github_pat_\w{20,}+",
    # GitLab: docs.gitlab.com/security/tokens/#token-prefixes
    r"gl(?:pat|oas|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|ffct)-[\w.-]{16,}+",
    # Slack: docs.slack.dev/authentication/tokens
    r"xox[a-z](?:\.xox[a-z])?-[\w-]{10,}+|xapp-[\w-]{16,}+|xwfp-[\w-]{16,}+",
    r"hooks\.slack\.com/(?:services|workflows|triggers)/[\w/-]{16,}+",
    r"discord(?:app)?\.com/api/webhooks/\d+/[\w-]{30,}+",
    # Stripe: docs.stripe.com/keys; Square; Shopify
    r"[sprk]k_(?:live|test)_\w{10,}+|whsec_[\w+/=-]{20,}+|sq0[a-z]{3}-[\w-]{20,}+|shp[a-z]{2}_\w{20,}+",
    # Twilio, SendGrid, Mailgun, Mailchimp; bots of Discord and Telegram
    r"SK[0-9a-f]{32}(?!\w)|SG\.[\w-]{16,}+\.[\w-]{16,}+|key-[0-9a-f]{32}(?!\w)",
    r"[0-9a-f]{32}-us\d{1,2}(?!\w)|[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}+|\d{8,10}:AA[\w-]{33}",
    # Registries: npm, PyPI (a macaroon), RubyGems, Docker Hub, crates.io
    r"npm_[A-Za-z0-9]{36,}+|pypi-[\w-]{20,}+|rubygems_\w{32,}+|dckr_[a-z]{3}_[\w-]{20,}+|cio\w{32}(?!\w)",
    # Vault: developer.hashicorp.com/vault/docs/concepts/tokens#token-prefixes; Terraform Cloud
    r"hv[sbr]\.[\w-]{20,}+|s\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}(?!\w)|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}+",
    # Databricks, DigitalOcean, Heroku, Supabase, PlanetScale, Doppler, Cloudflare
    r"dapi[0-9a-f]{32}(?:-\d)?|do[opr]_v1_\w{20,}+|HRKU-[\w-]{20,}+|sb(?:p|_secret)_[\w-]{20,}+",
    r"pscale_[a-z]{2,8}_[\w.-]{20,}+|dp\.[a-z]{2,5}\.\w{20,}+|v1\.0-[0-9a-f]{24}-[0-9a-f]{64,}+",
    # Grafana, Sentry, New Relic, Postman, Linear, Notion, Figma, Atlassian, Airtable, 1Password
    r"gls?[ac]_[\w+/=]{20,}+|sntry[su]_[\w+/=-]{20,}+|NRAK-\w{20,}+|PMAK-[\w-]{20,}+",
    r"lin_api_\w{20,}+|ntn_\w{20,}+|secret_[A-Za-z0-9]{40,}+|figd_[\w-]{20,}+|AT(?:ATT3|BB)[\w=-]{20,}+",
    r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}|ops_eyJ[\w+/=-]{40,}+|AGE-SECRET-KEY-1\w{50,}+",
)  # fmt: skip

_BEGIN: Final = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_END: Final = r"-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
_LINE: Final = r"[A-Za-z0-9+/=]"

_RANDOM: Final = re.compile(r"\d|[a-z][A-Z]|[A-Za-z]{24}")


def _is_random(text: str) -> bool:
    """Whether a text is more than words: those that are joined by hyphens are no key."""
    return _RANDOM.search(text) is not None


def _is_pair(text: str) -> bool:
    """Whether a text is a name and a password, as HTTP's ``Basic`` encodes them."""
    with suppress(ValueError):
        pair = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
        return ":" in pair and pair.isprintable()
    return False


def _is_written(text: str) -> bool:
    """Whether a text stands for itself, rather than for what is to be put in its place."""
    return _STAND_IN.match(text) is None


# A variable, a template, a call or an index in code, a mark of ours, or signs that hide the secret.
_STAND_IN: Final = re.compile(
    r"[$%]?[{<(\[]|\$[A-Za-z_]|%[sd(]|([*x.•#-])\1{2}|[A-Za-z_][\w.]{0,60}[(\[]"
)

_Form = tuple[str, Callable[[str], bool]]

_FORMS: Final[tuple[_Form, ...]] = (
    # No word of prose is as long as the shortest of them.
    (rf"(?<![A-Za-z0-9])(?=[\w./:~-]{{15}})(?P<secret>{'|'.join(_DOCUMENTED)})", _is_random),
    # PEM; what stands before the end of a block whose beginning is in another chunk
    (rf"(?P<secret>{_BEGIN}(?s:(?!-----).)*+(?:{_END})?)", bool),
    (
        rf"(?m:^)(?P<secret>(?:{_LINE}{{16,80}}\n)*+(?:{_LINE}{{1,15}}\n)?(?:{_END})?)",
        lambda text: text.endswith("-----"),
    ),
    # RFC 6750, and RFC 7617, which files of Docker and npm also write as ``auth``
    (r"[Bb]earer\s(?<!\w.{7})(?P<secret>[\w.~+/=-]{16,}+)", _is_random),
    (
        r"(?:[Bb]asic\s(?<!\w.{6})|auth\\?[\"']?\s?[:=]\s?\\?[\"']?)(?P<secret>[\w+/]{8,}+={0,2})",
        _is_pair,
    ),
    # RFC 3986: the user's part of an address, with any sign if no page of the web has it
    (
        r"://(?P<web>(?<=http://)|(?<=https://))?+[^\s/?#:@\"'<>]{0,64}+"
        r":(?P<secret>(?(web)[^\s/?#\"'<>]|[^\s\"'<>]){1,512})@[\w.\[-]",
        _is_written,
    ),
    # The same without a scheme, and as curl takes it
    (r":(?<=[\w.-]:)(?P<secret>[^\s:/@\"'<>]{4,64}+)@(?:\d{1,3}\.){3}\d", _is_written),
    (
        r"-(?<!\S-)(?:u|-user)[ =][\"']?[^\s:\"']{1,64}+:(?P<secret>(?!\d+\b)[^\s\"']{4,}+)",
        _is_written,
    ),
)
_COMPILED: Final = [(re.compile(form, re.ASCII), is_secret) for form, is_secret in _FORMS]


def find_keys(text: str) -> Iterator[Place]:
    """Yield keys, tokens and passwords."""
    for form, is_secret in _COMPILED:
        for found in form.finditer(text):
            if is_secret(found["secret"]):
                yield found.span("secret")
    yield from _find_named(text)


# --- what a name in front of it gives away --------------------------------------------------------

# Of the text in small letters: a pattern that heeds no case takes ten times as long.
_NAMED: Final = re.compile(
    r"(?P<password>passw(?:or[dt]|d)|passphrase|passcode|pass(?![a-z])(?<![a-z]pass)|pwd|contraseña"
    r"|mot de passe|senha|geslo|парол[ья]|密码|密碼|パスワード|비밀번호)"
    r"|(?:access|account|api|app|auth|client|consumer|encryption|license|master|private|secret"
    r"|service|shared[-_ ]?access|signing|storage|subscription|webhook)[-_ ]?key"
    r"|secret|token|authorization|cookie|sig(?==)(?<![a-z]sig)|[?&]key"
    r"|(?:amz|goog)-signature"
)
MAX_VALUE: Final = 256
"""Signs of a value that are looked at. A longer secret is taken out whole all the same."""

_VALUE: Final = re.compile(
    rf"""(?![a-z])(?:[-_A-Z]\w{{0,20}})?+["'\\\])]{{0,4}}
    (?P<sign>\s?(?::=|=>|={{1,3}}|:|>)\s?
        |\ (?P<told>(?:is|was|ist|lautet|es|est|è|je)\ |(?<=--password\ ))?)
    (?:(?i:basic|bearer|bot|token|apikey)\s)?
    (?:(?P<quote>\\?["'`])
            (?P<quoted>(?:(?!(?P=quote))(?:\\.|[^\n\\])){{4,{MAX_VALUE}}})(?=(?P=quote))
        |["'`]?(?P<bare>(?:(?!\)\])[^\s"'`<,;&]|[,;&](?![\w\ ]{{1,30}}=)(?=[^\s"'`<]))
            {{4,{MAX_VALUE}}}+))
    """,
    re.VERBOSE,
)
_REST: Final = re.compile(r"[^\s\"'`<,;&]*")
_WORDS: Final = re.compile(r"[^\W\d]+(?:[ .'-][^\W\d]+)*")
# Words that stand where code or documentation names a secret, and does not tell it.
_NAMING: Final = re.compile(
    r"pass|pwd|secret|token|key|auth|none|null|true|false|string|text|required|optional|env|config"
    r"|input|user|value|self|hidden|change|prompt|your|example",
    re.IGNORECASE,
)
# A number, and the name of another value.
_NAME: Final = re.compile(
    r"^[\d.]+$|(?:^|[_.:-])(?:token|secret|password|key)(?:$|[_.:-])", re.IGNORECASE
)


def _find_named(text: str) -> Iterator[Place]:
    done = 0
    small = text.lower()
    if len(small) != len(text):  # a letter such as "\u0130" becomes two, which moves what follows
        small = "".join(each if len(each.lower()) > 1 else each.lower() for each in text)
    for name in _NAMED.finditer(small):
        found = _VALUE.match(text, name.end())
        if found is None or name.start() < done:
            continue
        secret = found["quoted"] or found["bare"].rstrip(".,;:!?)]}>")
        if _is_written(secret) and _is_value(secret, name["password"] is not None, found):
            start = found.start("quoted" if found["quoted"] else "bare")
            done = start + len(secret)
            if len(secret) == MAX_VALUE and (rest := _REST.match(text, done)):
                done = rest.end()
            yield start, done


def _is_value(text: str, is_password: bool, found: re.Match[str]) -> bool:
    """Whether what stands behind a name is a secret, rather than a word of prose or code.

    Args:
        text: What stands there.
        is_password: Whether the name is that of a password, which people choose.
        found: How it stands there: in quotes, behind a sign, or in a sentence.
    """
    sign, is_told = found["sign"].strip(), found["told"] is not None
    if text.startswith(("http://", "https://")):
        return False
    if is_told or not sign:  # in a sentence: "the password is hunter2", "API key 5f3e..."
        fewest = 6 if is_password and is_told else 16
        return len(text) >= fewest and _MIXED.match(text) is not None and not _TERM.fullmatch(text)
    if _WORDS.fullmatch(text):
        is_set = found["quoted"] is not None or "=" in sign
        return is_password and is_set and len(text) > 5 and not _NAMING.search(text)
    return is_password or (len(text) > 7 and _is_random(text) and not _NAME.search(text))


# Letters and digits; but for what has both in a sentence: SHA-256, 8-character, base64-encoded.
_MIXED: Final = re.compile(r"(?=[^\d\s]*\d)(?=[^A-Za-z]*[A-Za-z])")
_TERM: Final = re.compile(r"[A-Z]+-?\d+|\d+-[A-Za-z]+|[A-Za-z]+\d+-[A-Za-z]+")


# --- JSON web tokens, RFC 7519 --------------------------------------------------------------------

_JWT: Final = re.compile(r"(?<![\w-])[\w-]{10,}+(?:\.[\w-]*+){2,4}+", re.ASCII)


def find_jwts(text: str) -> Iterator[Place]:
    """Yield signed and encrypted tokens: their header is an object of JSON."""
    for found in _JWT.finditer(text):
        start = max(found.start(), text.find("eyJ", *found.span()))
        header = text[start : found.end()].partition(".")[0]
        with suppress(ValueError, RecursionError):
            decoded = base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
            if isinstance(json.loads(decoded), dict):
                yield start, found.end()
