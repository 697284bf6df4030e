"""Passages on places that do not exist, and what a model says in words that none of them has."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

__all__ = ["OwnWords", "Passage", "made_up_passages"]

PLACES: Final = (
    "Čelnik Bøvra Żurawka Ångholm Šmarje Plöck Torsk Velmar Ostrawe Mirgul Halvin Quedo".split()
)

SENTENCES: Final = (
    "The ferry to {place} leaves pier {n} before sunrise and takes cars as well as bicycles.",
    "Lodgings in {place} close for {n} days in February, while heating oil runs short.",
    "A bell of {n} kilograms hangs in the chapel of {place}, cast from melted cannons.",
    "Potters near {place} fire their kilns with beech, and sell about {n} jugs each autumn.",
    "Library cards issued at {place} expire after {n} weeks unless renewed by letter.",
    "Beekeepers around {place} report {n} hives, most of them painted blue.",
    "The funicular of {place} climbs {n} metres through a tunnel lined with brick.",
    "Since the flood every cellar in {place} needs a pump rated at {n} litres a minute.",
    "Chess players meet under the arcades of {place} on Thursdays and have counted {n} games.",
    "Doctor Hudec of {place} described {n} species of moss, two of which bear her surname.",
    "The salt mine at {place} lends helmets to everyone who descends its {n} wooden steps.",
    "The orchard school of {place} grafts {n} pear trees yearly for villages upstream.",
    "Parking beside the market hall in {place} costs {n} cents for each started hour.",
    "Trams numbered {n} terminate at {place}, opposite an abandoned cinema.",
    "The observatory on the ridge above {place} owns a mirror {n} centimetres wide.",
    "Weavers of {place} dye wool with walnut shells & madder; a blanket needs {n} skeins.",
    'Notaries in {place} charge < {n} crowns for a deed, "stamps included".',
    "Snow fences along the road to {place} stretch for {n} miles, mended by volunteers.",
    "An apprentice baker from {place} won a contest with a loaf weighing {n} grams.",
    "Trout released below the weir of {place} are tagged; {n} were caught again last summer.",
    "The municipal archive keeps {n} maps of {place}, drawn by surveyors of the old monarchy.",
    "Fire drills take place quarterly in {place}, where evacuation must end within {n} seconds.",
    "The brass band of {place} rehearses in a former stable with {n} folding chairs.",
    "Windows facing the square in {place} may be no taller than {n} inches, a bylaw of 1911 says.",
    "Nurses at the clinic of {place} vaccinate up to {n} patients a day from a mobile van.",
    "Goats graze the castle hill at {place}, since mowing its slopes once took {n} hours.",
    "The quarry near {place} delivered {n} blocks of pale limestone for a staircase abroad.",
    "Divers searching the lake at {place} found {n} amphorae stacked in two rows.",
)

OWN_WORDS: Final = (
    "Early risers will be pleased by this, latecomers hardly.",
    "Money seems to matter here more than anybody would like to admit.",
    "Whoever plans such a trip should phone somebody responsible beforehand.",
    "Patience is advisable, because officials there work slowly and carefully.",
    "It sounds like something children could enjoy with their grandparents.",
    "Nothing suggests that strangers are unwelcome at any season.",
    "One gathers that tradition counts, and that newcomers adapt to it.",
    "Good shoes, warm clothing and a pocket torch would be sensible.",
    "Compared with similar spots elsewhere, this appears rather generous.",
    "Statistics of that kind deserve a pinch of scepticism, honestly.",
    "My impression is that safety comes first, and comfort only second.",
    "A weekend should suffice, provided that trains run on schedule.",
    "People with allergies might prefer another destination altogether.",
    "Local craftsmanship appears to thrive despite rising expenses.",
    "Rules have become stricter lately, so reading them pays off.",
    "Somebody fond of music or history would probably feel at home.",
    "Supplies look plentiful enough, yet demand is growing quickly.",
    "Volunteering apparently keeps the whole thing alive nowadays.",
    "Photographs are best taken from afar, preferably at dusk.",
    "Such figures impress experts, while ordinary guests rarely notice.",
    "Booking online remains impossible, which annoys many tourists.",
    "The overall picture is positive, with minor reservations only.",
    "Weather plays a bigger role than most brochures pretend.",
    "Regular customers obtain better conditions than casual ones.",
    "Everything considered, preparation will spare you trouble.",
    "Engineers evidently solved a difficult problem quite elegantly.",
    "Scholars still argue about details that laymen find tedious.",
    "Wheelchair users ought to enquire about access in advance.",
    "Prices, opening times and capacities vary from month to month.",
    "A modest donation is customary, although it isn't compulsory.",
    "Neighbouring communities envy this achievement, and imitate it.",
    "Noise could bother light sleepers during popular festivals.",
    "Anyone in a hurry had better skip it and return another time.",
    "Expectations should stay realistic: it remains a quiet corner.",
    "Plain food, friendly hosts and little luxury await you.",
    "The authorities publish changes late, usually on a notice board.",
)


@dataclass(frozen=True)
class Passage:
    """A document of the store, or what was left of it."""

    id: str
    text: str


def made_up_passages(chance: Random, count: int) -> list[Passage]:
    """Make passages of one to four sentences, no two of which share a sentence.

    Args:
        chance: Decides everything.
        count: How many; at most seven, for which there are sentences enough.
    """
    sentences = iter(chance.sample(SENTENCES, len(SENTENCES)))
    numbers = iter(chance.sample(range(101, 999), len(SENTENCES)))
    found: list[Passage] = []
    for index, place in enumerate(chance.sample(PLACES, count)):
        between = chance.choice([" ", " ", "\n"])
        lines = [
            next(sentences).format(place=place, n=next(numbers))
            for _ in range(chance.randint(1, 4))
        ]
        found.append(Passage(f"p{index}", between.join(lines)))
    return found


class OwnWords:
    """What a scripted model says: never the same twice, and nothing of what it has read."""

    def __init__(self, chance: Random) -> None:
        self._left = chance.sample(OWN_WORDS, len(OWN_WORDS))

    def sentences(self, count: int = 1) -> str:
        """Return sentences that were not said before."""
        return " ".join(self._left.pop() for _ in range(count))
