"""The small words that give a language away; written down for `language.py`, which counts them."""

from __future__ import annotations

_EN = """the a an and or but nor so yet of in on at to for from with without by about against between among into
onto through during before after above below over under up down out off than then is are was were be been being am
has have had having do does did done doing will would shall should can could may might must not no never none
nothing i me my mine myself you your yours he him his himself she her hers it its itself we us our ours they them
their theirs themselves this that these those there here who whom whose which what when where why how if because
while since until although though as such both each every either neither any some all most more less much many few
other another same own only just also too very even still again ever always often now today yesterday tomorrow
tonight new first last next one two three says said say get gets got go goes going make makes made take takes see
want know think like don't doesn't didn't isn't aren't wasn't won't can't couldn't wouldn't shouldn't haven't hasn't
it's i'm i've i'll i'd you're he's she's we're they're that's there's let's what's people man men woman women year
years day days week time good great bad best big old right back way thing things really well please thanks thank
love lol omg im dont cant gonna wanna u ur yeah yes okay ok news report reports police house white found finds
despite amid via vs per around across behind beyond within reveals revealed calls called
breaking watch stars help near second"""

_ES = """el la los las un una unos unas y e o u pero ni que de del al a en con sin por para sobre entre hasta
desde hacia es son era eran fue fueron ser sido está están estaba estoy estar hay ha han he había no sí si se me te
le les lo nos mi mis tu tus su sus yo él ella ellos ellas usted ustedes nosotros este esta estos estas ese esa eso
esto muy más mas menos también ya cuando como cómo donde dónde quien quién porque qué cual todo toda todos todas
otro otra nada algo siempre nunca hoy ayer mañana ahora aquí bien mejor tiene tienen tengo puede pueden hacer hace
gracias bueno buenos días años día dos después antes contra según tras gobierno nuevo nueva solo sólo así vida gran
primera primer"""

_FR = """le la les l un une des du de d au aux et ou mais ni que qu qui quoi dont où ce cet cette ces c est sont
était étaient sera être été a ont avait avoir ai as avez avons il elle ils elles on nous vous je j tu me m te t se s
y en ne n pas plus moins très trop aussi bien pour par sur sous dans avec sans chez entre vers depuis pendant avant
après contre comme si son sa ses mon ma mes ton ta tes notre nos votre vos leur leurs tout tous toute toutes autre
autres même rien jamais toujours aujourd hui demain hier ici là quand comment pourquoi parce fait faire peut faut ça
cela merci bonjour suis deux ans jour selon nouveau nouvelle encore déjà"""

_DE = """der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war
waren wird werden wurde wurden worden bin bist sein seine seinen ihr ihre ihren ihm ihn ich du er sie es wir uns
euch mich mir dich dir sich mein meine dein deine unser in im an am auf aus bei beim bis durch für gegen mit nach
ohne über um unter von vom vor zu zum zur zwischen als wie wenn dass daß weil ob auch noch nur schon sehr mehr immer
wieder hier da dann jetzt heute gestern morgen was wer wo warum haben hat hatte habe kann können muss soll will man
so doch mal gut ja nein viel alle jahre jahr neue neuer neuen danke bitte nichts etwas diese dieser dieses"""

_PT = """o a os as um uma uns umas e ou mas nem que de do da dos das no na nos nas ao aos à às em com sem por pelo
pela para pra sobre entre até desde é são era eram foi foram ser sido está estão estava estou estar há tem têm tinha
ter não sim se me te lhe eu tu você vocês ele ela eles elas nós meu minha teu tua seu sua seus suas este esta isto
esse essa isso aquele muito muita mais menos também já quando como onde quem porque qual tudo todo toda todos todas
outro outra nada algo sempre nunca hoje ontem amanhã agora aqui bem melhor pode podem fazer faz gostei adorei
obrigado obrigada bom boa dia anos dois depois antes contra governo novo nova só assim vida português jogo seria
estivesse"""

_IT = """il lo la i gli le l un uno una e ed o ma né che chi di del dello della dei degli delle a al allo alla ai
agli alle da dal dalla dai in nel nella nei nelle con su sul sulla per tra fra è sono era erano fu essere stato
stata ha hanno ho hai abbiamo aveva avere non sì si mi ti ci vi ne se me te io tu lui lei noi voi loro mio mia tuo
tua suo sua nostro questo questa questi queste quello quella molto più meno anche già quando come dove perché cosa
quale tutto tutti tutta altro altra niente nulla sempre mai oggi ieri domani adesso ora qui bene meglio può fare fa
grazie buon buongiorno giorno anni due dopo prima contro governo nuovo nuova solo così vita sta stanno"""

_NL = """de het een en of maar noch niet geen van in op aan bij met naar om onder over uit voor door tegen tot
zonder tussen is zijn was waren wordt worden werd werden geworden ben bent heeft hebben heb had hadden ik je jij u
hij zij ze wij we jullie hun hen haar hem mij me jou mijn jouw uw ons onze dit dat deze die er hier daar wat wie
waar wanneer waarom hoe als dan omdat want ook nog al wel zeer heel meer minder veel weinig alle alles iets niets
altijd nooit nu vandaag gisteren morgen zal zullen zou kan kunnen moet moeten wil gaat gaan maakt doen goed nieuwe
jaar dag twee bedankt dank na"""

