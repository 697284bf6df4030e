"""Makes pairs of statements from templates, for one kind of inference each.

A template words a fact in several ways, and its twin: the same words with roles, sides or numbers
exchanged. A claim words the fact of its premise or the twin, so that neither the claim nor the set
of words tells whether it follows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from train_local_judge.pairs import Pair

__all__ = ["TEMPLATES", "Template"]

Template = Callable[[Random, Sequence[str]], Pair]
"""Makes a pair; the second argument are names that occur in texts."""

_FIRST: Final = (
    "Maria James Aisha Peter Lucia Samuel Ingrid Omar Priya Thomas Elena Victor Grace Hugo Nadia "
    "Oscar Ruth Pavel Chloe Daniel Amara Felix Irene Karim Laura Martin Noor Paula Robert Sofia"
).split()
_LAST: Final = (
    "Bennett Ortiz Keller Hassan Novak Lindgren Moreau Tanaka Okafor Silva Fischer Walsh Petrov "
    "Dubois Ramirez Chen Larsen Murphy Rossi Kaplan Haddad Jensen Weber Costa Quinn Sharma Doyle"
).split()
_FIRM_START: Final = (
    "Nor Bright Sol Ver Tel Cor Blue Stone Hal Mer Ar Lin Cas Del Fen Gran High Iron Jas Kel"
).split()
_FIRM_END: Final = (
    "vane water mont lane dex wick field tech bridge gate soft path mark line core well port stead"
).split()
_FIRM_KIND: Final = ("", "", "", " Systems", " Foods", " Energy", " Group", " Labs", " Motors")
_ROLES: Final = (
    "the buyer|the seller", "the landlord|the tenant", "the supplier|the customer",
    "the employer|the employee", "the bank|the borrower", "the client|the server",
    "the teacher|the student", "the parent company|the subsidiary", "the author|the publisher",
    "the doctor|the patient", "the manager|the engineer", "the host|the guest",
    "the police|the protesters", "the union|the company", "the court|the ministry",
)  # fmt: skip

# Past tense, participle, and where there is one, what the other side did.
_DEEDS: Final = (
    "acquired|acquired|", "bought|bought|", "defeated|defeated|lost to", "sued|sued|",
    "hired|hired|worked for", "invaded|invaded|", "replaced|replaced|gave way to",
    "taught|taught|was a student of", "trained|trained|", "funded|funded|received money from",
    "criticised|criticised|", "praised|praised|", "interviewed|interviewed|", "attacked|attacked|",
    "sponsored|sponsored|", "paid|paid|got money from", "owned|owned|belonged to", "led|led|",
    "succeeded|succeeded|preceded", "followed|followed|came before", "supplied|supplied|",
    "advised|advised|", "betrayed|betrayed|", "rescued|rescued|", "visited|visited|",
    "notified|notified|heard from", "beat|beaten|lost to", "chose|chosen|", "called|called|",
    "inspired|inspired|", "employed|employed|worked for", "dismissed|dismissed|", "joined|joined|",
    "reported|reported|", "warned|warned|", "supported|supported|", "overtook|overtaken|",
    "outsold|outsold|", "controlled|controlled|was under the control of", "wrote to|written to|",
    "lent money to|lent money by|borrowed money from", "took over|taken over|",
    "sold a building to|sold a building by|bought a building from",
)  # fmt: skip
_SHARED: Final = (
    "merged with", "married", "met", "competed with", "signed an agreement with", "bordered",
    "worked together with", "shared an office with", "spoke with", "drew against",
)  # fmt: skip
_WHEN: Final = (
    "", "", "", " in {year}", " in {year}", " last year", " in {month}", " in {month} {year}",
    " after long negotiations", " for the second time",
)  # fmt: skip
_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)

# More, less, and the question that the numbers answer.
_SCALES: Final = (
    "is taller than|is shorter than|is {n} metres tall",
    "costs more than|costs less than|costs ${n}",
    "is heavier than|is lighter than|weighs {n} kg",
    "has more employees than|has fewer employees than|has {n} employees",
    "is older than|is younger than|is {n} years old",
    "is longer than|is shorter than|is {n} km long",
    "is more expensive than|is cheaper than|sells for {n} euros",
    "received more votes than|received fewer votes than|received {n} votes",
    "produces more energy than|produces less energy than|produces {n} megawatts",
    "is larger than|is smaller than|covers {n} square kilometres",
    "lasts longer than|does not last as long as|lasts {n} minutes",
    "earned more than|earned less than|earned {n} dollars",
    "uses more memory than|uses less memory than|uses {n} megabytes",
    "sold more copies than|sold fewer copies than|sold {n} copies",
    "is deeper than|is shallower than|is {n} metres deep",
    "scored higher than|scored lower than|scored {n} points",
    "had a higher turnover than|had a lower turnover than|had a turnover of {n} million",
)  # fmt: skip
_BARE_SCALES: Final = (
    "is faster than|is slower than", "is safer than|is more dangerous than",
    "is better than|is worse than", "is more popular than|is less popular than",
    "is easier to use than|is harder to use than", "is stronger than|is weaker than",
    "is north of|is south of", "is east of|is west of", "is above|is below",
    "opened before|opened after", "was built earlier than|was built later than",
    "is more accurate than|is less accurate than", "is closer to the sea than|is farther from the "
    "sea than", "is warmer than|is colder than", "is richer than|is poorer than",
)  # fmt: skip

_GROUPS: Final = (
    "employees", "plans", "customers", "rooms", "students", "members", "hotels", "products",
    "accounts", "patients", "schools", "orders", "files", "devices", "species", "villages",
    "players", "invoices", "tickets", "contracts", "samples", "buses", "volunteers", "models",
)  # fmt: skip
_TRAITS: Final = (
    "have been checked", "are covered by insurance", "were affected by the change",
    "include breakfast", "speak Spanish", "need a permit", "were delivered on time",
    "can be returned", "are open on Sundays", "were cancelled", "contain a battery",
    "passed the test", "are protected by law", "live in the north", "support encryption",
    "were trained in Berlin", "qualify for a discount", "have access to the archive",
    "are stored for a year", "survived the winter", "use solar power", "were sold abroad",
)  # fmt: skip
# What a statement about a group of ten says of others: E, N or C.
_AMOUNTS: Final = {
    "all": ("All {x} {t}.", "Every one of the {x} is among those that {t}.", "The {x} all {t}.",
            "100% of the {x} {t}.", "Without exception, the {x} {t}."),
    "most": ("Most {x} {t}.", "Most of the {x} {t}.", "The majority of the {x} {t}.",
             "More than half of the {x} {t}."),
    "many": ("Many {x} {t}.", "Many of the {x} {t}.", "A large number of {x} {t}."),
    "some": ("Some {x} {t}.", "Some of the {x} {t}.", "There are {x} that {t}.",
             "At least some {x} {t}.", "Several {x} {t}."),
    "few": ("Only a few {x} {t}.", "Few {x} {t}.", "Only a small minority of the {x} {t}."),
    "part": ("Not all {x} {t}.", "Not every one of the {x} is among those that {t}.",
             "Only some of the {x} {t}."),
    "none": ("None of the {x} {t}.", "There are no {x} that {t}.", "0% of the {x} {t}."),
}  # fmt: skip
_FOLLOWS: Final = {
    "all": {"all": "E", "most": "E", "many": "E", "some": "E", "few": "C", "part": "C",
            "none": "C"},
    "most": {"most": "E", "many": "E", "some": "E", "all": "NE", "few": "C", "none": "C"},
    "many": {"many": "E", "some": "E", "all": "NE", "most": "N", "none": "C", "few": "C"},
    "some": {"some": "E", "all": "NE", "most": "N", "many": "N", "none": "C"},
    "few": {"few": "E", "some": "E", "part": "E", "all": "C", "most": "C", "none": "C"},
    "part": {"part": "E", "all": "C"},
    "none": {"none": "E", "all": "C", "most": "C", "some": "C", "many": "C"},
}  # fmt: skip

_EVENTS: Final = (
    "the flight was delayed", "the server ran out of memory", "the price of wheat rose",
    "the factory closed", "demand fell", "the bridge was repaired", "the contract was cancelled",
    "the river flooded the town", "the team lost the match", "the battery overheated",
    "the company moved its office", "the minister resigned", "the crop failed", "sales doubled",
    "the road was blocked", "the update was postponed", "the patient recovered",
    "the glacier melted", "the bank raised its rates", "workers went on strike",
    "the school was renovated", "the king lost support", "the engine stopped",
    "visitors complained", "the password expired", "the union left the talks",
    "the population declined", "the museum reopened", "the law was changed", "the signal was lost",
    "the stock price dropped", "the trial was stopped", "the project ran late",
    "the roof collapsed", "traffic increased", "the import tax was lifted",
)  # fmt: skip
_BECAUSE: Final = (
    "{Effect} because {cause}.", "Because {cause}, {effect}.", "{Cause}, so {effect}.",
    "{Cause}; as a result, {effect}.", "The reason why {effect} is that {cause}.",
    "{Cause}, and therefore {effect}.", "That {cause} was the reason why {effect}.",
    "{Effect} since {cause}.", "As {cause}, {effect}.",
)  # fmt: skip
_BEFORE: Final = (
    "{First} before {second}.", "{Second} after {first}.", "After {first}, {second}.",
    "Before {second}, {first}.", "First {first}, then {second}.", "{First}. Later, {second}.",
)  # fmt: skip

_ACTIONS: Final = (
    "cancel the subscription|cancelling the subscription", "return an item|returning an item",
    "change the delivery address|changing the delivery address", "bring a pet|bringing a pet",
    "export the data|exporting the data", "park on the premises|parking on the premises",
    "install the app|installing the app", "transfer the ticket|transferring the ticket",
    "open an account|opening an account", "get a refund|getting a refund",
    "use the pool|using the pool", "book a room|booking a room", "delete a file|deleting a file",
    "work from home|working from home", "vote|voting", "borrow a laptop|borrowing a laptop",
    "upgrade the plan|upgrading the plan", "share the password|sharing the password",
    "take photographs|taking photographs", "claim expenses|claiming expenses",
)  # fmt: skip
# As a condition, its absence, and as a thing that is needed.
_CONDITIONS: Final = (
    "you have a receipt|you have no receipt|a receipt",
    "you are over 18|you are under 18|an age of at least 18",
    "you contact support|you do not contact support|contact with support",
    "you are a member|you are not a member|membership",
    "you pay the fee|you do not pay the fee|payment of the fee",
    "a manager agrees|no manager agrees|the consent of a manager",
    "you have administrator rights|you do not have administrator rights|administrator rights",
    "you show your passport|you do not show your passport|a passport",
    "the order has not been shipped|the order has been shipped|an order that has not been shipped",
    "you have signed the form|you have not signed the form|a signed form",
    "you register first|you do not register first|registration",
    "two-factor login is switched on|two-factor login is switched off|two-factor login",
)  # fmt: skip
_ONLY_IF: Final = (
    "You cannot {do} unless {given}.", "You can only {do} if {given}.",
    "{Need} is required for {doing}.", "{Doing} is not possible without {need}.",
    "You may {do} only if {given}.", "If {lacking}, you cannot {do}.",
    "Without {need}, you are not allowed to {do}.", "{Doing} requires {need}.",
    "You must not {do} if {lacking}.",
)  # fmt: skip
_ALWAYS: Final = (
    "You can {do} even if {lacking}.", "{Need} is not required for {doing}.",
    "{Doing} is possible without {need}.", "You may {do}, whether or not {given}.",
    "You do not need {need} to {do}.", "Even without {need}, you are allowed to {do}.",
    "{Doing} does not require {need}.",
)  # fmt: skip
_NEVER: Final = (
    "You cannot {do}.", "{Doing} is not allowed.", "You are not allowed to {do}.",
    "{Doing} is prohibited.", "It is not possible to {do}.", "We do not permit {doing}.",
)  # fmt: skip
_MAY: Final = (
    "You can {do}.", "{Doing} is allowed.", "You are allowed to {do}.", "{Doing} is permitted.",
    "It is possible to {do}.", "We permit {doing}.",
)  # fmt: skip


def roles(chance: Random, names: Sequence[str]) -> Pair:
    """Who did it to whom: active, passive, and what the other side did."""
    one, other = _two(chance, names)
    did, done, converse = chance.choice(_DEEDS).split("|")
    when = _when(chance)

    def wordings(doer: str, target: str) -> list[str]:
        own = [f"{doer} {did} {target}{when}.", f"{doer} {did} {target}{when}.",
               f"It was {doer} that {did} {target}{when}."]  # fmt: skip
        if " " in did and done.endswith(" by"):
            lent = done.removesuffix(" by")
            own.append(f"{target} was {lent} by {doer}{when}.")
        else:
            own += [f"{target} was {done} by {doer}{when}."] * 2
            own.append(f"{target}, which was {done} by {doer}{when}, is well known.")
        return [*own, f"{target} {converse} {doer}{when}."] if converse else own

    fact, twin = wordings(one, other), wordings(other, one)
    claims = [each for each in fact if "well known" not in each]
    false = [each for each in twin if "well known" not in each]
    return _told(chance, fact, claims, false, "C")


def shared(chance: Random, names: Sequence[str]) -> Pair:
    """What is the same from both sides, and who takes part in it."""
    one, other = _two(chance, names)
    third = _two(chance, names)[0]
    did, when = chance.choice(_SHARED), _when(chance)
    premise = f"{one} {did} {other}{when}."
    if chance.random() < 0.75 or third in (one, other):
        return _pair(premise, f"{other} {did} {one}{when}.", "E")
    return _pair(premise, f"{other} {did} {third}{when}.", "NE")


def comparisons(chance: Random, names: Sequence[str]) -> Pair:
    """Which of two is more, said outright or by numbers."""
    one, other = _two(chance, names)
    if chance.random() < 0.5:
        more, less = chance.choice(_BARE_SCALES).split("|")
        fact = [f"{one} {more} {other}.", f"{other} {less} {one}."]
        return _told(chance, fact, fact, [f"{other} {more} {one}.", f"{one} {less} {other}."], "C")
    more, less, numbers = chance.choice(_SCALES).split("|")
    low, high = sorted(chance.sample(range(3, 900), 2))
    claims = [f"{one} {more} {other}.", f"{other} {less} {one}."]
    false = [f"{other} {more} {one}.", f"{one} {less} {other}."]
    shown = [f"{one} {numbers.format(n=high)}.", f"{other} {numbers.format(n=low)}."]
    chance.shuffle(shown)
    fact = [*claims, " ".join(shown), " ".join(shown)]
    return _told(chance, fact, claims, false, "C")


def amounts(chance: Random, names: Sequence[str]) -> Pair:
    """All, most, some, few and none."""
    del names
    thing = {"x": chance.choice(_GROUPS), "t": chance.choice(_TRAITS)}
    said = chance.choice(list(_AMOUNTS))
    ways = list(_FOLLOWS[said].items())
    asked, label = chance.choice([way for way in ways if way[1] == "E"]
                                 if chance.random() < 0.4 else ways)  # fmt: skip
    premise = chance.choice(_AMOUNTS[said]).format(**thing)
    return _pair(premise, chance.choice(_AMOUNTS[asked]).format(**thing), label)


def causes(chance: Random, names: Sequence[str]) -> Pair:
    """What caused what."""
    del names
    cause, effect = chance.sample(_EVENTS, 2)
    fact = _worded(_BECAUSE, cause=cause, effect=effect)
    return _told(chance, fact, fact, _worded(_BECAUSE, cause=effect, effect=cause), "C")


def orders(chance: Random, names: Sequence[str]) -> Pair:
    """What came first."""
    del names
    first, second = chance.sample(_EVENTS, 2)
    fact = _worded(_BEFORE, first=first, second=second)
    return _told(chance, fact, fact, _worded(_BEFORE, first=second, second=first), "C")


def conditions(chance: Random, names: Sequence[str]) -> Pair:
    """What a policy allows, forbids, or allows under a condition."""
    del names
    do, doing = chance.choice(_ACTIONS).split("|")
    given, lacking, need = chance.choice(_CONDITIONS).split("|")
    words = {"do": do, "doing": doing, "given": given, "lacking": lacking, "need": need}
    only, always, never, may = (
        _worded(ways, **words) for ways in (_ONLY_IF, _ALWAYS, _NEVER, _MAY)
    )
    ways = ((only, always, "C"), (always, only, "C"), (never, may, "C"), (may, never, "C"),
            (may, only, "NE"), (never, always, "C"), (only, never, "NE"))  # fmt: skip
    fact, twin, label = chance.choice(ways)
    return _told(chance, fact, fact, twin, label)


def chains(chance: Random, names: Sequence[str]) -> Pair:
    """Two facts that have to be put together, among two that look the same."""
    one, other, first, second = (_person(chance) for _ in range(4))
    here, there = _firm(chance), _firm(chance)
    link, deed = chance.choice((
        ("works for {x}", "{x} was founded by {p}|The company that {y} works for was founded by"),
        ("is a member of {x}", "{x} is led by {p}|The club of which {y} is a member is led by"),
        ("studied at {x}", "{x} was designed by {p}|The school where {y} studied was designed by"),
        ("rents a flat from {x}", "{x} belongs to {p}|The landlord of {y} belongs to"),
    ))  # fmt: skip
    stated, asked = deed.split("|")
    del names
    facts = [f"{one} {link.format(x=here)}.", f"{other} {link.format(x=there)}.",
             f"{stated.format(x=here, p=first)}.",
             f"{stated.format(x=there, p=second)}."]  # fmt: skip
    chance.shuffle(facts)
    is_true = chance.random() < 0.5
    claim = f"{asked.format(y=one)} {first if is_true else second}."
    return _pair(" ".join(facts), claim, "E" if is_true else "C")


TEMPLATES: Final[dict[str, Template]] = {
    "roles": roles, "shared": shared, "comparisons": comparisons, "amounts": amounts,
    "causes": causes, "orders": orders, "conditions": conditions, "chains": chains,
}  # fmt: skip
"""Every template by name."""


def _told(
    chance: Random, fact: Sequence[str], claims: Sequence[str], twin: Sequence[str], label: str
) -> Pair:
    premise = chance.choice(fact)
    if chance.random() < 0.5:
        return _pair(premise, chance.choice(claims), "E")
    return _pair(premise, chance.choice(twin), label)


def _pair(premise: str, claim: str, label: str) -> Pair:
    return Pair(_capital(premise), _capital(claim), label)


def _worded(ways: Sequence[str], **parts: str) -> list[str]:
    capital = {name.capitalize(): _capital(text) for name, text in parts.items()}
    return [way.format(**parts, **capital) for way in ways]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _when(chance: Random) -> str:
    year, month = chance.randint(1890, 2024), chance.choice(_MONTHS)
    return chance.choice(_WHEN).format(year=year, month=month)


def _two(chance: Random, names: Sequence[str]) -> tuple[str, str]:
    """Choose two of a kind: people, companies, roles, or names from texts."""
    way = chance.random()
    if way < 0.15:
        first, second = chance.choice(_ROLES).split("|")
        return (first, second) if chance.random() < 0.5 else (second, first)
    make = _person if way < 0.4 else _firm
    if way > 0.65:
        first, second = chance.sample(names, 2)
        return first, second
    return make(chance), make(chance)


def _person(chance: Random) -> str:
    first, last = chance.choice(_FIRST), chance.choice(_LAST)
    return chance.choice((f"{first} {last}", f"{first} {last}", first, last))


def _firm(chance: Random) -> str:
    start, end = chance.choice(_FIRM_START), chance.choice(_FIRM_END)
    return f"{start}{end}{chance.choice(_FIRM_KIND)}"
