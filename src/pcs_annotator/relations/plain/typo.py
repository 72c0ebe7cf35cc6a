"""A few typos, as a hurried person makes them."""

from __future__ import annotations

import re
from hashlib import blake2b

from pcs_annotator.core.variant import Expectation
from pcs_annotator.relations.facts import word_set
from pcs_annotator.relations.language import NO_TYPOS
from pcs_annotator.relations.plain.kept import kept_as_they_are
from pcs_annotator.relations.rule import NotApplicable, Replacement, splice, text_rule

WORDS_PER_TYPO = 8
MOST_TYPOS = 8
_FEWEST_WORDS = 3
# Shorter words stay as they are, and short ones are misspelt only if there are no long ones.
_SHORTEST, _LONG = 4, 6

# Alphabets in which a letter is one character; elsewhere two swapped characters may be no text at all.
_LETTER = "a-zà-öø-ÿ\u0101-\u0587\u05d0-\u05ea\u0620-\u064a\u0671-\u06d3\u10d0-\u10fa\u1e01-\u1fff"
_ANY_LETTER = re.compile(rf"[{_LETTER}]", re.IGNORECASE)
_WORD = re.compile(r"\w+(?:['’]\w+)*")
# Names have capitals, and a letter that is repeated on purpose ("sooo") hides a typo.
_MAY_CHANGE = re.compile(rf"(?!.*(.)\1\1)[{_LETTER}]{{{_SHORTEST},}}")
_NEGATIONS = word_set(
    "never none nothing neither nowhere nobody without hardly barely scarcely cannot nope dont cant wont isnt arent "
    "wasnt nicht niemals kein keine keinen keinem keiner nichts niemand ohne weder nunca nada nadie ningún ninguno "
    "ninguna jamás tampoco ninguém nenhum nenhuma jamais rien personne aucun aucune sans niente nulla nessuno nessuna "
    "senza niet nooit geen niets zonder inte aldrig ingen inget inga ingenting utan nigdy nikt żaden żadna değil "
    "hiçbir никогда ничего никто нельзя нисколько ніколи нічого ніхто немає nikdy nikdo nelze ikke aldri uden uten "
    "ليست ليسوا بدون ποτέ τίποτα κανείς χωρίς"
)
# Words that a typo would make of other words: "scared" must not become "sacred" and, in German, "dienen" not "deinen".
_OTHER_WORDS = word_set(
    "alarmed alarming alarms aliens alines allying ample angels angles barely barked barking barley barns beats "
    "belated belted bests betas bleated blots bolts bowls braked braking brans brunt bugle bugles bulge bulges burnt "
    "calms carped carping carps carted carting carts carve carved carves carving carvings casual casually causal "
    "causally clams clods clots coals codes coeds colas colds colts compiled compiles complaint compliant complied "
    "complies composted composting concerted concreted confer confers corner corners cornet corny corps corpses craps "
    "crated crating crave craved craves craving cravings creeps crepes crony crops crust curst dairies dairy debts "
    "defected defecting defection dented denting denture dentures diaries diary direr direst dissed dissing drier "
    "driest facts faint farmed farmer farmers farming farts feats fetch fetches field fiend filed files fined fired "
    "fires flied flies flying forbear forge forged forger forgers forges forging forgo forgoing forgone forms forth "
    "framed framer framers framing fried fries froth frying gambled gambling garbs garter garters gentle gilded "
    "gilding girds glided gliding goals grabs grater graters grids gusty gutsy handcraft hardness harms humanly hymns "
    "implement implements indicted indicting infarction infarctions infraction infractions insulted insulting lairs "
    "liars liens lightning lines lions loins manger mangers mantels mantles marital martial meets metes minted minting "
    "minuets minutes missed misses missing moons navies ordnance outlying overlying parted parties parting party "
    "patios perfect perfects piled piles plants plied plies pluses plying poplar posted posting posts predicted "
    "predicting prediction predictions predictive prefect prefects prying pulses rails realty rectal relying replying "
    "rests retired retires retried retries revved revving rogue rogues rotted rotting rouge rouges runway runways "
    "sacred salted salting salts salvation salve salved satin satins scared shred shrieks shrikes signed signer "
    "signers signing signs silts silver silvers singed singer singers singing sings sites slated slating slats slave "
    "slaved slaves slaving slits sliver slivers soles spilt split spring spying stain stained staining stains sties "
    "string surly taxiing tents thickest throned through tiers tilted tilting timbers tired tires titled titling toady "
    "today torts torus tours trail trailed trailing trails traps trial trialed trials tried tries trios trots "
    "underlying unformed unite united unites untie untied unties waiver warps wavier wholly wield wraps bleiben "
    "blieben bleibt bliebt deine deinen deiner diene dienen diener leiben lieben leibt liebt leiden lieden leihen "
    "liehen meiden mieden preisen priesen reiben rieben reiten rieten scheiden schieden schreiben schrieben schreibt "
    "schriebt steigen stiegen steigt stiegt treiben trieben verleihen verliehen verzeihen verziehen weisen wiesen "
    "zeihen ziehen zeiht zieht"
)
_VOWELS = frozenset("aeiou")
_NEVER_DOUBLED = frozenset("ahijkquvwxy")


@text_rule("rule:typo", version="2", expects=Expectation(shortest=0.85, longest=1.15, misspells=True), english=False)
def typo(text: str) -> str | NotApplicable:
    """Return the text with one typo in about eight words: two letters swapped, one missing, or one doubled.

    Only words of four and more letters without a capital are misspelt, the longer ones first, and never so that they
    become another word.

    >>> typo("The museum will reopen its northern wing after the summer.")
    'The museum will reoepn its northern wing after the summer.'
    """
    kept = kept_as_they_are(text)
    found = [word for word in _WORD.finditer(text) if not kept[word.start()]]
    if found and not _ANY_LETTER.search(text):
        return NotApplicable(NO_TYPOS)
    if len(found) < _FEWEST_WORDS:
        return NotApplicable("too short")
    seed = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    usable = [word for word in found if _MAY_CHANGE.fullmatch(word[0]) and word[0] not in _NEGATIONS]
    usable.sort(key=lambda word: (-min(len(word[0]), _LONG), _hash(seed, word.start())))
    made: list[Replacement] = []
    for word in usable:
        typed = _misspelt(word[0], _hash(seed, -word.start()))
        if typed is not None:
            made.append(Replacement(word.start(), word.end(), typed))
    wanted = max(1, round(len(found) / WORDS_PER_TYPO))
    return splice(text, made[: min(wanted, MOST_TYPOS)]) if made else NotApplicable("no word to misspell")


def _misspelt(word: str, seed: bytes) -> str | None:
    """Return the word with a typo that makes no other word of it; None if there is no such typo."""
    inner = range(1, len(word) - 2)
    typos = {word[:at] + word[at] + word[at:] for at in inner if word[at] in _NEVER_DOUBLED or not word[at].isascii()}
    if len(word) > _SHORTEST:
        typos |= {word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in inner if word[at] != word[at + 1]}
    if len(word) >= _LONG:
        typos |= {word[:at] + word[at + 1 :] for at in inner[1:] if _is_vowel_between_consonants(word, at)}
    return min(typos - _OTHER_WORDS, key=lambda typed: _hash(seed, typed), default=None)


def _is_vowel_between_consonants(word: str, at: int) -> bool:
    return word[at] in _VOWELS and _VOWELS.isdisjoint((word[at - 1], word[at + 1]))


def _hash(seed: bytes, salt: object) -> bytes:
    return blake2b(str(salt).encode(), digest_size=8, key=seed).digest()