_SV = """och att det den de en ett är var varit som på av för med till om inte ingen inga från men eller när där
här så jag du han hon vi ni dem mig dig sig oss er min mitt mina din ditt sin sitt sina deras vår har hade ha kan
kunde ska skulle vill måste blir blev vara bli över under efter innan mellan mot utan vid hos genom alla allt något
inget mycket mer mest också bara redan nu idag igår imorgon vad vem varför hur vilken denna detta dessa år dag två
nya bra tack ja nej"""

_DA = """og at det den de en et er var været som på af for med til om ikke ingen fra men eller når hvor her så jeg
du han hun vi dem mig dig sig os min mit mine din dit sin sit deres vores har havde have kan kunne skal skulle vil
må blir bliver ble blev være bli efter før mellem mellom mod mot uten uden ved hos gjennom gennem alle alt noget noe
meget mye mer mere også bare nå nu dag hva hvad hvem hvorfor hvordan denne dette disse år ikkje eit ein takk tak ja
nei nej"""

_PL = """i a w z na do od po o u za ze we się nie tak to jest są był była było być będzie jak co kto że żeby czy
ale lub oraz dla przez przy pod nad przed bez ten ta te tego tej tym tych jego jej ich ja ty on ona ono my wy oni
mnie mi cię ci go mu mój moja twój swój już tylko też także bardzo więcej gdzie kiedy dlaczego bo który która które
których dwa dzień dni rok lat dziś wczoraj jutro teraz tutaj tu nic coś wszystko wszyscy może mam ma mają dobrze
dziękuję proszę nowy nowa"""

_CS = """a i v ve z ze na do od po o u za s se si že to je jsou byl byla bylo být jak co kdo ale nebo pro přes při
pod nad před bez ten ta tento této jeho její jejich já ty on ona my vy oni mě mi už jen také velmi více kde kdy proč
protože který která které dva den dny rok let dnes včera teď tady nic něco všechno může mám má není"""

_TR = """ve bir bu şu o da de ile için gibi kadar çok daha en değil var yok mi mı mu mü ne kim nasıl neden niçin
nerede ben sen biz siz onlar beni seni bana sana onu onun benim senin bizim sonra önce ama fakat ancak çünkü eğer
her hiç hep şey olan olarak oldu olur olduğu etti eden ediyor iyi güzel yeni büyük gün yıl bugün dün yarın şimdi
artık bile ise ki ya teşekkürler tarafından göre iki olacak istiyorum bence"""

_ID = """yang dan di ke dari ini itu dengan untuk tidak akan ada adalah pada saya aku kamu anda dia kami kita
mereka juga sudah telah bisa dapat harus karena atau tetapi tapi jika kalau oleh dalam sebagai lebih sangat banyak
semua orang lagi belum masih hanya saja apa siapa kapan mana bagaimana kenapa gak ga nggak enggak tak yg dgn utk
udah banget nih sih dong deh lah awak boleh nak dah hari tahun baru besar baik terima kasih selamat pagi seorang
sebuah para seperti bagi kepada hal"""

_TL = """ang ng mga sa na ay at ako ikaw siya kami tayo sila ko mo niya namin natin nila hindi wala may mayroon
ito iyan iyon dito doon kung dahil pero para lang din rin po opo ba naman talaga kasi ngayon bukas kahapon maganda
salamat ka"""

_RO = """și si în de la pe cu din pentru nu este sunt era fost fi a au am ai că să care ce cine cum unde când dar
sau prin după fără între un o unei unui lui ei eu tu el ea noi voi mai foarte tot toate doar acum azi ieri mâine
bine mulțumesc"""

_FI = """ja on ei se että en et hän he me te olen olet oli ovat olla mutta tai kun niin kuin jos vain myös nyt jo
vielä hyvin mikä mitä kuka missä miksi tämä nämä joka jotka minä sinä minun sinun hänen kanssa jälkeen ennen kaikki
mukaan vuonna"""

_HU = """a az és egy nem is hogy van volt lesz de ha csak már még meg ez azt ezt mint vagy mert nagyon itt ott ki
mi te ő én mit aki ami amely után előtt között szerint minden jó új köszönöm"""

_VI = """và của là có không được cho trong một những các người này đó với để khi đã sẽ đang rất cũng nhưng tôi bạn
anh em chúng ta họ nó vì nếu thì mà về từ đến ở năm ngày"""

FUNCTION_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": _EN,
        "es": _ES,
        "fr": _FR,
        "de": _DE,
        "pt": _PT,
        "it": _IT,
        "nl": _NL,
        "sv": _SV,
        "da": _DA,
        "pl": _PL,
        "cs": _CS,
        "tr": _TR,
        "id": _ID,
        "tl": _TL,
        "ro": _RO,
        "fi": _FI,
        "hu": _HU,
        "vi": _VI,
    }.items()
}
