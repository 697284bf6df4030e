"""What stands beside an answer by itself: sources, pointers to more, disclaimers, ratings.

A disclaimer ("Prices may change") is true of any answer, and a pointer ("Read more:") of none: a
judge would look for both in the chunks.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["FILE", "PLACE", "SOURCE_WORD", "URL", "is_footer", "is_source_heading"]

FILE: Final = r"[\w%./ -]{1,80}\.(?:pdf|html?|docx?|md|txt|csv|xlsx?|pptx?|json|xml|rst)\b"
URL: Final = r"(?:https?://|www\.)[^\s<>\])]+"
PLACE: Final = (
    r"(?:,?\s*(?:p{1,2}\.|pages?|sections?|sec\.|§|chapters?|lines?|paragraphs?|table|fig(?:ure|"
    r"\.)?|"
    r"S\.|Seite|str\.|strani?)\s*[\divxlc][\d.,\s–-]*)"
)
SOURCE_WORD: Final = (
    r"(?:sources?|documents?|docs?|passages?|chunks?|refs?\.?|references?|contexts?|citations?|"
    r"articles?|quellen?|viri?|bron|fuente|fonte)"
)
_SOURCE_HEADINGS: Final = (
    r"(?:(?:my|the|all|retrieved|relevant|supporting|cited|consulted|used|original|quoted|matching|"
    r"source|context|text) ){0,3}"
    rf"(?:{SOURCE_WORD}|excerpts?|snippets?|quotes?|quotations?|(?:supporting )?evidence|footnotes|"
    r"bibliography|further reading|see also|search results|retrieved context|based on|taken from)"
    r"(?: (?:used|consulted|cited|retrieved|found|for (?:this|the) answer|from the \w+))?"
    r"(?: [#№]?\d{1,3})?",
    r"(?:(?:verwendete|genutzte|zitierte|gefundene|relevante) )?"
    r"(?:quellen?|quellenangaben|quellenverzeichnis|textstellen?|fundstellen?|belegstellen?|"
    r"auszüge|"
    r"zitate|literatur|grundlage|basierend auf)",
    r"(?:sources?|références?|extraits?|passages?|citations?|basé sur)"
    r"(?: (?:utilisée?s|consultée?s|citée?s))?",
    r"(?:fuentes?|referencias?|fragmentos?|extractos?|pasajes?|citas|basado en)"
    r"(?: (?:utilizad[ao]s|consultad[ao]s|citad[ao]s))?",
    r"(?:fonti?e?|riferimenti|estratti|brani|passaggi|citazioni|basato su|in base a)"
    r"(?: (?:utilizzat[ei]|consultat[ei]|citat[ei]))?",
    r"(?:fontes?|referências?|trechos?|excertos?|citações|com base em)"
    r"(?: (?:utilizad[ao]s|consultad[ao]s|citad[ao]s))?",
    r"(?:(?:gebruikte|geraadpleegde) )?(?:bron|bronnen|fragmenten|passages|gebaseerd op)",
    r"(?:(?:uporabljeni|navedeni) )?(?:viri?|odlomki?|navedki|izseki|literatura|na podlagi)",
    r"izvori?|odlomci|navodi|извори?|одломци|źródł[ao]|fragmenty|przypisy|cytaty|zdroje?|úryvky|"
    r"pasáže|források|forrás|idézetek|részletek|surse?|fragmente|pasaje|källor|källa|utdrag|"
    r"kilder?|"
    r"uddrag|lähteet|lähde|otteet|katkelmat|πηγ(?:ές|ή)|αποσπάσματα|kaynak(?:lar|ça)?|alıntılar|"
    r"источники?|фрагменты|отрывки|цитаты|джерел[ао]|уривки|фрагменти|източници?|откъси|цитати",
    r"المصادر|المراجع|المصدر|المقاطع|مصادر|מקורות|מקור|קטעים|स्रोत|संदर्भ|अंश|उद्धरण|"
    r"(?:资料|信息|引用|參考)?(?:来源|來源)|参考(?:资料|文献)?|參考(?:資料|文獻)|引用|出处|摘录|"
    r"出典|参考(?:文献|資料)|引用元|参照(?:元)?|根拠|출처|참고(?: ?(?:자료|문헌))?|근거|인용|"
    r"nguồn(?: tham khảo)?|trích dẫn|tài liệu tham khảo|sumber|kutipan|referensi",
)
_SOURCE_HEADING: Final = re.compile(
    rf"[\s>#*_\-]*(?:\d{{1,2}}[.)] )?(?:{'|'.join(_SOURCE_HEADINGS)})"
    r"[\s*_]*(?:\([^()\n]{1,40}\))?[\s*_]*[:：]?[\s*_]*",
    re.IGNORECASE,
)
_POINTERS: Final = (
    rf"(?:{SOURCE_WORD}|further reading|(?:read|learn|find out) more(?: about [^:\n]{{1,80}})?|"
    rf"see also|"
    r"(?:more|further|full|additional) (?:information|details|info))\s*[:：].*"
    rf"|(?:\[\^?\w{{1,12}}\]:?\s*)?(?:{FILE}|{URL}){PLACE}?[.,;]?"
    rf"|\[\^\w{{1,12}}\]:.*|\[\d{{1,3}}\]:?\s*{SOURCE_WORD}\b.*|\[\d[\d,\s–-]*\]"
    # A link alone, or behind words that point.
    r"|(?:(?:please |you can (?:also )?)?(?:for|see|read|visit|check|find|more|link|learn|go to|"
    r"via|full|at|here)"
    rf"\b[^\[\]\n]{{0,80}}[ :]\s*)?(?:\[[^\[\]\n]{{1,200}}\]\([^()\s]{{1,500}}\)|<?{URL}>?)[.!]?",
    r"(?:(?:please|you can(?: also)?|also) )?(?:see|visit|check|consult|read|refer to|view|find) "
    r"(?:\S+ ){0,8}(?:for (?:more|further|full|additional)(?: \w+)?|for (?:details|"
    r"information))[.!]?"
    r"|(?:(?:please|you can(?: also)?|also) )?(?:see|read|view|find|learn) (?:\S+ ){0,8}here[.!]?"
    r"|click (?:here|the link)\b.*|for (?:more|further|additional) (?:information|details|help)\b.*"
    r"|(?:read|learn|find out) more(?: about (?:\S+ ){0,6}\S+| here| at \S+)?[.!]?",
    r"(?:mehr|weitere|nähere|ausführliche) (?:informationen|infos|details|angaben)"
    r"(?: (?:dazu|hierzu|zu [^.:]{1,60}))?(?::| (?:finden|gibt|erhalten|siehe|unter|auf|hier)\b).*"
    r"|(?:mehr dazu|mehr erfahren|weiterlesen|siehe(?: auch)?)(?:\s*:| (?:hier|unter|auf|im|"
    r"in der)\b).*",
    r"(?:pour (?:en savoir plus|plus d'informations?|plus de détails)|en savoir plus|voir aussi|"
    r"plus d'informations?(?: sur|\s*:| ici))\b.*",
    r"(?:para (?:más|mayor) (?:información|detalles)|(?:más|mayor) información(?: en| aquí|\s*:)|"
    r"(?:leer|saber) más|véase también)\b.*",
    r"(?:per (?:maggiori|ulteriori) (?:informazioni|dettagli)|(?:maggiori|ulteriori) informazioni"
    r"(?: su| qui|\s*:| sono disponibili)|(?:leggi|scopri) di più|vedi anche)\b.*",
    r"(?:para (?:mais|obter mais) (?:informações|detalhes)|mais informações(?: em| aqui|\s*:)|"
    r"(?:leia|saiba) mais|veja também)\b.*",
    r"(?:voor meer (?:informatie|details)|meer informatie(?: vindt| vind je| op|\s*:)|"
    r"lees (?:meer|verder)|"
    r"zie ook)\b.*",
    r"(?:za (?:več|dodatne|podrobnejše) informacij\w*|več (?:informacij|o tem)(?: najdete| na|"
    r"\s*:)|"
    r"preberite več|glejte tudi)\b.*",
    r"(?:za više informacija|više informacija(?: na|\s*:| možete)|pročitajte više|vidi i)\b.*",
    r"(?:(?:aby uzyskać )?więcej informacji(?: można| na|\s*:| znajd)|czytaj (?:więcej|dalej)|"
    r"zobacz też)\b.*",
    r"(?:(?:pro )?více informací(?: najdete| na|\s*:)|(?:pre )?viac informácií(?: nájdete| na|"
    r"\s*:)|"
    r"čtěte (?:více|dále)|viz také)\b.*",
    r"(?:további információ\w*|bővebb információ\w*)(?: itt| a|\s*:)?\b.*|"
    r"(?:pentru )?mai multe (?:informații|detalii)\b.*",
    r"(?:läs (?:mer|vidare)|mer information(?: finns|\s*:)|för mer information|se även)\b.*",
    r"(?:læs (?:mere|videre)|for mere information|les (?:mer|videre)|for mer informasjon|"
    r"se også)\b.*",
    r"(?:lue lisää|lisätietoja)\b.*|(?:για )?περισσότερες πληροφορίες\b.*"
    r"|(?:daha fazla bilgi|ayrıntılı bilgi)(?: için|\s*:)\b.*",
    r"(?:(?:для получения )?(?:более подробн\w+|дополнительн\w+) информаци\w+|подробнее|"
    r"читайте (?:также|далее)|(?:більше|детальніше)(?: інформації)?(?: на|\s*:| тут)|"
    r"(?:за )?повече информация)\b.*",
    r"(?:لمزيد من (?:المعلومات|التفاصيل)|اقرأ المزيد|למידע נוסף|לפרטים נוספים|"
    r"अधिक (?:जानकारी|विवरण) के लिए).*",
    r"(?:更多(?:信息|资讯|詳情|详情|内容)(?:请|，请|：|见)|(?:如需|欲)了解更多|詳しくは|詳細(?:は|について)|"
    r"자세한 (?:내용|사항|정보)은?).*",
    r"(?:để biết thêm (?:thông tin|chi tiết)|xem thêm|untuk informasi (?:lebih lanjut|"
    r"selengkapnya)|"
    r"(?:informasi|baca) selengkapnya)\b.*",
)
"""Sentences that send the reader on for more, by language."""

_DISCLAIMERS: Final = (
    r"(?:disclaimer|haftungsausschluss|avertissement|aviso legal|descargo de responsabilidad|"
    r"avvertenza|isenção de responsabilidade|omejitev odgovornosti)\s*[:：].*",
    r"(?:please note(?: that)? |note(?: that)?:? )?(?:this|that|it|the above|"
    r"the information above|this "
    r"(?:answer|response|information))(?:'s| is| does) (?:(?:only|just|general|provided|intended|"
    r"meant|offered) (?:\w+ ){0,4}information(?:al)?\b.*|(?:not|no)(?: (?:a|be|constitute|"
    r"intended as|"
    r"meant as|a substitute for|taken as))? (?:\w+,? ){0,3}(?:or )?\w+ advice\b.*)",
    r"(?:please|always|you should(?: always)?|it(?:'s| is) (?:always )?(?:best|advisable|"
    r"recommended) to) "
    r"(?:consult|speak (?:to|with)|talk to|see|contact|ask|seek (?:the )?advice (?:of|"
    r"from))(?: with)? "
    r"(?:an?|your) (?:\w+ ){0,2}(?:doctor|physician|pharmacist|lawyer|attorney|solicitor|"
    r"professional|"
    r"expert|specialist|advis[eo]r|accountant|provider)"
    r"(?: (?:or|and) (?:\w+ ){0,3}\w+)?(?: (?:for|before making|regarding|about) [^.]*)?[.!]?",
    r"(?:i(?:'m| am) (?:just |only )?an? (?:ai|artificial|(?:\w+ )?language model|chatbot|"
    r"virtual|digital)|"
    r"this (?:answer|response|text) was (?:generated|written|created) by (?:an? )?ai)\b.*",
    r"(?:please note(?: that)? |note(?: that)?:? )?(?:all |these |the |our )?(?:prices?|fees?|"
    r"rates?|terms|"
    r"details|information|polic(?:y|ies)|availability|hours|times|conditions|offers?|data|figures)"
    r"(?: and \w+)? (?:(?:may|can|could|might) (?:change|be (?:outdated|out of date|incomplete))|"
    r"(?:is|are) subject to change)(?: (?:at any time|without (?:prior )?notice|over time|"
    r"in the future))?"
    r"(?:\s*[.!]?|\s*[;,:–—-]\s.*|,? (?:so|and) .*)",
    r"(?:please )?(?:always )?(?:verify|double-check|check|confirm) (?:this|the|all|these|"
    r"any) (?:\w+ ){0,3}"
    r"(?:information|details|answer|facts|prices?)\b.*",
    r"(?:alle angaben ohne gewähr|angaben ohne gewähr|(?:preis)?änderungen vorbehalten)\W*"
    r"|(?:das|dies|diese \w+|es)(?: hier)? (?:ist|sind|stellt|stellen|ersetzt|"
    r"ersetzen) (?:\w+ ){0,2}"
    r"(?:keine|allgemeine) (?:\w+ ){0,2}(?:\w*beratung|information\w*)\b.*"
    r"|bitte (?:wenden sie sich|konsultieren sie|fragen sie|sprechen sie)(?: (?:an|mit))? "
    r"(?:einen?|einem|ihren?|ihrem) (?:\w+ )?(?:arzt|ärztin|anwalt|apotheker|fach\w+|experten|"
    r"\w*berater)\b.*"
    r"|ich bin (?:nur )?(?:eine ki|ein ki|ein sprachmodell|ein chatbot)\b.*"
    r"|(?:die |alle )?(?:preise|gebühren|angaben|"
    r"informationen) können sich (?:jederzeit )?ändern\b.*",
    r"(?:ceci|cela|cette (?:réponse|information)|ces informations|"
    r"il)(?: \w+)? (?:ne (?:constitue(?:nt)?|"
    r"remplace(?:nt)?) pas|n'est pas|ne sont pas) (?:\w+ ){0,2}(?:conseils?|avis)\b.*"
    r"|(?:veuillez|il est conseillé de|pensez à) consulter (?:un|une|votre) (?:\w+ )?"
    r"(?:médecin|avocat|pharmacien|professionnel|spécialiste|expert)\w*\b.*"
    r"|je suis (?:une ia|un modèle de langage|une intelligence artificielle)\b.*"
    r"|les (?:prix|tarifs|informations) (?:peuvent|sont susceptibles de) (?:changer|varier|"
    r"évoluer|être modifiés)\b.*"
    r"|(?:ces informations sont (?:données|fournies) )?à titre (?:indicatif|informatif)\b.*",
    r"(?:esto|esta (?:respuesta|información))(?: \w+)? no (?:es|constituye|sustituye) (?:\w+ ){0,2}"
    r"(?:asesoramiento|asesoría|consejo)\b.*"
    r"|(?:por favor,? |se recomienda |le recomiendo )?consult(?:e|a|ar) (?:siempre )?(?:a |"
    r"con )?(?:un|una|su|tu) "
    r"(?:\w+ )?(?:médico|abogado|farmacéutico|profesional|especialista|experto)\b.*"
    r"|soy (?:una ia|un modelo de lenguaje|una inteligencia artificial)\b.*"
    r"|(?:los precios|las tarifas) (?:pueden (?:cambiar|variar)|están sujet[oa]s a cambios)\b.*",
    r"(?:questo|questa risposta|queste informazioni|ciò)(?: \w+)? non (?:è|sono|costituisc(?:e|"
    r"ono)|"
    r"sostituisc(?:e|ono)) (?:\w+ ){0,2}(?:consulenza|parere|consiglio)\b.*"
    r"|(?:si prega di |è consigliabile |si consiglia di )?consult(?:i|a|are) (?:sempre )?(?:un|"
    r"il (?:tuo|suo)|"
    r"uno) (?:\w+ )?(?:medico|avvocato|farmacista|professionista|specialista|esperto)\b.*"
    r"|sono (?:un'ia|un'intelligenza artificiale|un modello linguistico)\b.*"
    r"|i prezzi possono (?:variare|cambiare)\b.*",
    r"(?:isto|esta (?:resposta|informação))(?: \w+)? não (?:é|constitui|substitui) (?:\w+ ){0,2}"
    r"(?:aconselhamento|assessoria|conselho)\b.*"
    r"|(?:por favor,? |recomenda-se )?consult(?:e|ar) (?:sempre )?(?:um|uma|o seu|seu) (?:\w+ )?"
    r"(?:médico|advogado|farmacêutico|profissional|especialista)\b.*"
    r"|(?:eu )?sou (?:uma ia|um modelo de linguagem|uma inteligência artificial)\b.*"
    r"|os preços podem (?:mudar|variar|ser alterados)\b.*",
    r"(?:dit|dit antwoord|deze informatie)(?: \w+)? (?:is|vormt|"
    r"vervangt) geen (?:\w+ ){0,2}advies\b.*"
    r"|(?:raadpleeg|neem contact op met) (?:altijd )?(?:een|uw|je) (?:\w+ )?"
    r"(?:arts|huisarts|advocaat|apotheker|deskundige|specialist|professional)\b.*"
    r"|ik ben (?:een ai|een taalmodel|een chatbot)\b.*"
    r"|(?:de )?(?:prijzen|tarieven) kunnen (?:veranderen|wijzigen|variëren)\b.*",
    r"(?:to|ta odgovor) ni (?:\w+ )?(?:nasvet|mnenje)\b.*|(?:prosimo, )?posvetujte se (?:z|"
    r"s) (?:\w+ )?"
    r"(?:zdravnik|odvetnik|farmacevt|strokovnjak)\w*\b.*|(?:sem|jaz sem) (?:umetna inteligenca|"
    r"jezikovni model)\b.*"
    r"|cene se lahko spremenijo\b.*|(?:to|ovo) nije (?:\w+ )?(?:savjet|savet)\b.*"
    r"|(?:molimo )?(?:posavjetujte|posavetujte) se s(?:a)? (?:\w+ )?(?:liječnik|lekar|odvjetnik|"
    r"advokat)\w*\b.*"
    r"|cijene se mogu promijeniti\b.*",
    r"(?:to|ta odpowiedź|niniejsze informacje) nie (?:jest|są|stanowi\w*) (?:\w+ )?porad\w*\b.*"
    r"|(?:prosimy )?(?:skonsultuj|skonsultować)(?:cie)? się z (?:\w+ )?(?:lekarz|prawnik|"
    r"specjalist)\w*\b.*"
    r"|ceny mogą (?:ulec zmianie|się zmienić)\b.*|(?:toto|to) není (?:\w+ )?(?:rada|"
    r"poradenství)\b.*"
    r"|(?:prosím )?poraďte se s (?:\w+ )?(?:lékař|právník|odborník)\w*\b.*|"
    r"ceny se mohou (?:změnit|měnit)\b.*",
    r"(?:это|данн\w+ \w+|эта информация) не явля\w+ (?:\w+ ){0,2}(?:консультаци|совет|"
    r"рекомендаци)\w*.*"
    r"|(?:пожалуйста, )?проконсультируйтесь (?:с|у) (?:\w+ )?(?:врач|юрист|специалист|адвокат)\w*.*"
    r"|(?:я —|я являюсь|я -) (?:ии|языков\w+ модел\w+|искусственн\w+ интеллект\w*)\b.*"
    r"|цены могут (?:измениться|меняться|изменяться)\b.*"
    r"|ціни можуть (?:змінюватися|змінитися)\b.*|це не є (?:\w+ )?(?:порадою|консультацією)\b.*",
    r"det(?:ta|te)? är inte (?:\w+ )?rådgivning\b.*|det(?:te)? er ikke (?:\w+ )?rådgivning\b.*"
    r"|(?:rådgör|kontakta) (?:alltid )?(?:med )?(?:en|din) (?:läkare|jurist|expert)\b.*"
    r"|(?:kontakt|rådfør dig med|snakk med) (?:altid |alltid )?(?:en|din) (?:læge|lege|advokat|"
    r"fagperson)\b.*"
    r"|priser(?:na|ne)? kan (?:ändras|ændre sig|endre seg|endres)\b.*",
    r".{0,20}仅供参考.*|.{0,12}不构成.{0,12}(?:建议|意见).*|请(?:务必)?咨询.{0,8}(?:医生|律师|专业人士|专家|医师).*"
    r"|我(?:只)?是(?:一个|一名)?(?:ai|人工智能|语言模型).*|价格可能会?(?:变动|有所变动|变化|调整|随时).*"
    r"|.{0,20}(?:法的|医学的|専門的).{0,4}(?:助言|アドバイス)ではありません.*"
    r"|(?:必ず)?(?:医師|弁護士|専門家).{0,8}(?:ご相談|相談して)ください.*|私は(?:ai|言語モデル|人工知能).*"
    r"|価格は(?:予告なく)?変更.{0,6}(?:場合|可能性|こと)があります.*"
    r"|.{0,20}(?:법률|의학|전문).{0,6}(?:조언|자문)이? ?아닙니다.*|(?:의사|변호사|전문가).{0,10}상담하(?:세요|시기).*"
    r"|저는 (?:ai|인공지능|언어 모델).*|가격은 .{0,10}변(?:경|동)될 수 있습니다.*",
    r"(?:هذه?|هذا) (?:\w+ )?(?:ليست?|لا (?:ت|ي)(?:شكل|عد|عتبر)) (?:\w+ )?(?:استشارة|نصيحة).*|"
    r"يرجى استشارة.*"
    r"|قد تتغير الأسعار.*|bu (?:\w+ )?(?:hukuki|tıbbi|yasal) (?:tavsiye|danışmanlık) (?:değildir|"
    r"niteliği).*"
    r"|(?:lütfen )?(?:bir )?(?:doktor|avukat|uzman)\w*(?: \w+)? danışın.*|fiyatlar değişebilir.*",
)
"""Sentences that are true of any answer, by language."""

_FOOTER: Final = re.compile(
    r"(?:(?:my )?confidence|certainty|relevance|zaupanje|konfidenz)(?:\s+(?:score|level))?"
    r"\s*[:=：]\s*(?:very\s+)?(?:high|medium|moderate|low|hoch|mittel|niedrig|[\d.,/ ]+%?)[.!]?"
    r"|(?:note: )?(?:this (?:information|answer|response|summary)"
    r"|the (?:information|answer|response|summary) above) (?:is|was) "
    r"(?:based on|taken from|drawn from|sourced from)\b.*"
    r"|(?:last )?(?:updated|retrieved|accessed|reviewed)(?: on)?\s*[:：].*"
    rf"|{'|'.join((*_POINTERS, *_DISCLAIMERS))}",
    re.IGNORECASE,
)


def is_footer(sentence: str) -> bool:
    """Tells whether a sentence is a pointer, a disclaimer, or a rating of the answer.

    Args:
        sentence: One sentence, such as ``Confidence: 95%``, ``guide.pdf, p. 3`` or ``Read more:``.
    """
    # "(Source: guide.pdf)" may stand behind the full stop of what it is the source of.
    bare = sentence.replace("’", "'").strip().strip("()*_→👉ℹ️⚠️ ").strip()
    return bool(_FOOTER.fullmatch(bare))


def is_source_heading(line: str) -> bool:
    """Tells whether a line is the heading of a list of sources or passages, as ``**Quellen:**``."""
    return bool(_SOURCE_HEADING.fullmatch(line))
