"""How people and models decline to answer in other languages than English.

Word order is free in many of them, so that a row holds words in place of sentences. A clause
declines if it denies, and has either the speaker and what he cannot do, or the sources and what
they do not do.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

__all__ = ["REFERRALS", "declined", "may_decline"]


class _Words(NamedTuple):
    """The words of one language, as patterns."""

    hints: tuple[str, ...]
    """Each refusal has one of these in lower case, and most sentences of other languages none."""

    sorry: str
    """What may stand before a refusal: regrets."""

    denies: str
    says: str
    """What sources do, or what is in them: to mention, information."""

    sources: str
    speaker: str
    """The first person."""

    answers: str
    """What the speaker does not: to answer, to know."""

    whole: str
    """What declines without more, also in the name of everybody: ``it cannot be answered``."""

    but: str
    refers: str
    """How a sentence begins that sends the reader elsewhere."""


_WORDS: Final = {
    "de": _Words(
        ("nicht", "kein"),
        r"leider|bedaure\w*|(?:es )?tut mir (?:sehr )?leid|entschuldigung|verzeihung",
        r"nicht(?! nur| mehr als| länger)s?|(?<!darf )(?<!dürfen )kein\w*",
        r"erwähn\w+|nenn(?:t|en)|nichts (?:über|zu|zum|zur|von|dazu|darüber)|steht (?:\w+ ){0,2}nicht in?m?|"
        r"sag(?:t|en)|"
        r"angegeben|genannt|beschrieben|aufgeführt|(?:geht|gehen) (?:\w+ ){0,8}hervor|"
        r"informationen?|angaben?|hinweise?|antwort(?:en)?|details|aussagen?|auskunft",
        r"kontexte?s?|texte?n?s?|dokumente?n?s?|unterlagen|quellen?|passagen?|abschnitte?n?|"
        r"(?:bereitgestellten|vorliegenden|gegebenen|verfügbaren) (?:informationen|daten)",
        r"ich|mir",
        r"weiß|beantwort\w+|sagen|sicher|weiterhelfen|helfen|finden|gefunden|bearbeiten|"
        r"unterstützen|informationen?|angaben|daten|auskunft",
        r"(?:das |es )?weiß ich (?:\w+ ){0,2}nicht|keine ahnung|"
        r"keine (?:\w+ )?(?:informationen|angaben) (?:verfügbar|gefunden|vorhanden)|"
        r"(?:gibt es|liegen|finden sich) (?:\w+ ){0,3}keine (?:\w+ )?(?:informationen|"
        r"angaben)|lässt sich (?:\w+ ){0,6}nicht (?:\w+ ){0,2}(?:beantworten|sagen|ermitteln)|"
        r"kann (?:\w+ ){0,8}nicht (?:\w+ ){0,3}beantwortet werden|"
        r"nicht möglich,? (?:\w+ ){0,5}zu beantworten",
        r"aber|jedoch|allerdings",
        r"bitte (?:wenden|kontaktieren|prüfen|sehen|fragen|konsultieren|geben|stellen|"
        r"formulieren|schauen)|ich empfehle|für (?:weitere|genauere) (?:informationen|"
        r"auskünfte)",
    ),
    "fr": _Words(
        ("n'", " ne ", "aucun", "impossible"),
        r"(?:je suis )?(?:vraiment )?(?:désolée?|malheureusement|hélas|je regrette|excusez-moi)",
        r"ne|n'\w+|aucune?|impossible",
        r"mentionn\w+|précis\w+|indiqu\w+|figur\w+|spécifi\w+|abord\w+|trouv\w+|parl\w+|dit|"
        r"disent|donn\w+|fourni(?:t|ssent)|permet\w*|informations?|détails?|réponse|apparaît",
        r"contextes?|textes?|documents?|sources?|passages?|extraits?",
        r"je|j'\w+|m'\w+",
        r"sais|répond\w*|répons\w*|trouv\w*|informations?|aider|connais\w*|dire",
        r"je ne (?:le |la |l')?sais pas|aucune information (?:\w+ )?(?:n'est |"
        r"n'a été )?(?:disponible|trouvée)|(?:cette|l')information n'(?:est|"
        r"a) pas (?:été )?(?:\w+ )?(?:disponible|fournie|trouvée|mentionnée)|(?:n'est pas|"
        r"est) (?:im)?possible de répondre|ne peut (?:pas )?(?:\w+ )?répondre à (?:la|"
        r"cette) question|(?:on|il) ne peut pas répondre",
        r"mais|cependant|toutefois|en revanche",
        r"veuillez|je (?:vous|te) (?:recommande|conseille|suggère|invite)|n'hésitez pas",
    ),
    "es": _Words(
        (" no ", "ningun", "imposible"),
        r"lo siento|lamentablemente|desafortunadamente|perdón|disculp\w+|desgraciadamente",
        r"\bno(?! solo| sólo| debe| puede super)|ningun\w*",
        r"mencion\w+|indic\w+|especific\w+|figura\w*|aparec\w+|precis\w+|dice\w*|"
        r"proporcion\w+|aborda\w*|información|detalles|respuesta|constan?",
        r"contextos?|textos?|documentos?|documentación|fuentes?|pasajes?|fragmentos?",
        r"me|puedo|pude|tengo|encuentro|encontré|he encontrado|dispongo|sé|conozco",
        r"respond\w*|contest\w*|respuesta|información|datos|ayudar\w*|encontr\w*|decir\w*",
        r"no lo sé|no sé|no hay (?:\w+ )?información (?:disponible|sobre|al respecto|"
        r"suficiente)|desconozco|(?:no es posible|no se puede|imposible) (?:responder|"
        r"contestar|determinar|saber)",
        r"pero|sin embargo|aunque sí|no obstante",
        r"(?:por favor|le recomiendo|te recomiendo|le sugiero|te sugiero|consult[ea]|"
        r"contact[ea])",
    ),
    "it": _Words(
        (" non ", "nessun", "impossibile"),
        r"mi dispiace|purtroppo|sono spiacente|scusa\w*|spiacente",
        r"\bnon(?! solo| deve| può superare)|nessun\w*|impossibile",
        r"menzion\w+|indic\w+|specific\w+|precis\w+|compar\w+|dic(?:e|ono)|fornisc\w+|"
        r"present[ei]|trova\w*|riport\w+|cita\w*|tratta\w*|informazion[ei]|dettagli|risposta",
        r"contest[oi]|test[oi]|document[oi]|font[ei]|bran[oi]|passagg[io]",
        r"posso|riesco|ho|trovo|dispongo|so|sono in grado|conosco",
        r"rispond\w*|rispost\w*|informazioni|aiutar\w*|trova\w*|dire|fornir\w*",
        r"non (?:lo )?so|non ne ho idea|non (?:ci sono|sono disponibili|"
        r"è disponibile) (?:\w+ )?informazion[ei]|(?:non è possibile|non si può|"
        r"impossibile) (?:rispondere|determinare|stabilire)",
        r"ma|però|tuttavia",
        r"(?:per favore|si prega di|ti consiglio|le consiglio|consult[ai]|contatt[ai])",
    ),
    "pt": _Words(
        (" não ", "nenhum", "impossível"),
        r"desculpe|infelizmente|lamento|sinto muito|peço desculpas?",
        r"\bnão(?! só| apenas| deve)|nenhum\w*|impossível",
        r"mencion\w+|indic\w+|especific\w+|consta\w*|precis\w+|diz\w*|fornec\w+|aparec\w+|"
        r"encontr\w+|aborda\w*|inform(?:a|am)\b|informaç\w+|detalhes|resposta",
        r"contextos?|textos?|documentos?|documentação|fontes?|trechos?|passagens?",
        r"posso|consigo|tenho|encontrei|encontro|disponho|sei|consegui|conheço",
        r"respond\w*|respost\w*|informaç\w+|ajudar\w*|dizer|encontr\w*|dados",
        r"não sei|não há (?:\w+ )?informaç\w+ (?:disponív\w+|sobre|suficientes?)|desconheço|"
        r"(?:não é possível|impossível) (?:responder|determinar|saber)|"
        r"não pode ser respondid[ao]",
        r"mas|porém|contudo|no entanto|entretanto",
        r"(?:por favor|recomendo|sugiro|consulte|contacte|entre em contato)",
    ),
    "nl": _Words(
        ("niet", "geen"),
        r"sorry|helaas|het spijt me|excuses",
        r"niet(?! alleen| langer| meer dan)s?|geen",
        r"vermeld\w*|noem(?:t|en)|genoemd|sta(?:at|an)|zeg(?:t|gen)|gegeven(?!s)|beschreven|"
        r"gev[oi]nden|vindt|blijkt|blijken|informatie|gegevens|antwoord|details",
        r"context|tekst(?:en)?|documenten|document|bronnen|bron|passages?|fragmenten",
        r"ik|mij",
        r"weet|beantwoord\w*|antwoord\w*|informatie|helpen|vinden|gevonden|zeggen",
        r"dat weet ik niet|geen idee|(?:er is|er zijn) geen (?:\w+ )?(?:informatie|"
        r"gegevens) (?:over|beschikbaar|gevonden)|kan (?:\w+ ){0,6}niet (?:worden beantwoord|"
        r"beantwoord worden)",
        r"maar|echter|wel",
        r"(?:raadpleeg|neem contact|gelieve|ik raad)",
    ),
    "sl": _Words(
        (" ne ", " ni ", " nisem", " nimam", " niso", "nič"),
        r"žal(?: mi je)?|oprostite|se opravičujem|opravičujem se",
        r"\bne(?! le| samo| sme)|\bni(?! le)|niso|nisem|nimam\w*|nič|noben\w*",
        r"naveden\w*|navaja\w*|omenj\w+|pove\w*|piše\w*|opisan\w*|informacij\w*|podatk\w*|"
        r"podatek|odgovor\w*|najd\w+|vključuje\w* (?:informacij|podatk)\w*|določ\w+|besed\w* o",
        r"kontekst\w*|besedil\w*|dokument\w*|vir(?:i|ih|ov|u)?|gradiv\w*|odlomk\w*",
        r"ne morem|ne vem|nisem|nimam|ne najdem|ne poznam",
        r"odgovor\w*|informacij\w*|podatk\w*|pomag\w*|najde\w*|našel|našla|vem|povedati",
        r"ne vem|(?:o tem )?nimam (?:\w+ )?(?:podatk|informacij)\w*|"
        r"(?:o tem )?ni (?:\w+ )?(?:podatkov|informacij)|ne najdem|ni (?:mogoče|"
        r"možno) (?:\w+ ){0,4}odgovoriti",
        r"vendar|ampak|toda|a|pa",
        r"prosim\w* (?:preverite|obrnite|glejte|poglejte)|obrnite se|priporočam",
    ),
    "hr": _Words(
        (" ne ", " nije", " nisu", " nisam", " nema", " не ", "није", "нису", "нисам", "нема"),
        r"žao mi je|nažalost|oprostite|ispričavam se|izvinite|izvinjavam se|жао ми је|"
        r"нажалост|извините|опростите",
        r"\bne(?! samo| sm)|nij[eе]|nisu|nisam|nemam|nema(?:ju)?|ništa|\bне(?! само| см)|није|"
        r"нису|нисам|немам|нема(?:ју)?|ништа",
        r"naveden\w*|navod\w+|spomin\w+|spomen\w+|pominj\w+|piše|kaž\w+|informacij\w*|"
        r"podat\w+|odgovor\w*|govor\w+|наведен\w*|наводе?|помињ\w+|спомињ\w+|пише|каж\w+|"
        r"информациј\w*|подат\w+|одговор\w*|говор\w+",
        r"kontekst\w*|tekst\w*|dokument\w*|izvor\w*|odlom\w+|контекст\w*|текст\w*|документ\w*|"
        r"извор\w*|одлом\w+",
        r"ne mogu|ne znam|nisam|nemam|не могу|не знам|нисам|немам",
        r"odgovor\w*|informacij\w*|podat\w+|pomoći|pronaš\w+|naš(?:ao|la)|znam|одговор\w*|"
        r"информациј\w*|подат\w+|помо\w+|пронаш\w+|знам",
        r"ne znam|(?:nemam|nema) (?:\w+ )?(?:informacija|podataka)|не знам|(?:немам|"
        r"нема) (?:\w+ )?(?:информација|података)|nije moguće (?:\w+ )?odgovoriti|"
        r"није могуће (?:\w+ )?одговорити",
        r"ali|no|međutim|али|међутим|но",
        r"molim\w* (?:provjerite|obratite|pogledajte)|obratite se|preporučujem",
    ),
    "pl": _Words(
        (" nie ", "brak", "żadn"),
        r"przepraszam|niestety|przykro mi|wybacz\w*",
        r"\bnie(?! tylko| może być)|brak(?:uje)?|żadn\w*",
        r"podaj\w+|podan\w*|wspomin\w+|wspomnian\w*|określ\w+|mowy|mówi\w*|"
        r"zawiera\w* (?:\w+ ){0,2}(?:informacji|danych|odpowiedzi)|wynika|znajduj\w+|"
        r"informacj\w+|odpowiedzi|wskazuj\w+|opisan\w*|precyzuj\w+",
        r"kontekst\w*|tekst\w*|tekście|dokument\w*|źród\w+|fragment\w*|materiał\w*",
        r"nie mogę|nie wiem|nie mam|nie znalazł[ae]?m|nie jestem w stanie|nie potrafię|"
        r"nie udało mi się|nie dysponuję",
        r"odpowied\w*|odpowiad\w*|informacj\w+|pomóc|znaleźć|powiedzieć|znalazł\w+|danych",
        r"nie wiem|nie mam pojęcia|brak (?:\w+ )?informacji|nie ma (?:\w+ )?informacji|"
        r"nie (?:można|da się|jest możliwe) (?:\w+ )?(?:odpowied\w+|udziel\w+ odpowiedzi)",
        r"ale|jednak|natomiast|lecz",
        r"(?:proszę|prosimy) (?:o|spraw|skontakt|zapozna|zajrz)\w*|polecam|zalecam|sugeruję|"
        r"skontaktuj",
    ),
    "cs": _Words(
        (" ne", "není", "žádn"),
        r"omlouvám se|bohužel|promiňte|je mi líto|lituji",
        r"\bne(?!jen|smí|bo|ž|dávn|jv|jd)\w+|není|nejsou|žádn\w*|nic",
        r"uved\w+|uvád\w+|zmiň\w+|zmín\w+|neuvád\w+|neobsahuj\w+ (?:\w+ ){0,2}(?:informac|"
        r"odpověď|údaj)\w*|nezmiň\w+|nehovoř\w+|nepíše|informac\w+|údaj\w*|odpověď|vyplýv\w+|"
        r"nevyplýv\w+|popsán\w*|nalez\w+|řečeno",
        r"kontext\w*|text(?:u|ech|y|em)?|dokument\w*|zdroj\w*|pasáž\w*|podklad\w*",
        r"nemohu|nemůžu|nevím|nenaš(?:el|la)|nemám|nedokážu|neznám|neumím|nejsem schop\w+",
        r"odpov\w+|zodpov\w+|informac\w+|pomoci|pomoct|naš(?:el|la)|nenaš(?:el|la)|říci|říct|"
        r"najít|údaj\w*",
        r"nevím|nemám tušení|žádné informace (?:\w+ )?(?:nejsou|nebyly)|"
        r"nejsou (?:\w+ )?informace|(?:nelze|není možné) (?:\w+ ){0,3}odpovědět|(?:otázku|"
        r"to) nelze zodpovědět",
        r"ale|avšak|však|nicméně",
        r"prosím\w* (?:kontakt|podív|ověř|obrať)\w*|doporučuji|obraťte se|kontaktujte",
    ),
    "sk": _Words(
        (" ne", " nie ", "žiadn"),
        r"ospravedlňujem sa|žiaľ|bohužiaľ|prepáčte|je mi ľúto|ľutujem",
        r"\bne(?!len|smie|bo|dávn)\w+|\bnie(?! len)|žiadn\w*|nič",
        r"uveden\w*|uvádz\w+|neuvádz\w+|spomín\w+|nespomín\w+|"
        r"neobsahuj\w+ (?:\w+ ){0,2}(?:informáci|odpoveď|údaj)\w*|nepíše|informáci\w*|údaj\w*|"
        r"odpoveď|vyplýv\w+|nevyplýv\w+|opísan\w*|nehovor\w+",
        r"kontext\w*|text(?:e|u|och|y|om)?|dokument\w*|zdroj\w*|pasáž\w*|podklad\w*",
        r"nemôžem|neviem|nenaš(?:iel|la)|nemám|nedokážem|nepoznám|nie som schop\w+",
        r"odpov\w+|zodpov\w+|informáci\w*|pomôcť|naš(?:iel|la)|nenaš(?:iel|la)|povedať|nájsť|"
        r"údaj\w*",
        r"neviem|nemám tušenie|nie sú (?:\w+ )?informácie|(?:nie je možné|nedá sa|"
        r"nemožno) (?:\w+ ){0,3}(?:odpovedať|zodpovedať)",
        r"ale|avšak|však|no",
        r"prosím\w* (?:kontakt|pozri|over|obráť)\w*|odporúčam|obráťte sa|kontaktujte",
    ),
    "hu": _Words(
        (" nem ", "nincs", " sem "),
        r"sajnálom|sajnos|elnézést|bocsánat|sajnálattal",
        r"\bnem(?! csak| lehet hosszabb)|nincs(?:enek)?|\bsem\b|semmi\w*",
        r"tartalmaz\w* (?:\w+ ){0,3}(?:információ|adat|válasz)\w*|tartalmazzák|említ\w*|"
        r"szerepel\w*|közöl\w*|derül|írja\w*|utal\w*|található\w*|válaszolható|információ\w*|"
        r"részletez\w*|adja\w* meg|határoz\w*",
        r"kontextus\w*|szöveg\w*|dokumentum\w*|forrás\w*|részlet\w*|anyag\w*",
        r"tudok|tudom|találtam|találok|információm|ismerem|áll rendelkezésemre|vagyok képes",
        r"válasz\w*|információ\w*|segíteni|segítek|találtam|megmondani|megválaszol\w*|"
        r"kérdés\w*",
        r"nem tudom(?!\s+\w+ni)|nincs (?:\w+ )?információ\w*|fogalmam sincs|"
        r"nem válaszolható meg|nem lehet (?:\w+ )?(?:válaszolni|megválaszolni)",
        r"de|azonban|viszont|ugyanakkor",
        r"kérem,? (?:forduljon|ellenőrizze|nézze)|javaslom|forduljon",
    ),
    "ro": _Words(
        (" nu ", "nicio", "niciun", "imposibil"),
        r"îmi pare rău|din păcate|scuze|îmi cer scuze|regret",
        r"\bnu(?! doar| numai| trebuie)|nicio\b|niciun\b|imposibil",
        r"precizea\w+|menționea\w+|menționat\w*|specifi\w+|indic\w+|apare|apar\b|spun\w*|"
        r"oferă|găs\w+|informați\w+|răspuns\w*|rezultă|figurea\w+|abordea\w+",
        r"context\w*|text(?:ul|ului|ele|e)?|document\w*|surs\w+|pasaj\w*|fragment\w*",
        r"pot|am|găsesc|dispun|cunosc|reușesc",
        r"răspun\w+|informați\w+|ajut\w*|găsi\w*|spune|date\b",
        r"^nu știu|eu nu știu|habar n-am|nu (?:există|sunt) (?:\w+ )?informații|nu (?:se poate|"
        r"este posibil să se|poate fi) (?:răspun\w+|determina\w*|stabili\w*)",
        r"dar|însă|totuși",
        r"vă rog|vă rugăm|te rog|vă recomand|îți recomand|consultați|contactați",
    ),
    "sv": _Words(
        ("inte", "ingen", "inga", "omöjligt"),
        r"tyvärr|förlåt|beklagar|jag är ledsen|ledsen",
        r"\binte(?! bara| vara| längre)|inget|ingen|inga|omöjligt",
        r"anger|anges|angivet|nämn\w+|framgår|står|säg(?:er|s)|beskriv\w+|besvara\w*|finns|"
        r"information|uppgift\w*|svar\b|hittas",
        r"kontext\w*|text\w*|dokument\w*|käll\w+|avsnitt\w*|utdrag\w*|underlag\w*",
        r"jag|mig",
        r"vet|svara\w*|besvara\w*|information|hjälpa|hitta\w*|säga|uppgift\w*",
        r"det vet jag inte|jag vet inte|(?:det finns )?ingen (?:\w+ )?information (?:om|"
        r"tillgänglig|hittades)|ingen aning|(?:går det inte|det går inte|inte möjligt|"
        r"omöjligt)(?: att)? (?:\w+ )?(?:svara|besvara)|kan inte besvaras",
        r"men|dock",
        r"vänligen|var god|kontakta|jag rekommenderar|jag föreslår",
    ),
    "da": _Words(
        ("ikke", "ingen", "intet", "umulig"),
        r"(?:jeg )?beklager|desværre|dessverre|undskyld|unnskyld|det gør mig ondt|"
        r"jeg er ked af det|"
        r"jeg er lei meg|lei for det",
        r"\bikke(?! kun| bare| være| længere| lenger)|ingen|intet|umulig\w*",
        r"angiv\w*|oppgi\w*|oplys\w*|opplys\w*|nævn\w+|nevn\w+|fremgår|framgår|står|si(?:g|"
        r"er)\w*|beskriv\w+|besvar\w*|findes|finnes|information\w*|informasjon\w*|svar\b",
        r"kontekst\w*|tekst\w*|dokument\w*|kild\w+|afsnit\w*|avsnitt\w*|uddrag\w*|utdrag\w*|"
        r"materiale\w*",
        r"jeg|mig|meg",
        r"\bved|\bvet\b|svar\w*|besvar\w*|information\w*|informasjon\w*|oplysning\w*|"
        r"opplysning\w*|hjælpe|hjelpe|fandt|fant|finde|finne|sige|si\b",
        r"det (?:ved|vet) jeg ikke|jeg (?:ved|vet) (?:\w+ )?ikke|(?:der er |det er |"
        r"det finnes |der findes )?ingen (?:\w+ )?(?:oplysninger|opplysninger|information|"
        r"informasjon) (?:om|tilgængelig\w*|tilgjengelig\w*)|ingen anelse|"
        r"ikke mulig\w* å (?:svare|besvare)|ikke muligt at (?:svare|besvare)|kan ikke besvares",
        r"men|dog",
        r"venligst|vennligst|kontakt|jeg anbefaler|jeg foreslår|du kan (?:kontakte|finde|"
        r"finne)",
    ),
    "fi": _Words(
        (" en ", " ei ", "eivät", "eikä", "mahdotonta"),
        r"valitettavasti|pahoittelen|anteeksi|olen pahoillani",
        r"\ben\b|\bei(?! saa| vain| ainoastaan)\b|eivät|mahdotonta",
        r"kerro\w*|mainit\w+|mainin\w+|sisällä\w* (?:\w+ ){0,2}(?:tieto|vastaus)\w*|sano\w*|"
        r"ilmen\w+|käy|selviä|löydy\w*|vastata|vastausta|tietoa|tietoja",
        r"konteksti\w*|teksti\w*|asiakirj\w+|dokument\w+|läht\w+|katkelm\w+|aineisto\w*",
        r"en|minulla",
        r"tiedä|vasta\w*|tieto\w*|auttaa|löy\w+|sanoa|kysym\w+",
        r"en tiedä|en osaa sanoa|(?:tietoa|tietoja) (?:\w+ )?ei (?:ole|löydy|löytynyt)|"
        r"ei tietoa|kysymykseen ei voi\w* vastata|ei voi\w* vastata (?:\w+ )?kysymykseen",
        r"mutta|kuitenkin|sen sijaan",
        r"ota yhteyttä|suosittelen|katso|tarkista|ole hyvä ja",
    ),
    "el": _Words(
        (" δεν ", " δε ", "καμία", "αδύνατ"),
        r"λυπάμαι|δυστυχώς|συγγνώμη|με συγχωρείτε|ζητώ συγγνώμη",
        r"δεν?(?! μόνο| πρέπει)\b|καμία|αδύνατ\w+",
        r"αναφέρ\w+|περιέχ\w+ (?:\w+ ){0,2}(?:πληροφορί|απάντησ|στοιχεί)\w*|αναφορά|υπάρχ\w+|"
        r"διευκρινίζ\w+|προσδιορίζ\w+|λέ(?:ει|νε)|παρέχ\w+|πληροφορ\w+|προκύπτ\w+|απαντηθεί|"
        r"απάντηση|γράφ\w+",
        r"πλαίσι\w*|κείμεν\w*|κειμέν\w*|έγγραφ\w*|εγγράφ\w*|πηγ(?:ή|ές|ών)|απόσπασμα|"
        r"αποσπάσματα",
        r"μπορώ|γνωρίζω|ξέρω|βρήκα|βρίσκω|έχω|διαθέτω",
        r"απαντ\w+|απάντησ\w*|πληροφορ\w+|βοηθήσω|βρήκα|βρω|γνωρίζω|ξέρω",
        r"δεν? (?:το )?(?:γνωρίζω|ξέρω)|δεν υπάρχουν (?:\w+ )?πληροφορίες|"
        r"δεν είναι δυνατ\w+ να (?:απαντ\w+|δοθεί)|δεν μπορεί να απαντηθεί|"
        r"αδύνατ\w+ να απαντ\w+",
        r"αλλά|όμως|ωστόσο",
        r"παρακαλώ|συμβουλευτείτε|επικοινωνήστε|προτείνω",
    ),
    "tr": _Words(
        (
            "bilmiyorum",
            "yok",
            "değil",
            "medi",
            "madı",
            "miyor",
            "mıyor",
            "muyor",
            "müyor",
            "memiş",
            "mamış",
            "emem",
            "amam",
            "maz",
            "mez",
            "mamak",
            "memek",
            "amıyor",
            "emiyor",
            "ulunam",
        ),
        r"üzgünüm|maalesef|ne yazık ki|özür dilerim|kusura bakmayın",
        r"\w+m[ıiuü]yor\w*|\w+m[ae]m[ıi]ş\w*|\w+m[ae]d[ıi]\w*|\w+m[ae]m[ae]kt\w+|"
        r"\w+[ae]m[ae]z|yok(?:tur)?|değil\w*|\w+[ae]mam",
        r"belirt\w+|bahse\w+|bilgi içer\w+|bilgi\w*|yer al\w+|geç\w+mi\w+|açıkla\w+|söyle\w+|"
        r"cevap\w*|yanıt\w*|değin\w+",
        r"bağlam\w*|metin\w*|metn\w+|belge(?:ler|de|ye|nin)?\w*|doküman\w*|kaynak\w*|pasaj\w*",
        r"\w+(?:m[ıiuü]yorum|[ae]m[ae]d[ıi]m|[ae]m[ae]m)|bilgim|bilgiye sahip değilim",
        r"cevap\w*|yanıt\w*|bilgi\w*|bilmiyorum|yardım\w*|bulam\w+|soru\w*",
        r"bilmiyorum|bilgim yok|(?:\w+ )?bilgi (?:yok|bulunamadı|bulunmuyor|bulunmamaktadır)|"
        r"emin değilim|(?:cevap\w*|yanıt\w*)(?: \w+)? (?:mümkün değil\w*|\w+(?:namaz|namıyor|"
        r"lemez|lamaz))",
        r"ancak|ama|fakat|lakin",
        r"lütfen|öneririm|tavsiye ederim",
    ),
    "ru": _Words(
        (" не ", "нет", "недостаточно", "невозможно", "ничего", "неизвестно", "отсутств"),
        r"извините|к сожалению|простите|прошу прощения|сожалею",
        r"\bне(?! только| должен)\b|\bнет\b|недостаточно|невозможно|ничего|неизвестно|"
        r"отсутств\w+|нельзя",
        r"указан\w*|указыва\w+|содерж\w+ (?:\w+ ){0,2}(?:информаци|ответ|сведени|данн)\w*|"
        r"упомин\w+|упомянут\w*|сказано|говорится|информаци\w*|сведени\w*|ответ\w*|описан\w*|"
        r"следует|привод\w+|раскрыва\w+|уточня\w+",
        r"контекст\w*|текст\w*|документ\w*|источник\w*|фрагмент\w*|отрыв\w+|материал\w*",
        r"я|мне|меня|могу|знаю|наш[её]л|нашла",
        r"знаю|ответ\w*|информаци\w*|сведени\w*|помочь|наш[её]л|нашла|найти|сказать|данных",
        r"не знаю|нет (?:\w+ )?(?:информации|данных|сведений)|"
        r"информация (?:\w+ )?(?:отсутствует|не найдена)|неизвестно|(?:невозможно|нельзя|"
        r"не представляется возможным) (?:\w+ )?(?:ответить|определить|установить)",
        r"но|однако|зато",
        r"пожалуйста|рекомендую|советую|обратитесь|уточните",
    ),
    "uk": _Words(
        (" не ", "немає", " нема ", "недостатньо", "неможливо", "нічого", "невідомо", "відсутн"),
        r"вибачте|на жаль|перепрошую|пробачте|шкода",
        r"\bне(?! лише| тільки| повинен)\b|немає|нема\b|недостатньо|неможливо|нічого|невідомо|"
        r"відсутн\w+",
        r"зазначен\w*|вказ\w+|містит\w+ (?:\w+ ){0,2}(?:інформаці|відповід|дан)\w*|згаду\w+|"
        r"згадан\w*|сказано|йдеться|інформаці\w*|відповід\w*|описан\w*|наведен\w*",
        r"контекст\w*|текст\w*|документ\w*|джерел\w*|фрагмент\w*|уривк\w*|матеріал\w*",
        r"я|мені|мене|можу|знаю|знайшов|знайшла",
        r"знаю|відпові\w*|інформаці\w*|допомогти|знайшов|знайшла|знайти|сказати|даних",
        r"не знаю|немає (?:\w+ )?(?:інформації|даних)|інформація (?:\w+ )?відсутня|"
        r"неможливо (?:\w+ )?(?:відповісти|визначити)",
        r"але|проте|однак|та все ж",
        r"будь ласка|рекомендую|раджу|зверніться",
    ),
    "bg": _Words(
        (" не ", "няма", "нямам", "невъзможно", "нищо", "липсва"),
        r"съжалявам|за съжаление|извинете|извинявам се",
        r"\bне(?! само| трябва)\b|няма\w*|невъзможно|нищо|липсва\w*",
        r"посоч\w+|съдърж\w+ (?:\w+ ){0,2}(?:информаци|отговор|данн)\w*|споменав\w+|"
        r"споменат\w*|казва\w*|информаци\w*|отговор\w*|описан\w*|уточн\w+|пише",
        r"контекст\w*|текст\w*|документ\w*|източни\w+|откъс\w*|пасаж\w*|материал\w*",
        r"мога|знам|намерих|намирам|нямам|разполагам|успях",
        r"отговор\w*|информаци\w*|данни|помогна|намер\w+|знам|кажа",
        r"не знам|няма (?:\w+ )?(?:информация|данни)|нямам представа|(?:не е възможно|не може|"
        r"невъзможно) да (?:се )?(?:отговор\w+|определи)",
        r"но|обаче|все пак",
        r"моля|препоръчвам|обърнете се|проверете",
    ),
    "ar": _Words(
        (" لا ", " لم ", "ليس", " غير ", " لن "),
        r"عذر[ًا]*ا?|آسف|أعتذر|للأسف|معذرة|نأسف",
        r"\bلا\b|\bلم\b|\bليست?\b|\bغير\b|\bلن\b",
        r"تذكر|يذكر|مذكورة?|موجودة?|متوفرة?|متاحة?|(?:ي|ت)حتوي (?:\w+ ){0,2}معلومات|يشير|تشير|"
        r"(?:ي|ت)حدد|(?:ي|ت)وضح|(?:ي|ت)تضمن معلومات|معلومات|معلومة|إجابة|ورد|يرد",
        r"(?:ال)?سياق|(?:ال)?نصوص|(?:ال)?نص|(?:ال)?مستندات|(?:ال)?مستند|(?:ال)?وثائق|"
        r"(?:ال)?مصادر|(?:ال)?مقاطع",
        r"أستطيع|يمكنني|أعرف|أعلم|أجد|لدي|أتمكن|أملك|عندي",
        r"(?:ل?ل?ال?)?إجابة|(?:ل?ال?)?للإجابة|أجيب|معلومات|مساعد\w+|أعرف|أعلم|العثور|أجد",
        r"لا (?:أعرف|أعلم|أدري)|لا توجد (?:\w+ )?معلومات|لست متأكد\w*|(?:لا|غير) (?:يمكن|"
        r"ممكن) الإجابة",
        r"لكن|ولكن|إلا أن|غير أن",
        r"يرجى|أنصح|يُرجى",
    ),
    "he": _Words(
        (" לא ", " אין ", "אינ", "איננ"),
        r"מצטערת?|לצערי|לצערנו|סליחה|מתנצלת?|אני מצטערת?",
        r"\bלא\b|\bאין\b|\bאינ\w+",
        r"מציינ\w+|מציין|מזכיר\w*|מוזכר\w*|מופיע\w*|מכיל\w* (?:\w+ ){0,2}(?:מידע|תשובה)|"
        r"מכילה?ים?|כתוב\w*|נאמר\w*|מפרט\w*|קיים|מידע|תשובה|צוין|מצוין",
        r"ה?ב?ו?(?:הקשר|טקסט|מסמכים|מסמך|מקורות|קטעים|קטע)|בטקסט|במסמכים|בהקשר",
        r"אני|מצאתי|לי|הצלחתי",
        r"יודעת?|לענות|לעזור|מידע|תשובה|מצאתי|לומר|לדעת|למצוא",
        r"לא (?:יודעת?|בטוחה?)(?= *$)|אין (?:\w+ )?מידע|(?:לא ניתן|אי אפשר|לא אפשר) לענות",
        r"אבל|אך|אולם|עם זאת",
        r"אנא|נא |מומלץ|כדאי",
    ),
    "hi": _Words(
        ("नहीं", "असमर्थ", "असंभव"),
        r"क्षमा करें|माफ़? ?करें|माफ़ कीजिए|दुर्भाग्य से|खेद है|मुझे खेद है",
        r"नहीं|असमर्थ|असंभव",
        r"बताया|बताई|बताते|उल्लेख|जानकारी|उत्तर|जवाब|दिया गया|लिखा|वर्णन|विवरण|स्पष्ट",
        r"संदर्भ|पाठ|दस्तावेज़?\S*|स्रोत\S*|अंश\S*|सामग्री",
        r"मैं|मुझे|मेरे",
        r"पता|उत्तर|जवाब|जानकारी|जानता|जानती|मदद|सहायता|बता",
        r"पता नहीं|नहीं पता|कोई (?:\S+ )?जानकारी (?:उपलब्ध )?नहीं|"
        r"उत्तर (?:\S+ ){0,2}(?:संभव नहीं|नहीं दिया जा सकता)",
        r"लेकिन|परंतु|परन्तु|किंतु|मगर|पर",
        r"कृपया|मैं सुझाव",
    ),
    "zh": _Words(
        ("不", "没", "沒", "无法", "無法", "未", "无"),
        r"抱歉|对不起|對不起|很遗憾|很遺憾|遗憾|不好意思|可惜",
        r"不(?!得|会|會)|没|沒|无|無|未",
        r"(?:说明|說明|提到|提及|提供|指出|给出|写明|记载|涉及|信息|資訊|信息|内容|答案|介绍|描述|明确)",
        r"上下文|文件|文档|文檔|文中|文本|资料|資料|来源|來源|段落|原文|材料|语境|语料",
        r"我(?!们|們)",
        r"知道|回答|回复|答案|信息|資訊|资料|帮助|帮到|找到|确定|了解|清楚",
        r"^(?:我)?(?:不知道|不清楚|不确定|不了解)$|^(?:没有|暂无|无)\w{0,6}(?:信息|资料|答案)$|(?:无法|不能|"
        r"無法)(?:根据\w{0,12})?(?:回答|确定答案)",
        r"但是?|不过|不過|然而|可是",
        r"请|請|建议|建議",
    ),
    "ja": _Words(
        ("ません", "ない", "なかった", "なし", "かね", "ありませ"),
        r"申し訳(?:ありません|ございません|ない)(?:が|けど)?|すみません(?:が)?|残念ながら|恐れ入りますが|ごめんなさい",
        r"ません|ない(?!と)|なかった|なし|かねます|不明",
        r"わかり|分かり|記載|記述|言及|説明|述べ|書かれ|示され|情報|触れ|回答|答え|明記|載って",
        r"文書|文脈|コンテキスト|本文|テキスト|資料|ドキュメント|出典|ソース|文章|抜粋|情報源",
        r"私",
        r"答え|回答|情報|わかり|分かり|見つ|お手伝い|知り",
        r"^(?:私(?:に)?は)?(?:それは)?(?:わかりません|分かりません|わかりかねます|分かりかねます|存じません|知りません|不明です)|^(?:関連する|"
        r"該当する)?情報(?:が|は)(?:ありません|見つかりません)|お?答え(?:する|でき|られ|いたし)\w*(?:ません|かねます)|回答(?:する|でき|"
        r"いたし)\w*(?:ません|かねます)|回答\w{0,12}情報がありません",
        r"(?<=ん|い|す|た)が、|けれども、?|けど、|しかし、?|ただし、?|一方で?、",
        r".{0,30}(?:ご確認|お問い合わせ|ご参照|ご覧|教えて)(?:ください|下さい)",
    ),
    "ko": _Words(
        ("없", "않", "못", "모르", "모릅", "불가"),
        r"죄송(?:합니다|하지만|합니다만|스럽지만)?|안타깝게도|유감스럽게도|미안하지만|아쉽게도",
        r"없|않|못|모르|모릅|불가",
        r"명시|언급|정보|나와|나타나|기재|설명|포함되어 있지 않[^,]*정보|답|제공되|다루|서술",
        r"문서|문맥|컨텍스트|맥락|본문|텍스트|자료|출처|지문|글에",
        r"저는|제가",
        r"답|정보|모르|모릅|찾|도와|도움|알 수",
        r"^(?:잘 |저는 )?(?:모르겠|모릅니다)|^(?:관련 |해당 )?정보(?:가|는) 없습니다|답(?:변)?(?:을|를)? ?(?:드릴|할|하기|"
        r"해 ?드릴)(?: 수)? ?(?:없|어렵)|답변\S* (?:\S+ ){0,2}정보가 (?:없|부족)|알 수 없습니다$",
        r"(?<=지)만,?\s|하지만\s|그러나\s|다만,?\s|반면",
        r".{0,40}(?:확인|문의|참고|참조)(?:해 ?주|하시|하세|바랍)",
    ),
    "vi": _Words(
        ("không", "chưa"),
        r"(?:tôi )?(?:rất |thành thật )?xin lỗi|rất tiếc|đáng tiếc|tiếc là|tôi rất tiếc|"
        r"thành thật xin lỗi",
        r"không(?! chỉ| được dài| được quá)|chưa",
        r"nêu|đề cập|chứa (?:\w+ ){0,2}thông tin|nói|cung cấp|chỉ ra|thông tin|câu trả lời|"
        r"nhắc|xuất hiện|ghi|mô tả|có trong",
        r"ngữ cảnh|văn bản|tài liệu|nguồn|đoạn trích|đoạn văn|bối cảnh",
        r"(?<!chúng )tôi",
        r"biết|trả lời|thông tin|giúp|tìm thấy|xác định|rõ",
        r"tôi không (?:biết|rõ|chắc)|không có (?:\w+ )?thông tin|không thể (?:trả lời|"
        r"xác định)",
        r"nhưng|tuy nhiên|song",
        r"vui lòng|xin hãy|hãy|tôi khuyên",
    ),
    "id": _Words(
        ("tidak", "belum", " tak "),
        r"maaf|mohon maaf|sayangnya|saya menyesal",
        r"\btidak(?! hanya| boleh)|belum|\btak\b",
        r"(?:menyebut|disebut|menjelas|dijelas|mencantum|dicantum|memberi|menyata|dinyata|"
        r"membahas|dibahas|tercantum|menerang)\w*|(?:memuat|mengandung|"
        r"berisi) (?:\w+ ){0,2}(?:informasi|jawaban|data)|informasi|jawaban|ditemukan|"
        r"terdapat|dijawab",
        r"konteks\w*|teks\w*|dokumen\w*|sumber\w*|kutipan\w*|bagian tersebut",
        r"saya",
        r"tahu|mengetahui|(?:men|di)jawab\w*|informasi|membantu|menemukan|mengatakan|jawaban|"
        r"yakin",
        r"saya tidak (?:tahu|yakin)|tidak ada (?:\w+ )?informasi|"
        r"informasi (?:\w+ )?tidak (?:tersedia|ditemukan)|tidak (?:dapat|bisa|mungkin) dijawab",
        r"tetapi|tapi|namun|akan tetapi",
        r"silakan|mohon|saya sarankan|harap",
    ),
}

# Scripts in which a word is not set apart by blanks, or ends in a mark that is no letter.
_OPEN_ENDED: Final = frozenset({"hi", "ja", "ko", "zh"})
_CLAUSE: Final = re.compile(r"[^\W_](?:[^,;:،؛，；、：]|[,:](?=\d))*")
_MAX_CLAUSES: Final = 4
"""Clauses of a sentence up to the one that declines: regrets, and what the answer is based on."""

_MAX_BASIS: Final = 60
"""Characters of a clause that says what the answer is based on, and asserts nothing itself."""

_MAX_SORRY: Final = 30

_STOPS: Final = re.compile(r"[.!?,;:\"“”()\n*_]")
_DIGIT: Final = re.compile(r"\d")


class _Row(NamedTuple):
    """The patterns of one language."""

    sorry: re.Pattern[str]
    denies: re.Pattern[str]
    says: re.Pattern[str]
    sources: re.Pattern[str]
    speaker: re.Pattern[str]
    answers: re.Pattern[str]
    whole: re.Pattern[str]
    but: re.Pattern[str]


# Compiled when a text has a hint of the language: all of them would take longer than the import.
@cache
def _row(language: str) -> _Row:
    before, behind = ("", "") if language in _OPEN_ENDED else (r"\b", r"(?!\w)")
    words = _WORDS[language][1:-1]
    return _Row(*(re.compile(rf"{before}(?:{each}){behind}", re.IGNORECASE) for each in words))


_HINTS: Final = tuple({hint for words in _WORDS.values() for hint in words.hints})
REFERRALS: Final = "|".join(f"(?:{words.refers})" for words in _WORDS.values())
"""A pattern that matches the beginning of a sentence that sends the reader elsewhere."""


def may_decline(text: str) -> bool:
    """Tells at little cost whether a text has a word by which sentences decline.

    Args:
        text: Any text.
    """
    lowered = _spaced(text)
    return any(map(lowered.__contains__, _HINTS))


def declined(sentence: str) -> str | None:
    """Tells whether a sentence declines to answer, and returns what it says beside that.

    Args:
        sentence: One sentence in any of the languages.

    Returns:
        What follows "but", empty if nothing does; None if the sentence does not decline.
    """
    return _remembered(sentence) if len(sentence) <= _LONGEST_REMEMBERED else _found(sentence)


# Whether a sentence declines is asked by each step that reads it.
_LONGEST_REMEMBERED: Final = 500


@lru_cache(maxsize=256)
def _remembered(sentence: str) -> str | None:
    return _found(sentence)


def _found(sentence: str) -> str | None:
    lowered = _spaced(sentence)
    for language, words in _WORDS.items():
        if any(map(lowered.__contains__, words.hints)):
            rest = _declined(sentence, _row(language))
            if rest is not None:
                return rest
    return None


def _spaced(text: str) -> str:
    # A hint may be the first or the last word of its sentence.
    return _STOPS.sub(" ", f" {text.lower()} ")


def _declined(sentence: str, row: _Row) -> str | None:
    if not row.denies.search(sentence):
        return None
    names_sources = False
    for _, clause in zip(range(_MAX_CLAUSES), _CLAUSE.finditer(sentence), strict=False):
        text = clause.group()
        names_sources = names_sources or row.sources.search(text) is not None
        end = _end_of_refusal(text, row, names_sources=names_sources)
        if end is not None:
            but = row.but.search(sentence, clause.start() + end)
            return sentence[but.end() :].strip() if but else ""
        is_basis = row.sources.search(text) and len(text) <= _MAX_BASIS and not _DIGIT.search(text)
        regrets = row.sorry.match(text.strip()) and len(text) <= _MAX_SORRY
        if not (is_basis or regrets):
            return None
    return None


def _end_of_refusal(clause: str, row: _Row, *, names_sources: bool) -> int | None:
    """Where the words end by which a clause declines; None if it does not."""
    if whole := row.whole.search(clause):
        return whole.end()
    denial = row.denies.search(clause)
    if denial is None:
        return None
    by_speaker = row.speaker.search(clause) and row.answers.search(clause)
    by_source = names_sources and row.says.search(clause)
    return denial.end() if by_speaker or by_source else None
