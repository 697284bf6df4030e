"""How people and models say that they do not know, in languages other than English."""

from __future__ import annotations

from typing import Final

__all__ = ["OTHER_ABSTENTIONS"]

_BY_LANGUAGE: Final = {
    "de": (
        r"(?:es tut mir leid|leider)?[,.]?\s*(?:aber )?(?:"
        r"(?:das |es )?weiß ich (?:leider )?nicht|ich weiß (?:es |das )?(?:leider )?nicht"
        r"|ich (?:kann|konnte) (?:\w+ ){0,6}(?:nicht|keine\w*) (?:\w+ ){0,4}"
        r"(?:beantworten|finden|sagen)"
        r"|ich habe (?:dazu |hierzu |darüber )?keine (?:\w+ )?(?:informationen|angaben|daten)"
        r"|(?:der|die|das|den|im) (?:\w+ )?"
        r"(?:kontext|text|dokument\w*|unterlagen|quellen?|informationen)"
        r" (?:\w+ ){0,3}(?:enthält|enthalten|nennt|nennen|erwähnt|erwähnen|gibt|geben|sagt)"
        r" (?:\w+ ){0,4}(?:nicht|keine\w*)"
        r"|dazu (?:liegen|gibt es|finde ich|habe ich) (?:\w+ ){0,4}keine)"
    ),
    "fr": (
        r"(?:désolé\w*|malheureusement)?[,.]?\s*(?:mais )?(?:je ne (?:le |la |l')?sais pas"
        r"|je n'ai pas (?:\w+ ){0,3}(?:trouvé|d'informations?|connaissance)"
        r"|je ne (?:peux|trouve|dispose) pas"
        r"|le (?:\w+ )?(?:contexte|texte|document) (?:\w+ )?ne (?:\w+ )?"
        r"(?:mentionne|précise|contient|indique|dit|donne) (?:pas|aucun\w*))"
    ),
    "es": (
        r"(?:lo siento|lamentablemente)?[,.]?\s*(?:pero )?(?:no lo sé|no sé"
        r"|no (?:tengo|encuentro|he encontrado|dispongo de) (?:\w+ )?información"
        r"|el (?:\w+ )?(?:contexto|texto|documento) (?:\w+ )?no "
        r"(?:menciona|indica|contiene|especifica|dice|proporciona))"
    ),
    "it": (
        r"(?:mi dispiace|purtroppo)?[,.]?\s*(?:ma )?(?:non lo so"
        r"|non (?:ho|trovo|ho trovato|dispongo di) (?:\w+ )?informazioni"
        r"|il (?:\w+ )?(?:contesto|testo|documento) (?:\w+ )?non "
        r"(?:menziona|indica|contiene|specifica))"
    ),
    "nl": (
        r"(?:het spijt me|helaas)?[,.]?\s*(?:maar )?(?:ik weet (?:het|dat) niet|dat weet ik niet"
        r"|ik (?:kan|heb|vind) (?:\w+ ){0,5}(?:geen|niet) (?:\w+ )?"
        r"(?:informatie|antwoord\w*|vinden)"
        r"|de (?:\w+ )?(?:context|tekst|documenten) (?:\w+ )?(?:bevat|bevatten|vermeldt|noemt) "
        r"(?:\w+ ){0,3}(?:geen|niet))"
    ),
    "sl": (
        r"(?:žal|oprostite)?[,.]?\s*(?:(?:a|ampak|vendar) )?(?:(?:tega )?ne vem"
        r"|(?:o tem )?nimam (?:\w+ ){0,2}(?:podatk\w*|informacij\w*)"
        r"|(?:na to|tega) (?:\w+ )?ne morem|ne najdem"
        r"|(?:\w+ )?(?:kontekst\w*|besedil\w*|dokument\w*|vir\w*|podatki) (?:\w+ ){0,2}ne "
        r"(?:omenja\w*|vsebuje\w*|navaja\w*|pove\w*)"
        r"|v (?:\w+ )?(?:kontekstu|besedilu|dokument\w*|virih) (?:\w+ ){0,3}ni (?:\w+ )?"
        r"(?:podatk\w*|informacij\w*|odgovora|navedeno|omenjeno))"
    ),
}
OTHER_ABSTENTIONS: Final = "(?:" + "|".join(f"(?:{each})" for each in _BY_LANGUAGE.values()) + ")"
"""A pattern that matches the beginning of an abstention in lower or upper case; a group."""
