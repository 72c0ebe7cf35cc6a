"""Words that turn a statement into its opposite."""

from __future__ import annotations

from pcs_annotator.relations.rules.words import word_set

_INFORMAL = (
    "dont doesnt didnt cant couldnt wont wouldnt shouldnt isnt wasnt arent werent hasnt havent hadnt mustnt aint "
    "dnt dosent dosnt nevah neva nvr nothin nuthin nowt"
)

# Grammar: whatever clause holds one of these says the opposite of the clause without it.
PLAIN = word_set(
    "not cannot never no none nobody nothing nowhere neither nor without hardly barely scarcely nope noone"
) | word_set(_INFORMAL)

_VERBS = (
    "fail deny refuse lack reject prevent avoid forbid prohibit ban decline dismiss oppose doubt dispute refute "
    "contradict neglect omit miss cease stop quit lose abstain refrain exclude"
)
_VERB_FORMS = (
    "fails failed failing denies denied denying refuses refused refusing lacks lacked lacking rejects rejected "
    "rejecting prevents prevented preventing avoids avoided avoiding forbids forbade forbidden forbidding prohibits "
    "prohibited prohibiting bans banned banning declines declined declining dismisses dismissed dismissing opposes "
    "opposed opposing doubts doubted doubting disputes disputed disputing refutes refuted refuting contradicts "
    "contradicted neglects neglected neglecting omits omitted omitting misses missed missing ceases ceased ceasing "
    "stops stopped stopping quits quitting loses lost losing abstains abstained refrains refrained refraining "
    "excludes excluded excluding"
)
_UN = (
    "able acceptable accurate acquainted afraid aided ambiguous armed attainable attractive authorized available "
    "avoidable aware bearable believable believably biased broken certain certainty changed checked clean clear "
    "comfortable comfortably common commonly conscious constitutional convinced convincing cooperative damaged decided "
    "defeated deniable deniably desirable disclosed disputed disturbed documented due easy employed employment equal "
    "ethical eventful excited expected expectedly explained fair fairly faithful familiar fashionable favorable "
    "finished fit foreseen forgettable forgivable fortunate fortunately founded friendly grateful happily happiness "
    "happy harmed healthy heard helpful hurt identified important impressed impressive informed injured insured "
    "intelligent intended intentional intentionally interested interesting invited justified justly kind kindly known "
    "lawful lawfully like likely limited lucky married mentioned moved natural naturally necessary necessarily needed "
    "noticed official officially paid patriotic pleasant popular precedented predictable prepared "
    "privileged productive professional profitable protected proven provoked published qualified "
    "questionable questioned ready real realistic reasonable reasonably related reliable remarkable repentant "
    "reported resolved responsive restricted safe satisfied satisfactory satisfying scathed seen selfish "
    "settled skilled solved sound specified stable steady substantiated successful successfully suitable supported "
    "sure surprised surprising surprisingly sustainable tested touched treated trained trustworthy truthful truthfully "
    "typical usable used usual usually vaccinated verified wanted warranted welcome willing willingly wise "
    "worried worthy written biased acknowledged affected affordable announced answered apologetic beaten beatable "
    "civil controlled covered democratic developed educated elected enthusiastic essential explored fulfilled "
    "funny imaginable imaginative inspired just loved manageable opposed patient pleased plugged popularity "
    "regulated released relenting restrained rewarding romantic ruly secured "
    "sophisticated stoppable subscribe tapped thinkable tidy true trusted"
)
_IN = (
    "ability accessible accuracy accurate action active adequate adequately admissible advisable applicable "
    "appropriate appropriately attentive capable coherent comparable compatible competence competent complete "
    "conclusive consistent convenient correct correctly credible curable decent decisive definite dependent direct "
    "directly discreet dispensable distinct edible effective effectively efficient eligible equality escapable "
    "evitable exact excusable exhaustible experienced explicable flexible formal frequent frequently human humane "
    "justice justices offensive operable opportune secure sensitive separable significant sincere sufficient "
    "sufficiently tolerable tolerance tolerant valid visible voluntary vulnerable"
)

_IM = (
    "balance balanced material mature mobile modest moral movable partial partially patience patient perfect "
    "perfectly permissible personal polite possible possibly practical precise probable proper properly prudent "
    "pure"
)
_IL = "legal legally legible legitimate legitimately liberal literate logical"
_IR = (
    "rational recoverable reconcilable redeemable refutable regular relevant replaceable resistible responsible "
    "responsibly reversible revocable"
)
_DIS = (
    "advantage advantaged affected agree agrees agreed agreeing agreement agreements allow allowed appear appeared "
    "appears appoint appointed appointing appointment approval approve approved approves approving arm armed avow "
    "believe belief believed comfort connect connected content continue continued courage couraged courages couraging "
    "courteous credit credited dain engage favor franchise honest honestly honesty honor inclined infect interested "
    "like liked likes liking loyal loyalty obedience obey obeyed orderly organized owned own please pleased prove "
    "proved proven qualified qualify regard regarded regarding regards repair respect respected respectful "
    "respectfully "
    "satisfaction satisfied similar trust trusted trusts united unity"
)
_NON = (
    "existent existence compliance compliant essential partisan payment sense violent white factual "
    "binding political religious starter"
)

