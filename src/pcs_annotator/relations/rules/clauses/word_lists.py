"""Words that decide whether a clause may change its voice."""

from __future__ import annotations

from pcs_annotator.relations.rules.words import word_set

# Verbs without a passive, with an odd one, or with one that means something else.
NO_PASSIVE = word_set(
    """
    have resemble cost fit lack become want weigh equal suit contain mean let get say do leave enter feel think believe
    hope wish total turn go come be seem appear remain stay belong possess comprise boast mind escape flee exit quit
    near top last number span date dare continue keep ramble wonder guess suppose pretend care concern befit walk jump
    rise fall shed slip plunge surge soar tumble decline edge inch slide retreat differ miss stand sit lie live die
    sleep talk laugh cry smile nod shrug behave marry divorce wed entail involve include constitute cease afford risk
    practice vow swear agree decide intend aim undergo owe average meet claim threaten set spend look smell taste sound
    revolve hurtle fold sink consider help begin stretch vote put draw see take bring retire resign graduate join
    survive paint know prove work
    """
)

# Idioms of verb and object, in which the object cannot be the subject of a passive.
IDIOMS = word_set(
    """
    save:money slam:door close:door open:door hit:spot hit:store hit:shelf hit:market pull:punch take:place take:part
    take:time take:effect take:care take:advantage take:office take:turn take:aim take:note take:heart take:shape
    take:root take:cover take:hold take:pride take:issue take:exception take:stage take:lead take:seat take:break
    take:look take:hit take:charge take:refuge take:it take:toll take:side take:stand take:pain take:day take:week
    take:month take:year take:hour take:minute take:decade take:while take:life take:chance make:sense make:way
    make:love make:history make:room make:do make:money make:friend make:fun make:peace make:debut make:progress
    make:difference make:sure make:appearance make:headline make:case make:point make:it make:face make:mistake
    make:stop make:trip make:return make:start make:living make:use make:deal make:impact play:role play:part play:game
    play:host play:ball play:havoc play:fool pay:attention pay:visit pay:heed pay:respect lose:hope lose:faith
    lose:weight lose:ground lose:interest lose:sight lose:touch give:birth give:way give:rise give:thanks give:pause
    give:chase give:it give:damn catch:fire catch:sight catch:eye catch:breath shake:hand shake:head raise:eyebrow
    hold:hand hold:breath hold:water hold:sway hold:office hold:lead bear:witness bear:fruit bear:resemblance bear:brunt
    bear:mind keep:pace keep:track keep:mind keep:promise change:mind change:course change:hand set:foot set:sail
    set:fire set:tone set:stage set:eye set:sight draw:near draw:fire lend:credence lend:hand serve:time serve:purpose
    serve:term stand:trial stand:ground face:prison face:life see:red see:light see:rise see:fall see:increase
    see:growth see:action see:day see:year beg:question break:ground break:news break:silence break:rank do:damage
    do:harm hit:wall hit:road hit:nail hit:high hit:low hit:streets hit:bottom run:risk run:amok fall:victim gain:ground
    gain:traction gain:momentum gain:access gather:steam wage:war join:hand join:force meet:need call:it call:shot
    cross:line cross:mind push:envelope reach:high reach:low speak:truth tell:truth turn:head turn:page show:sign
    show:promise show:interest show:way stay:course cut:tie have:say cover:ground leave:mark leave:door bring:end
    know:thing know:score cut:deal strike:deal strike:tone strike:chord strike:balance bid:farewell bite:bullet
    kick:bucket sound:alarm follow:suit hurt:feeling wipe:floor open:fire wreak:havoc play:politic play:golf find:favor
    poke:fun send:shiver hold:gallon throw:fit carry:faith drop:ball speak:volume give:hoot give:shit lose:mind
    lose:control lose:temper need:help try:luck nail:it kill:it crush:it rock:it hit:problem drop:point add:insult
    """
)

# Verbs whose active means something other than their passive.
NO_ACTIVE = word_set("belove bear marry suppose base rumor repute mean locate situate divide separate")

# Verbs with an object and an infinitive of which the object is the subject.
CONTROL = word_set(
    "ask urge order force allow tell invite encourage warn advise persuade instruct require permit compel convince "
    "authorize enable pressure push direct command beg implore press nominate"
)

# Verbs whose passive is common only with a particle or one of these objects.
LIGHT = {
    "take": word_set("action step measure decision photo photograph picture approach title test oath bribe"),
    "make": word_set(
        """
        announcement arrest allegation argument attempt change claim comment comparison contribution decision discovery
        documentary donation film movie observation offer payment product proposal recommendation remark request
        statement threat move bid investment purchase assertion accusation suggestion mistake ad video car list history
        progress error call
        """
    ),
    "play": word_set("role part song record music note video clip tape anthem"),
    "draw": word_set("map conclusion line comparison"),
    "see": word_set("man woman suspect gunman video footage car vehicle film movie show"),
    "bring": word_set("case charge lawsuit suit action"),
    "do": word_set("work research study job"),
}
LIGHT_PARTICLES = word_set("over up down out away forward back aside off")
INDEFINITE = word_set(
    "anyone anybody anything someone somebody something those nothing nobody none such more less tho bro dude lol"
)

