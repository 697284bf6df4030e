"""The words of grammar by language: function words, words of negation, and prepositions.

In each list are the forms that stand in running text, in lower case, with straight apostrophes;
the lists come from the grammars of the languages and were fitted to no data set. A language that
has no list has no function words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["FUNCTION_WORDS", "NEGATORS", "NUMBER_WORDS", "PREPOSITIONS", "without_carons"]

_ENGLISH: Final = (
    "a an the this that these those of in on at by for from to with as and or but nor if then than "
    "is are was were be been being am do does did done has have had having it its he she they them "
    "his her their him i you we our your my me who whom whose which what when where there here "
    "will would shall should can could may might must also so such very just about into over under "
    "out up down s t"
)

_PREPOSITIONS: Final = {
    "en": "in at by from on near for to as with during starring",
    "de": "in im an am auf aus bei beim von vom nach zu zum zur für mit um seit durch gegen "
    "während",
    "nl": "in aan op uit bij van naar voor met om sinds door tegen tijdens",
    "da": "i på af fra til ved for med om siden under gennem",
    "nb": "i på av fra til ved for med om siden under gjennom",
    "sv": "i på av från till vid för med om sedan under genom",
    "fr": "à au aux dans en de du des par pour avec chez vers depuis pendant sur sous",
    "es": "a al en de del por para con desde hacia durante sobre",
    "it": "a al alla ai alle in nel nella nei nelle di del della dei delle da dal dalla per con su "
    "sul sulla durante",
    "pt": "a ao à aos às em no na nos nas de do da dos das por pelo pela para com desde durante",
    "ca": "a al en de del per amb des durant sobre",
    "ro": "în la de din pe prin pentru cu spre",
    "sl": "v na ob pri pod nad iz z s k h o po za od do med skozi zaradi",
    "hr": "u na pri kod pod nad iz s sa k ka o po za od do među kroz zbog",
    "cs": "v ve na u při pod nad z ze s se k ke o po za od do mezi skrz kvůli",
    "sk": "v vo na u pri pod nad z zo s so k ku o po za od do medzi cez",
    "pl": "w we na u przy pod nad z ze o po za od do między przez dla",
}
_OTHER: Final = {
    "de": "der die das den dem des ein eine einen einem einer eines und oder aber wenn als wie "
    "dass ist sind war waren wird werden wurde wurden hat haben hatte hatten sein seine seinen "
    "seiner ihr ihre ihren ihrer es er sie wir ich du man sich dieser diese dieses diesem diesen "
    "welche welcher welches kann können konnte muss müssen soll sollen darf dürfen auch so sehr "
    "nur noch schon über unter hier da dort dann denn was wer wo wann",
    "nl": "de het een en of maar als dan dat die dit deze is zijn was waren wordt worden werd "
    "werden heeft hebben had hadden hij zij ze wij we ik je u jij hun haar hem ons onze uw mijn er "
    "hier daar dan ook zo zeer nog al te over onder kan kunnen moet moeten mag mogen zal zullen "
    "wat wie waar wanneer welke",
    "da": "den det de en et og eller men hvis som at er var være været bliver blev har havde han "
    "hun vi jeg du man sig sin sit sine hans hendes deres vores dette denne disse der her så også "
    "meget kun kan kunne skal skulle må vil ville over hvad hvem hvor når hvilken",
    "nb": "den det de en et ei og eller men hvis som at er var være vært blir ble har hadde han "
    "hun vi jeg du man seg sin sitt sine hans hennes deres vår dette denne disse der her så også "
    "veldig bare kan kunne skal skulle må vil ville over hva hvem hvor når hvilken",
    "sv": "den det de en ett och eller men om som att är var vara varit blir blev har hade han hon "
    "vi jag du man sig sin sitt sina hans hennes deras vår detta denna dessa där här så också "
    "mycket bara kan kunde ska skulle måste vill ville över vad vem var när vilken",
    "fr": "le la les l ne n un une d et ou mais si que qui quoi dont où est sont était étaient "
    "être été a ont avait avaient avoir eu il elle ils elles on nous vous je tu se s son sa ses "
    "leur leurs notre votre ce cet cette ces c y qu aussi très peut peuvent doit doivent lui plus "
    "comme quand fait",
    "es": "tiene tienen tenía tener el la los las un una unos unas lo y e o u pero si que quien "
    "cual cuyo es son era eran fue fueron ser sido está están ha han había haber él ella ellos "
    "ellas nosotros yo tú usted se su sus este esta estos estas ese esa esto eso como cuando donde "
    "también muy puede pueden debe deben más ya hay le les",
    "it": "il lo la i gli le l un uno una un' e ed o ma se che chi cui è sono era erano fu essere "
    "stato stata ha hanno aveva avere lui lei loro noi voi io tu si suo sua suoi sue questo questa "
    "questi queste quello quella come quando dove anche molto può possono deve devono più già ci "
    "c dell all nell dall sull",
    "pt": "o os as um uma uns umas e ou mas se que quem qual é são era eram foi foram ser sido "
    "está estão tem têm tinha ter ele ela eles elas nós eu tu você seu sua seus suas este esta "
    "estes estas isso isto como quando onde também muito pode podem deve devem mais já há lhe",
    "ca": "el la els les l un una uns unes i o però si que qui és són era eren va van ser estat ha "
    "han havia ell ella ells elles nosaltres jo tu es se s seu seva seus seves aquest aquesta com "
    "quan on també molt pot poden més ja hi",
    "ro": "un o unei unui și sau dar dacă că care ce este sunt era erau a fi fost au avea el ea ei "
    "ele noi eu tu se său sa săi sale acest această acești aceste ca când unde foarte poate pot "
    "trebuie mai lui",
    "sl": "ima imajo imata imamo imate imam imel imela imeli imelo imeti in ali pa ampak če ker da "
    "ki kot je so si sem smo ste sta sva bil bila bilo bili bile bo bodo bi biti se ga jo jih mu "
    "ji jim mi ti on ona ono oni one vi jaz svoj svoja svoje svojo njegov njegova njegovo njen "
    "njena njihov ta to te tem tega tej tisti tista kateri katera katero ter tudi zelo le samo še "
    "že lahko mora morajo kaj kdo kje kdaj tu tam sicer",
    "hr": "ima imaju imamo imate imam imao imala imali imati i ili a ali ako jer da koji koja koje "
    "kao je su si sam smo ste bio bila bilo bili bile biti bi će se ga ju ih mu joj im on ona ono "
    "oni one mi vi ja ti svoj svoja svoje njegov njegova njezin njen njihov ovaj ova ovo taj ta to "
    "te također vrlo samo još već može mogu mora moraju što tko gdje kada tu tamo",
    "cs": "má mají měl měla měli mít a i ale nebo jestli že který která které kterou jako je jsou "
    "byl byla bylo byli byly být bude budou by si ho ji jej jich mu jí jim on ona ono oni my vy já "
    "ty svůj svá své jeho její jejich ten ta to tento tato toto také velmi jen ještě už může mohou "
    "musí co kdo kde kdy tam tu",
    "sk": "má majú mal mala mali mať a i ale alebo ak že ktorý ktorá ktoré ktorú ako je sú bol "
    "bola bolo boli byť bude budú by si sa ho ju ich mu jej im on ona ono oni my vy ja ty svoj "
    "svoja svoje jeho jej ten tá to tento táto toto tiež veľmi len ešte už môže môžu musí čo kto "
    "kde kedy tam tu",
    "pl": "ma mają miał miała mieli mieć i a ale lub albo jeśli że który która które którą jako "
    "jak jest są był była było byli były być będzie będą by się go ją je ich mu jej im on ona ono "
    "oni my wy ja ty swój swoja swoje jego ten ta to te tym tego też także bardzo tylko jeszcze "
    "już może mogą musi co kto gdzie kiedy tam tu",
    "fi": "ja tai mutta jos että joka jotka on ovat oli olivat olla ollut ollaan hän he se ne me "
    "te minä sinä sen niiden hänen tämä tuo nämä kuin myös hyvin vain vielä jo voi voivat pitää "
    "mitä kuka missä milloin",
    "hu": "a az egy és vagy de ha hogy aki amely ami mint van vannak volt voltak lesz ez ezt azt ő "
    "ők mi ti én te is nagyon csak még már lehet kell mit ki hol mikor",
    "tr": "bir ve veya ama eğer ki bu şu o onlar biz siz ben sen ile için gibi daha çok da de mi "
    "ne kim nerede olan olarak",
}

FUNCTION_WORDS: Final[Mapping[str, frozenset[str]]] = {"en": frozenset(_ENGLISH.split())} | {
    language: frozenset(f"{words} {_PREPOSITIONS.get(language, '')}".split())
    for language, words in _OTHER.items()
}
"""Words that carry grammar rather than content, by language."""

PREPOSITIONS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split()) for language, words in _PREPOSITIONS.items()
}
"""Words after which a name says where, when, by whom or for whom, by language."""

NEGATORS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "not no never none nobody nothing neither nor without cannot unable failed fails "
        "refused refuses denied denies lacks lacked hardly zero",
        "de": "nicht kein keine keinen keinem keiner keines nie niemals niemand niemanden "
        "niemandem nichts nirgends weder ohne nein kaum",
        "nl": "niet geen nooit niemand niets nergens noch zonder nee nauwelijks",
        "da": "ikke ingen intet aldrig uden hverken ingenting nej næppe",
        "nb": "ikke ingen intet aldri uten verken ingenting nei neppe",
        "sv": "inte ingen inget inga aldrig utan varken ingenting ej icke nej knappast",
        "fr": "pas jamais aucun aucune rien sans ni personne nul nulle guère non",
        "es": "no nunca jamás ningún ninguna ninguno nadie nada sin ni tampoco",
        "it": "non mai nessun nessuno nessuna niente nulla senza né no neanche nemmeno",
        "pt": "não nunca jamais nenhum nenhuma ninguém nada sem nem tampouco",
        "ca": "no mai cap ningú res sense ni tampoc",
        "ro": "nu niciodată nicio niciun niciunul nimeni nimic fără nici",
        "sl": "ne ni nisem nisi nista nisva nismo niste niso nima nimam nimaš nimamo nimate nimata "
        "nimajo noče nočem nočejo nočemo nikoli nihče nič noben nobena nobeno nobene nobenega "
        "nobenemu nobenem nobenim nobenih nobeni nikjer nikomur nikogar brez niti",
        "hr": "ne nije nisam nisi nismo niste nisu nema nemam nemaš nemamo nemate nemaju neće "
        "nećemo nikada nikad nitko niko ništa nijedan nijedna nijedno nijednog nikakav nikakva "
        "nikakvo nigdje nikoga bez niti",
        "cs": "ne není nejsou nebyl nebyla nebylo nebyli nebyly nemá nemají nemůže nemohou nesmí "
        "nikdy nikdo nic žádný žádná žádné žádného žádnou nikde bez ani",
        "sk": "nie nebol nebola nebolo neboli nemá nemajú nemôže nemôžu nesmie nikdy nikto nič "
        "žiadny žiadna žiadne žiadneho žiadnu nikde bez ani",
        "pl": "nie nigdy nikt nic żaden żadna żadne żadnego żadnej nigdzie bez ani",
        "fi": "ei eivät en emme et ette eikä ilman koskaan",
        "hu": "nem nincs nincsenek ne soha sem nélkül",
        "tr": "değil yok hiç hiçbir asla",
    }.items()
}
"""Words that deny what stands beside them, by language."""

NUMBER_WORDS: Final[Mapping[str, Mapping[str, str]]] = {
    language: {
        word: str(value)
        for value, words in enumerate(forms.split(), 2)
        for word in words.split("/")
    }
    for language, forms in {
        "de": "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
        "nl": "twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "da": "to tre fire fem seks syv otte ni ti elleve tolv",
        "nb": "to tre fire fem seks sju/syv åtte ni ti elleve tolv",
        "sv": "två tre fyra fem sex sju åtta nio tio elva tolv",
        "fr": "deux trois quatre cinq six sept huit neuf dix onze douze",
        "es": "dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "it": "due tre quattro cinque sei sette otto nove dieci undici dodici",
        "pt": "dois/duas três quatro cinco seis sete oito nove dez onze doze",
        "sl": "dva/dve/dveh/dvema tri/trije/treh/trem/tremi štiri/štirje/štirih/štirim/štirimi "
        "pet/petih/petim/petimi šest/šestih/šestim/šestimi sedem/sedmih/sedmim/sedmimi "
        "osem/osmih/osmim/osmimi devet/devetih/devetim/devetimi deset/desetih/desetim/desetimi "
        "enajst/enajstih/enajstim dvanajst/dvanajstih/dvanajstim",
        "hr": "dva/dvije tri četiri pet šest sedam osam devet deset jedanaest dvanaest",
        "cs": "dva/dvě tři čtyři/čtyřech pět/pěti šest/šesti sedm/sedmi osm/osmi devět/devíti "
        "deset/deseti jedenáct dvanáct",
        "pl": "dwa/dwie trzy cztery pięć/pięciu sześć/sześciu siedem/siedmiu osiem/ośmiu "
        "dziewięć/dziewięciu dziesięć/dziesięciu jedenaście dwanaście",
    }.items()
}
"""The digits of a number word from two to twelve, by language; English has its own in ``words``."""


def without_carons(word: str) -> str:
    """Returns a word as many people write it: ``ce`` for ``če``."""
    return word.translate(_PLAIN)


_PLAIN: Final = str.maketrans("čšžćđ", "cszcd")
