"""Inflects the English verbs that questions leave in their base form: ``did X acquire``."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BASE_VERBS",
    "IRREGULAR_PARTICIPLES",
    "NOUN_LIKE_VERBS",
    "base_form",
    "past",
    "third_person",
]

_IRREGULAR_PAST: Final[dict[str, str]] = {
    pair.partition(":")[0]: pair.partition(":")[2]
    for pair in (
        "be:was become:became begin:began break:broke bring:brought build:built buy:bought "
        "catch:caught choose:chose come:came cost:cost cut:cut deal:dealt do:did draw:drew "
        "drink:drank drive:drove eat:ate fall:fell feel:felt fight:fought find:found fly:flew "
        "forget:forgot freeze:froze get:got give:gave go:went grow:grew hang:hung have:had "
        "hear:heard hide:hid hit:hit hold:held hurt:hurt keep:kept know:knew lead:led leave:left "
        "lend:lent let:let lie:lay lose:lost make:made mean:meant meet:met pay:paid put:put "
        "read:read ride:rode ring:rang rise:rose run:ran say:said see:saw sell:sold send:sent "
        "set:set shoot:shot shut:shut sing:sang sink:sank sit:sat sleep:slept speak:spoke "
        "spend:spent split:split spread:spread stand:stood steal:stole strike:struck swim:swam "
        "take:took teach:taught tell:told think:thought throw:threw understand:understood "
        "wear:wore win:won write:wrote"
    ).split()
}
IRREGULAR_PARTICIPLES: Final = frozenset(
    "become been begun born borne bought broken brought built caught chosen cut done drawn driven "
    "eaten fallen fed felt forbidden fought found frozen given gone grown held hidden hit kept "
    "known laid led left lent lost made meant met paid put read run said seen sent set shot shown "
    "shut sold spent split spoken spread stolen struck sung sworn taken taught told thrown thought "
    "understood withdrawn won worn written".split()
)
"""Participles that do not end in ``-ed``."""

NOUN_LIKE_VERBS: Final = frozenset(
    "access answer bill book call change charge check contact cost damage delay design end "
    "estimate exchange fund grant guarantee help host impact increase issue lease license limit "
    "link list market match measure notice offer order plan practice process profit purchase "
    "rate record refund release rent repair report request return review rise sale sample share "
    "ship sign sound start state stay stop study supply support test track trade train transfer "
    "travel trust update upgrade use value view visit vote watch water work".split()
)
"""Base forms that are nouns as well: ``the return label``, ``the travel policy``."""

BASE_VERBS: Final = (
    frozenset(_IRREGULAR_PAST)
    | NOUN_LIKE_VERBS
    | frozenset(
        "accept achieve acquire act add admit affect agree aim allow announce appear apply appoint "
        "approve arise arrive ask assume attend authorize avoid award belong benefit boil borrow "
        "break cancel carry cause celebrate charge claim close collect combine commit compete "
        "complete comply conduct connect consider consist consume contain continue contribute "
        "control convert cover create cross decide declare declare decline decrease defeat define "
        "deliver deny depend deposit describe deserve destroy detect develop die differ disclose "
        "discover distribute divide download drop earn eliminate emerge emit employ enable "
        "encourage endorse enforce enjoy enroll ensure enter establish evaluate evolve exceed "
        "exclude exist expand expect expire explain export extend face fail file finish fit "
        "follow forbid form found function gain generate govern graduate handle happen hire "
        "identify implement imply import improve include incorporate incur inform inherit "
        "install integrate intend interact introduce invade invent invest involve join last "
        "launch learn leave live locate love maintain manage manufacture marry melt mention "
        "merge move need notify obtain occur open operate originate own participate pass "
        "perform permit play possess post prefer prepare prescribe present prevent produce "
        "prohibit promise promote protect prove provide publish pull push qualify raise reach "
        "react realise realize receive recognise recognize recommend recover reduce refer reflect "
        "refuse register reject relate rely remain remember remove renew repay replace represent "
        "require reset reside resign resolve respond restrict result retain retire reveal revise "
        "rule save score seem select separate serve settle show sponsor store submit subscribe "
        "succeed suffer suggest supervise suspend switch target taste terminate tolerate treat "
        "turn undergo uninstall unlock upload vary verify violate wait walk want warn waive weigh "
        "withdraw".split()
    )
)
"""Verbs in the form that stands after ``do``, ``did`` or ``can``."""

# Participles that are not the past tense as well.
_BASE_OF_PARTICIPLE: Final[dict[str, str]] = {
    pair.partition(":")[0]: pair.partition(":")[2]
    for pair in (
        "begun:begin broken:break chosen:choose done:do drawn:draw driven:drive eaten:eat "
        "fallen:fall flown:fly forgotten:forget frozen:freeze given:give gone:go grown:grow "
        "hidden:hide known:know ridden:ride risen:rise seen:see shown:show spoken:speak "
        "stolen:steal struck:strike sung:sing sunk:sink taken:take thrown:throw worn:wear "
        "written:write"
    ).split()
}
_BASE_OF_IRREGULAR: Final = {form: base for base, form in _IRREGULAR_PAST.items()} | (
    _BASE_OF_PARTICIPLE
)
_VOWELS: Final = "aeiou"
# Stressed on their last syllable, so that the consonant is doubled: "admitted", "dropped".
_DOUBLING: Final = frozenset(
    "admit commit drop emit fit incur occur permit plan prefer refer ship stop submit".split()
)


def base_form(word: str) -> str:
    """Returns the base form of an irregular past or participle: ``write`` for ``wrote``.

    Args:
        word: A word in lower case; any other one is returned as it is.
    """
    return _BASE_OF_IRREGULAR.get(word, word)


def past(verb: str) -> str:
    """Returns the past tense of a base form: ``acquired``, ``paid``."""
    if verb in _IRREGULAR_PAST:
        return _IRREGULAR_PAST[verb]
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLING else f"{verb}ed"


def third_person(verb: str) -> str:
    """Returns the third person singular of a base form: ``covers``, ``applies``, ``has``."""
    if verb in ("be", "have"):
        return {"be": "is", "have": "has"}[verb]
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "sh", "ch", "x", "z", "o")) else f"{verb}s"