QUANTIFIERS = word_set(
    "all every each both many most much some several few fewer little less no none nobody neither nothing any anyone "
    "anybody anything everyone everybody everything someone somebody something only either half"
)
NEGATIVE_WORDS = word_set("no none nobody neither nothing few little nor hardly scarcely barely")
POLARITY_WORDS = word_set("any anyone anybody anything either ever much many yet all every everyone both")
# Adverbs whose position decides what they refer to, or that cannot come before a verb.
MOVING_ADVERBS = word_set(
    """
    only even merely solely simply alone too so very well best better more most much less least willingly happily gladly
    proudly reluctantly gleefully eagerly how however almost nearly hardly barely scarcely rather quite not either
    neither nor far badly as worse worst instead there here together
    """
)

REFLEXIVES = word_set("myself yourself himself herself itself ourselves yourselves themselves oneself")
POSSESSIVES = word_set("his her its their my our your own one's whose")
# Their passive needs "by it", "by you", "by that", which is correct but rarely written.
WEAK_SUBJECTS = word_set("it you one i there this that these those which who what whom whoever whatever me")

MEASURES = word_set(
    """
    percent percentage point points cents cent dollars euros pounds yen pct miles feet meters metres kilometers inches
    yards times years year months month weeks week days day hours hour minutes minute seconds bit lot way ways mph
    million billion trillion half third quarter today tomorrow yesterday time monday tuesday wednesday thursday friday
    saturday sunday tonight morning afternoon evening night
    """
)
TIMES = word_set(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
    october november december jan. feb. aug. sept. oct. nov. dec. today yesterday tonight tomorrow week month year years
    months weeks days day morning afternoon evening night weekend hours hour minutes decade decades century time
    midnight noon spring summer fall autumn winter quarter end moment deadline
    """
)
# Nouns after "by" that say how, not who.
MANNERS = word_set(
    """
    rules mistake hand phone telephone email e-mail mail law default accident nature force train car bus plane boat air
    sea land road rail foot means way surprise virtue chance design definition name birth example contrast comparison
    degree degrees extension text letter fax radio satellite proxy margin margins vote consensus acclamation order
    factor amount appointment invitation age size type category region country state county gender race decree
    referendum fire lot inches half third percent percentage point points times side sides river lake beach shore gate
    fireplace
    """
)
# Verbs that take "for" themselves.
_FOR = word_set(
    """
    thank blame criticize praise sue slam charge condemn pay blast fire use fault attack mock arrest hail salute reward
    punish honor chastise rebuke scold admonish ridicule denounce fine jail prosecute indict nominate endorse target ban
    prepare ask laud commend applaud berate rip lambaste shame bash beat suspend reserve
    """
)
_AS = word_set(
    "describe see treat regard view portray cast label use name know characterize identify perceive depict paint slam "
    "denounce condemn dismiss blast praise hail deride decry recognize reject brand cite succeed"
)
_WITH = word_set(
    "charge provide present supply replace fill equip compare credit hit strike stab threaten confront associate "
    "equate discuss share sign exchange negotiate"
)
_FROM = word_set(
    "ban bar prevent remove exclude block stop keep protect jolt rouse wake free release expel pull exempt extract "
    "demand receive buy borrow obtain steal withdraw win collect raise take get"
)
# Verbs that take a preposition themselves, whatever noun comes before it.
VERBS_WITH = {
    "of": word_set("accuse convict rob deprive remind warn cure suspect acquit inform convince assure notify"),
    "for": _FOR,
    "on": word_set("spend impose waste focus"),
    "over": word_set("slam blast criticize sue attack question mock rip condemn probe grill accuse"),
    "as": _AS,
    "with": _WITH,
    "from": _FROM,
}
WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday yesterday today")
# Verbs with a purpose, which an infinitive after the object may name.
PURPOSEFUL = word_set("use launch file develop create build introduce form establish pool take")
# Verbs of informing a person.
INFORMING = word_set(
    "tell inform remind warn convince assure persuade notify advise promise reassure caution show teach"
)
# Verbs of transfer to a person or place.
TRANSFER = word_set(
    """
    send give launch supply alert deploy move deliver bring take ship offer provide donate return sell transfer hand
    grant award present add sentence apply attach link compare assign submit pay lend carry fly drive refer tie pass
    extend attribute
    """
)
# Verbs for the result of a clause.
RESULTS = word_set("kill injure wound destroy damage leave force cause send trigger prompt spark disrupt")
# Verbs of saying.
TELLING = word_set(
    "say add cite argue tell call claim warn accuse describe urge note vow insist ask promise pledge report announce "
    "write explain declare state suggest admit acknowledge conclude confirm complain assert predict according"
)
# Verbs of thinking and finding out, which may be followed by a clause without "that".
THINKING = word_set(
    "think believe know hope fear mean show find feel see learn hear guess suppose bet realize notice prove indicate "
    "reveal discover remember understand ensure worry doubt wonder"
)
# Nouns that take "to" themselves.
NOUNS_WITH_TO = word_set(
    """
    access answer alternative approach attention aid barrier challenge change changes commitment cuts damage end
    exception key law limits obstacle opposition path reaction reference references resistance response return right
    rights road route secret solution support term threat threats tie ties visit visits way witness
    """
)
