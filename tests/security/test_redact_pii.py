"""The built-in redactor against a labelled set, and against texts made to slow it. Row P1."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.errors import ConfigError
from claimspan_tracing import PiiRedactor

from linear_time import grows_linearly

JWT: Final = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (
        json.dumps({"alg": "HS256", "typ": "JWT"}).encode(),
        b'{"sub":"1"}',
        b"\x00\xff" * 16,
    )
)
PEM: Final = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n"
    + "MIIEowIBAAKCAQEA7bq9\n" * 20
    + "-----END RSA PRIVATE KEY-----"
)

TRUE: Final[list[tuple[str, str, str]]] = [
    # kind, secret, text around it
    ("email", "jan.novak@example.com", "Pišite na {} do petka."),
    ("email", "JAN+tag@sub.example.co.uk", "<{}>"),
    ("email", "müller@bücher.de", "Schreiben Sie an {}!"),
    ("email", "o'brien_99@mail.example.ie", "From: {}; To: all"),
    ("email", "zhang@example.cn", "请联系{}谢谢"),
    ("email", "иван@пример.рф", "Пишите на {}."),
    ("email", "user%40example.org", "https://example.org/?mail={}&x=1"),
    ("email", "a@b.io", '{{"mail": "{}"}}'),
    ("email", "联系@例子.公司", "邮箱：{}。"),
    ("phone", "+386 40 123 456", "Pokličite me na {} jutri."),
    ("phone", "+1 415-555-2671", "Call {} now"),
    ("phone", "(415) 555-2671", "Office: {}, room 4"),
    ("phone", "415-555-2671", "Reach us under {}."),
    ("phone", "415.555.2671", "fax {}"),
    ("phone", "4155552671", "my phone is {} in the evening"),
    ("phone", "020 7946 0958", "London office {}"),
    ("phone", "07911 123456", "text me: {}"),
    ("phone", "+44 (0)20 7946 0958", "UK: {}"),
    ("phone", "0044 20 7946 0958", "from abroad {}"),
    ("phone", "030 901820", "Das Amt hat die {}."),
    ("phone", "+49-170-1234567", "Handy {}"),
    ("phone", "01 42 68 53 00", "Téléphone : {}"),
    ("phone", "06.12.34.56.78", "Mon portable est le {}"),
    ("phone", "612 34 56 78", "Mi móvil es {}"),
    ("phone", "02 1234 5678", "Telefono {} dopo le 9"),
    ("phone", "+81 3-1234-5678", "電話は{}です"),
    ("phone", "+8613812345678", "手机{}"),
    ("phone", "+91 98765 43210", "फ़ोन {}"),
    ("phone", "+971 50 123 4567", "هاتف {}"),
    ("phone", "+7 (495) 123-45-67", "Звоните: {}"),
    ("card", "4111111111111111", "card {} exp 12/27"),
    ("card", "4111 1111 1111 1111", "Kartica {} velja"),
    ("card", "5500-0000-0000-0004", "MC {};"),
    ("card", "3782 822463 10005", "Amex {}."),
    ("card", "378282246310005", '"pan":"{}"'),
    ("card", "6011 1111 1111 1117", "Karte: {}"),
    ("card", "3530111333300000", "JCB {}"),
    ("card", "30569309025904", "Diners {}"),
    ("iban", "SI56 1910 0000 0123 438", "Nakažite na {} pri banki."),
    ("iban", "DE89370400440532013000", "IBAN: {}"),
    ("iban", "DE89 3704 0044 0532 0130 00", "Konto {} BIC COBADEFF"),
    ("iban", "GB82 WEST 1234 5698 7654 32", "account {} THANK YOU"),
    ("iban", "fr14 2004 1010 0505 0001 3m02 606", "compte {}, merci"),
    ("iban", "NL91-ABNA-0417-1643-00", "rekening {}"),
    ("jwt", JWT, "Authorization: {}"),
    ("jwt", JWT, "token={}&next=/"),
    ("key", "sk-proj-abc123def456ghi789jkl012", "OPENAI_API_KEY={}"),
    ("key", "sk-ant-api03-AbCdEf123456_7890-xyz", "key {}"),
    ("key", "AKIAIOSFODNN7EXAMPLE", "aws_access_key_id = {}"),
    ("key", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "GITHUB_TOKEN={} git push"),
    ("key", "xoxb-123456789012-1234567890123-AbCdEfGh", "SLACK={}"),
    ("key", "AIzaSyA1234567890abcdefghijklmnopqrstuvw", "maps?key={}&v=3"),
    ("key", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", "stripe: {}"),
    ("key", "glpat-ABCdef1234567890abcd", "{}"),
    ("key", "mF_9.B5f-4.1JqM1234", "Authorization: Bearer {}"),
    ("key", PEM, "The key:\n{}\nKeep it."),
]

FALSE: Final = [
    "Order 4155552671 was shipped on 2024-01-15.",
    "Order no. 1002-3344-5566",
    "Invoice 2024-000123 of 15.01.2024 12:30",
    "On 12/31/2024 and 01-02-2023 nothing happened.",
    "Version 10.15.7, build 20G1427, protocol 1.2.3.4567",
    "left-pad@1.3.0 and lodash@4.17.21 are packages",
    "ISBN 978-3-16-148410-0, ISBN 0-306-40615-2",
    "The sum is 1 234 567,89 EUR, or 12.345.678 in all.",
    "$ 4,500,000 and 1 200 000 € and 3.000.000 kg",
    "Timestamp 1700000000, in ms 1700000000000",
    "Host 192.168.100.200 port 8080, mask 255.255.255.0",
    "Commit 4111111a and hash 5f3e2d1c0b9a8877",
    "Tracking number 1234567890123456",
    "The order 4111111111111112 is no card.",
    "DE89370400440532013001 has wrong check digits.",
    "AB12 3456 7890 1234 5678 is no account",
    "eyJust.a.sentence with dots",
    "e1234567890.abcdef.ghijkl",
    "Use sk-learn or sk-something-without-digits here.",
    "The bearer of responsibilities, Bearer internationalisation",
    "@handle, a @ b, me@localhost, 5 @ 3",
    "Pages 1234-1250, lines 10-20, years 1914-1918 and 1939-1945",
    "Latitude 46.0569 longitude 14.5058",
    "Article 12 345 678 of the register",
    "Room 101, floor 3, 24/7, 50 % of 2000",
    "π is 3.14159265358979, e is 2.718281828459045",
    "It takes 10 000 000 ms",
    "UUID 123e4567-e89b-12d3-a456-426614174000",
    "Zip 94105-1234, PO box 1234",
    "EAN 4006381333931",
    "1-2-3-4-5-6-7, 1 2 3 4 5 6 7 8",
    "Ratio 16:9, score 3-2, 2-1 and 0-0",
    "CSS #4155552671 and RGB 255 255 255",
    "RFC 2616, section 14.35.1",
    "Population 2 102 419 in 2020, area 20 271 km",
]

SECONDS: Final = 20.0
"""For a text of 1 MB on a slow machine; what is quadratic takes hours."""


@pytest.fixture(scope="module")
def redactor() -> PiiRedactor:
    return PiiRedactor()


def test_what_is_labelled_is_found_and_false_friends_stay(redactor: PiiRedactor) -> None:
    missed = [
        (kind, secret, redactor(around.format(secret)))
        for kind, secret, around in TRUE
        if redactor(around.format(secret)) != around.format(f"[{kind}]")
    ]
    wrong = [redactor(text) for text in FALSE if redactor(text) != text]
    found = len(TRUE) - len(missed)
    recall, precision = found / len(TRUE), found / (found + len(wrong))
    kinds = Counter(kind for kind, _, _ in TRUE)
    print(f"recall {recall:.3f} of {dict(kinds)}, precision {precision:.3f} of {len(FALSE)} false")

    assert missed == []
    assert len(wrong) <= 1, wrong


def test_what_was_found_is_gone_and_the_same_text_gives_the_same_result(
    redactor: PiiRedactor,
) -> None:
    text = "\n".join(around.format(secret) for _, secret, around in TRUE)

    redacted = redactor(text)

    assert [secret for _, secret, _ in TRUE if secret in redacted] == []
    assert redactor(text) == redacted
    assert redactor(redacted) == redacted


@pytest.mark.parametrize(
    "part",
    ["1", "12 ", "0 ", "00 ", "1-", "+49 170 ", "4111 ", "@", "a@", "a@b.", "a.", "a", "eyJ.", "e",
     "-----BEGIN PRIVATE KEY-----", "AA00 ", "DE89 3704 ", "(", "sk-", "Bearer ", "tel ", "call 1 ",
     "1/1/", "9.", "\u0661", "%40", "030 901820, "],
)  # fmt: skip
def test_a_text_made_to_slow_it_takes_linear_time(redactor: PiiRedactor, part: str) -> None:
    assert grows_linearly(redactor, part, 500_000)


PARTS: Final = st.sampled_from(
    ["+", "0", "4111", " 1111", "@", ".com", "a", "-", "DE89", "eyJ", ".", " ", "(", ")", "\u0660",
     "sk-1", "Bearer ", "-----BEGIN PRIVATE KEY-----", "\ud800", "\n", "tel "]
)  # fmt: skip


@given(st.lists(PARTS | st.text(max_size=5), max_size=60).map("".join))
def test_any_text_can_be_redacted(text: str) -> None:
    redacted = REDACTOR(text)

    assert REDACTOR(text) == redacted
    assert "jan@example.com" not in REDACTOR(f"{text} jan@example.com")


REDACTOR: Final = PiiRedactor()


def test_only_the_kinds_that_were_chosen_are_replaced() -> None:
    redactor = PiiRedactor(kinds=["email"])

    assert redactor("a@example.com, +386 40 123 456") == "[email], +386 40 123 456"


def test_national_numbers_are_those_of_the_regions() -> None:
    assert PiiRedactor(regions=["SI"])("Pišem na 040 123 456.") == "Pišem na [phone]."
    assert PiiRedactor(regions=[])("At 020 7946 0958 or +44 20 7946 0958") == (
        "At 020 7946 0958 or [phone]"
    )


def test_an_unknown_kind_or_region_is_refused() -> None:
    with pytest.raises(ConfigError, match="kinds"):
        PiiRedactor(kinds=["name"])  # type: ignore[list-item] # pyright: ignore[reportArgumentType] - what is wrong about it
    with pytest.raises(ConfigError, match="regions"):
        PiiRedactor(regions=["XX"])
    with pytest.raises(ConfigError, match="regions"):
        PiiRedactor(regions="US")


def absent(name: str) -> None:
    """Find no package."""


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claimspan_tracing.redact.pii.find_spec", absent)

    with pytest.raises(ConfigError, match=r"pip install 'claimspan\[redact\]'"):
        PiiRedactor()
    assert PiiRedactor(kinds=["email", "key", "jwt"])("a@example.com") == "[email]"