PREFIXED = {
    prefix + base: base
    for prefix, bases in (("un", _UN), ("in", _IN), ("im", _IM), ("il", _IL), ("ir", _IR), ("dis", _DIS))
    for base in bases.split()
} | {f"non{base}": base for base in _NON.split()}
"""Words with a negative prefix and what is left without it; "uncle" and "important" are none of them."""

LEXICAL = (
    word_set(f"{_VERBS} {_VERB_FORMS}")
    | word_set("false untrue denial failure refusal absence absent doubtful incapable")
    | frozenset(PREFIXED)
)
"""Words that deny by their meaning; another word may say the same without being in any list."""

# Not in these pairs: best and worst. "Not the worst" is far from "the best".
_PAIRS = (
    "good bad|love hate|loved hated|loves hates|like hate|like dislike|happy sad|happy unhappy|beautiful "
    "ugly|pretty ugly|"
    "easy hard|easy difficult|hard simple|rich poor|strong weak|true false|right wrong|correct wrong|correct incorrect|"
    "win lose|wins loses|won lost|winning losing|increase decrease|increased decreased|increases decreases|rise fall|"
    "rose fell|rises falls|rising falling|gain loss|gains losses|up down|higher lower|high low|more less|more fewer|"
    "better worse|fast slow|faster slower|hot cold|open closed|opened closed|opens closes|start stop|starts stops|"
    "started stopped|begin end|begins ends|began ended|accept reject|accepts rejects|accepted rejected|allow ban|"
    "allowed banned|allow forbid|allowed forbidden|allowed prohibited|support oppose|supports opposes|"
    "supported opposed|safe dangerous|safe unsafe|guilty innocent|success failure|succeed fail|succeeded failed|"
    "succeeds fails|alive dead|single married|remember forget|remembered forgot|confirm deny|confirms denies|"
    "confirmed denied|admit deny|admits denies|admitted denied|always rarely|everyone few|many few|friend enemy|"
    "ally enemy|positive negative|healthy sick|healthy ill|smart stupid|smart dumb|clever stupid|clean dirty|"
    "cheap expensive|full empty|early late|before after|above below|inside outside|possible impossible|"
    "honest dishonest|fun boring|interesting boring|excited bored|love despise|adore hate|like detest|"
    "useful useless|works broken|working broken|agree disagree|agrees disagrees|agreed disagreed|best poorest|"
    "believe doubt|believes doubts|trust distrust|together apart|together separated|stay leave|stays leaves|"
    "stayed left|enough insufficient|awake asleep|present absent|ally opponent|hope despair|nice mean|nice nasty|"
    "awesome awful|amazing terrible|amazing awful|great terrible|great awful|great bad|great poor|excellent poor|"
    "excellent terrible|wonderful terrible|pleased displeased|pleased disappointed|praise criticize|praised criticized|"
    "praises criticizes|proud ashamed|calm angry|kind cruel|brave cowardly|buy sell|buys sells|bought sold|"
    "lend borrow|approve reject|approved rejected|approve disapprove|hired fired|hire fire"
)


def _opposites() -> dict[str, frozenset[str]]:
    table: dict[str, set[str]] = {}
    pairs = [pair.split() for pair in _PAIRS.split("|")] + [[word, base] for word, base in PREFIXED.items()]
    for one, other in pairs:
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    return {word: frozenset(others) for word, others in table.items()}


OPPOSITES = _opposites()
"""Words and those that say the opposite."""

FOREIGN = {
    "pt": word_set("não nao nunca nem nada ninguém nenhum nenhuma jamais sem"),
    "es": word_set("no nunca ni nada nadie ningún ninguno ninguna jamás tampoco sin"),
    "fr": word_set("pas jamais rien personne aucun aucune sans"),
    "de": word_set("nicht nie niemals kein keine keinen keinem keiner nichts niemand ohne weder"),
    "it": word_set("non mai niente nulla nessuno nessuna senza"),
    "nl": word_set("niet nooit geen niets niemand zonder"),
    "sv": word_set("inte aldrig ingen inget inga ingenting utan"),
    "pl": word_set("nie nigdy nic nikt żaden żadna bez"),
    "tr": word_set("değil yok hiç hiçbir"),
    "ru": word_set("не нет ни никогда ничего никто без нельзя нисколько"),
}
"""Words that deny, in languages other than English."""
