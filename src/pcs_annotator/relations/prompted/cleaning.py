"""Extracts the rewrite from a model's reply, without preamble, tags and comments.

What looks like chatter may be part of the text. So nothing that the text also has is removed: a text that begins
with "Sure," keeps it, and so does one with notes, lists or quotation marks.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NOTHING_WRITTEN = "the model wrote nothing"
CHANGED_NOTHING = "the rewrite changed nothing"
CUT_OFF = "the rewrite was cut off"
DOES_NOT_APPLY = "the model says it does not apply"
REFUSES = "the model refuses"

REMINDER = "Now write the new version of this text, and nothing else."
"""The line after the text in our prompts; models that repeat the prompt repeat it too."""


class Refused(NamedTuple):
    """Why a reply gives no rewrite.

    Attributes:
        reason: One of a few fixed sentences, so that reasons can be counted.
        fails: Whether the whole text fails; False if this window may stay as it is while others change.
        text: The incomplete rewrite, to show to a person.
    """

    reason: str
    fails: bool = True
    text: str | None = None


_I_CAN_NOT = r"(?:i\s(?:really\s)?(?:can['’]?t|can\s?not|won['’]?t|could\snot|couldn['’]?t|am\s(?:unable|not\sable))\b)"
_REFUSAL = re.compile(
    rf"""\W*(?:
        (?:i['’]?m|i\sam)\s(?:\w+\s){{0,2}}(?:sorry|afraid)\b.{{0,60}}?{_I_CAN_NOT}
      | (?:sorry|apologies|my\sapologies|i\sapologi[sz]e|unfortunately)\b.{{0,40}}?{_I_CAN_NOT}
      | (?:as|i['’]?m|i\sam)\s(?:just\s|only\s)?an?\s(?:ai\b|artificial\sintell|(?:large\s)?language\smodel)
      | (?:i['’]?m\s(?:unable|not\sable)|{_I_CAN_NOT})\s(?:to\s)?(?:\w+\s)?(?:help|assist|rewrite|comply|provide|fulfil
          |do\s(?:that|this)|create|generate|process|complete|engage|reproduce|translate)
      | please\s(?:provide|share|paste|enter)\s.{{0,30}}?\b(?:text|sentence|passage)\b
      | (?:there\s(?:is|was)|you\sprovided|i\s(?:see|found))\sno\s(?:text|sentence|passage)\b
    )""",
    re.X | re.I | re.S,
)
# The usual refusals in languages of the texts, which models answer in.
_FOREIGN_REFUSAL = re.compile(
    r"""\W*(?:
        (?:es\s)?tut\smir\sleid\b.{0,60}?\bkann\b | leider\skann\sich\b
      | lo\ssiento\b.{0,60}?\bno\spuedo\b | (?:je\ssuis\s)?désolée?\b.{0,60}?\bne\speux\spas\b
      | mi\sdispiace\b.{0,60}?\bnon\sposso\b | (?:desculpe|lamento|sinto\smuito)\b.{0,60}?\bnão\sposso\b
      | (?:het\sspijt\sme|sorry)\b.{0,60}?\bkan\sik\b | przykro\smi\b.{0,60}?\bnie\smogę\b
      | (?:извините|к\sсожалению)\b.{0,60}?\bне\sмогу\b | üzgünüm\b.{0,80}?(?:amam|emem|amıyorum|emiyorum)\b
      | (?:很?抱歉|对不起|對不起).{0,30}?(?:不能|无法|無法) | 申し訳.{0,40}?(?:できません|できかねます)
      | (?:عذر[اًا]*|آسف).{0,60}?لا\s(?:أستطيع|يمكنني)
    )""",
    re.X | re.I | re.S,
)
_NOT_APPLICABLE = re.compile(r"\W*(?:not[ _-]applicable|n/a)\s*(?:\Z|[.:;,!()\n*–—-])", re.I)
_SHOUTED = "NOT APPLICABLE"

_THINKING_TAG = re.compile(r"</?(?:think(?:ing)?|thought|reasoning)>")
_THINKING = re.compile(r"<(think(?:ing)?|thought|reasoning)>.*?(?:</\1>|\Z)", re.S)
_THOUGHT = re.compile(r"\A.*?</(?:think(?:ing)?|thought|reasoning)>", re.S)
_OUR_TAG = re.compile(r"</?text(?:-\d{1,12})?/?>")
_OUR_PAIR = re.compile(r"<(text(?:-\d{1,12})?)>(.*?)</\1>", re.S)
_WRAPPED = re.compile(r"<([A-Za-z][\w-]{0,30})>(.*)</\1>", re.S)
_ANSWER_PAIR = re.compile(r"<((?:rewr|reph|rev|rew|para)\w*|new[-_]?\w*|output|answer|result)>(.*?)</\1>", re.S | re.I)
_FENCE = re.compile(r"```(?:\w*[ \t]*\n)?(.*?)(?:```|\Z)", re.S)

_ORIGINAL = r"(?:original|source|input)(?:\s(?:text|sentence|version))?"
_TWO_VERSIONS = re.compile(
    rf"^\W{{0,8}}{_ORIGINAL}[*_]*:.*?^\W*(?:the\s)?(?:new|rewritten|rewrite|revised|output|result|answer|rephrased|paraphrased?"
    r"|passive|active|double negation|synonyms?|translation)\b[^:\n]{0,40}:[*_]*(?P<new>.*)\Z",
    re.S | re.M | re.I,
)
_AFTER_ECHO = re.compile(r"[\"”’]?\s*(?:→|->|=>|⇒|\n)\s*")

_HEAD = re.compile(r"[^:：]{1,200}(?::(?=[\s*_\"“„«]|\Z)|：)")
_WORD = re.compile(r"[^\W\d_]+")
_STRONG = re.compile(
    r"\b(?:re-?(?:writ\w*|wrote|word(?:ed|ing)|phras\w*)|paraphras\w*|(?:passive|active)\s(?:voice|form|version)"
    r"|double[\s-]negati\w*|synonyms?|translat\w*)\b",
    re.I,
)
# "Here is the rewritten text:" in other languages.
_FOREIGN_PREAMBLE = re.compile(
    r"\W*(?:(?:hier|voici|aquí|ecco|aqui|oto|вот|işte)\b.*\b(?:text|satz|fassung|version|texte|phrase|texto|versión|"
    r"versão|frase|testo|versione|tekst|zin|versie|wersja|zdanie|текст|версия|предложение|metin|cümle)\w*\b[^:：]{0,40}"
    r"|(?:umgeschrieben|umformuliert|reescrit|réécrit|riscritt|herschreven|переписанн)\w*\s\w+"
    r"|以下是.*|改写.*|重写.*|以下は.*|書き換え.*|(?:إليك|هذا هو النص).*)[*_]*\s?[:：]\Z",
    re.IGNORECASE,
)
_LABEL_WORDS = (
    "passive active formal informal expanded expansion version text sentence output answer response revised updated "
    "modified translation options versions alternatives ways"
)
_OTHER_CHATTER = (
    "sure certainly course okay here below following above given provided with form new final result the a an of in is "
    "s your this it german english voice register rewritten rewrite paraphrase synonym synonyms double negation "
    "words word meaning same another other are two three some few possible"
)
_LABELS = frozenset(_LABEL_WORDS.split())
_CHATTER = _LABELS | frozenset(_OTHER_CHATTER.split())
_YES = r"(?:sure(?: thing)?|certainly|of course|ok|okay|absolutely|no problem|got it)\b"
_OPENING = re.compile(rf"{_YES}!\s+", re.I)
_OPENING_WORDS = 30  # an exclamation in the text may be rewritten as another one
_SAYS_YES = re.compile(rf"\W*{_YES}", re.I)

_COMMENT = re.compile(
    rf"""\n\s{{0,20}}+[*_(\[\#-]{{0,4}}+\s?+(?:
        (?P<label>(?:notes?|explanations?|changes(?:\smade)?|comments?|rationale|reasoning|alternatively|{_ORIGINAL})
          (?:\*\*|__)?:)
      | (?P<words>(?:i|i['’]ve)\s(?:have\s)?(?:changed|rewrote|rewritten|replaced|used|kept|made|tried|added)\b
          | (?:in\s)?(?:this|the)\s(?:rewrite|rewritten|version|passive|double\snegation|original)\b
          | (?:the|this)\s(?:new\s|given\s)?(?:text|sentence)\s(?:is|was|has|means|uses|does|remains|above|below)\b
          | (?:let\sme\sknow|i?\s?hope\sth(?:is|at)\shelps|please\snote|would\syou\slike\sme|feel\sfree)\b)
    )""",
    re.X | re.I,
)
_SAID_BEHIND = re.compile(r"(?<=[.!?\"”…])\s+(?:\*\*)?(?P<mark>note|explanation)(?:\*\*)?:.*\Z", re.S | re.I)
_ASIDE = re.compile(
    r"[(\[](?P<mark>note|explanation|rewritten|passive voice|active voice|double negation|i (?:changed|replaced))"
    r"\b[^()\[\]]*[)\]]\Z",
    re.I,
)
_LONGEST_COMMENT = 400
_LISTED = re.compile(
    r"^[ \t]*(?:\*\*)?(?:(?:(?:option|version|alternative|rewrite)[ \t]+)?(?P<number>\d{1,2})[.):]|[-*•])"
    r"(?:\*\*)?[ \t]+",
    re.M | re.I,
)
_DOUBLE_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_OTHER_QUOTES = {"'": "'", "‘": "’", "`": "`", "**": "**"}
_SINGLE_INSIDE = re.compile(r"(?<!\w)['‘’`]|['‘’`](?!\w)")


def clean_reply(reply: str, source: str) -> str | Refused:
    r"""Return the rewrite in a reply, or why there is none.

    Args:
        reply: What the model wrote.
        source: The text to rewrite.

    >>> clean_reply('Sure! Here is the rewritten text:\n\n"The man was bitten by the dog."', "The dog bit the man.")
    'The man was bitten by the dog.'
    >>> clean_reply("I'm sorry, but I can't help with that.", "The dog bit the man.").reason
    'the model refuses'
    """
    source = source.strip()
    text = _without_thinking(reply.strip(), source)
    refused = None if text == source else _refusal(text, source)
    if refused is not None:
        return refused
    for step in _STEPS:
        if text == source:
            return text
        text = step(text, source).strip()
    return text if text == source else _refusal(text, source) or text


def _refusal(text: str, source: str) -> Refused | None:
    if not text:
        return Refused(NOTHING_WRITTEN)
    if _says_not_applicable(text) and not _says_not_applicable(source):
        return Refused(DOES_NOT_APPLY, fails=False)
    # A text that is itself an apology may be rewritten as another one.
    refuses = any(refusal.match(text) and not refusal.match(source) for refusal in (_REFUSAL, _FOREIGN_REFUSAL))
    return Refused(REFUSES) if refuses else None


def _says_not_applicable(text: str) -> bool:
    return _SHOUTED in text or _NOT_APPLICABLE.match(text) is not None


def _without_thinking(text: str, source: str) -> str:
    if not _THINKING_TAG.search(text) or _THINKING_TAG.search(source):
        return text
    return _THOUGHT.sub("", _THINKING.sub("", text)).strip()


def _without_tags(text: str, source: str) -> str:
    if "<" not in text:
        return text
    text = text.replace(REMINDER, "").strip()
    if not _OUR_TAG.search(source):
        text = _OUR_TAG.sub("", _inside_our_tags(text, source)).strip()
    for pattern in (_WRAPPED.fullmatch, _ANSWER_PAIR.search):
        found = pattern(text)
        if found is not None and f"<{found[1]}>" not in source:
            text = found[2].strip()
    return text


def _inside_our_tags(text: str, source: str) -> str:
    found = _OUR_PAIR.search(text)
    if found is None:
        return text
    rest = text[found.end() :].strip()
    # Models that repeat the text in its tags put the rewrite after it.
    return rest if rest and found[2].strip() == source else found[2]


def _without_fence(text: str, source: str) -> str:
    if "```" not in text or "```" in source:
        return text
    found = _FENCE.search(text)
    return text if found is None else found[1]


def _second_of_two(text: str, source: str) -> str:
    """Return the part labelled as the rewrite, if the reply also has one labelled as the original."""
    found = _TWO_VERSIONS.search(text) if ":" in text else None
    return text if found is None or _TWO_VERSIONS.search(source) else found["new"]


def _without_echo(text: str, source: str) -> str:
    """Return what follows the source, if a reply repeats it first."""
    place = 1 if text[:1] in ('"', "“", "‘", "'") and text[:1] != source[:1] else 0
    rest = text[place + len(source) :]
    if len(rest) * 2 < len(source) or not text.startswith(source, place) or len(source.split()) < 3:
        return text
    after = _AFTER_ECHO.match(rest)
    return text if after is None else rest[after.end() :]


def _without_preamble(text: str, source: str) -> str:
    for _ in range(2):
        opening = _OPENING.match(text)
        if opening is not None and not _SAYS_YES.match(source) and "!" not in source[:_OPENING_WORDS]:
            text = text[opening.end() :]
        head = _HEAD.match(text)
        if head is None or not _is_preamble(head[0], text[head.end() :], source):
            break
        text = text[head.end() :]
        if head[0].count("**") % 2:
            text = text.removeprefix("**")
        text = text.strip()
    return text


def _is_preamble(head: str, rest: str, source: str) -> bool:
    """Return whether the words before a colon are about the rewrite and not part of the text."""
    if head in source:
        return False
    words = {word.lower() for word in _WORD.findall(head.replace(source.rstrip(".!?"), ""))}
    content = [word for word in words - _CHATTER if len(word) > 3]
    if content:
        known = source.lower()
        if any(word in known for word in content):
            return False
    introduces = _FOREIGN_PREAMBLE.match(head) and not _HEAD.match(source)
    if introduces or (_STRONG.search(head) and not _STRONG.search(source)):
        return True
    if not words or words - _CHATTER or not words & _LABELS:
        return False
    # "Score: 3-1" may become "Result: 3-1": if the text has a label of its own, only a second one is chatter.
    if _HEAD.match(source) and not _HEAD.match(rest.strip()):
        return False
    return rest.startswith("\n") or not words & {"the", "this", "it"}


def _without_comment(text: str, source: str) -> str:
    for found in _COMMENT.finditer(text):
        # A text of several lines may have one that begins like a comment.
        own = found["words"] and _lines(text[: found.start()]) < _lines(source)
        if found.start() and not own and (found["label"] or found["words"]).lower() not in source.lower():
            text = text[: found.start()].rstrip()
            break
    for pattern in (_SAID_BEHIND, _ASIDE):
        # Only the end is searched: after a comment in the middle, the rewrite would continue.
        inline = pattern.search(text, max(0, len(text) - _LONGEST_COMMENT))
        if inline is not None and inline["mark"].lower() not in source.lower():
            text = text[: inline.start()]
    return text


def _lines(text: str) -> int:
    return sum(1 for line in text.splitlines() if line.strip())


def _first_of_list(text: str, source: str) -> str:
    first = _LISTED.match(text)
    if first is None or (first["number"] or "1") != "1" or _LISTED.search(source) or "\n" in source:
        return text
    second = _LISTED.search(text, first.end())
    return text[first.end() : None if second is None else second.start()]


def _without_quotes(text: str, source: str) -> str:
    """Return a reply without quotation marks around the whole, unless the text has them too."""
    close = _DOUBLE_QUOTES.get(text[:1])
    if close is not None and len(text) > 1 and text.endswith(close):
        # A rewrite of `He said "yes" and then "no"` may begin and end with a quotation.
        return text[1:-1] if _double_quotes(text) >= _double_quotes(source) + 2 else text
    for mark, close in _OTHER_QUOTES.items():
        inner = text[len(mark) : -len(close)]
        if not (text.startswith(mark) and text.endswith(close)) or not inner:
            continue
        if source[:1] != mark[:1] and source[-1:] != close[-1:] and not _SINGLE_INSIDE.search(inner):
            return inner
    return text


def _double_quotes(text: str) -> int:
    return sum(map(text.count, '"“”„«»'))


_STEPS = (
    _without_tags,
    _without_fence,
    _second_of_two,
    _without_preamble,
    _without_comment,
    _without_echo,
    _without_preamble,
    _first_of_list,
    _without_quotes,
)
