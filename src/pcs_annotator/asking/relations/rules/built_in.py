"""Every rule of the package, imported so that it is registered."""

from pcs_annotator.asking.relations.rules.clauses import cleft, voice
from pcs_annotator.asking.relations.rules.plain import contraction, frame, number_format, punctuation
from pcs_annotator.asking.relations.rules.statements import attribution, double_negation
from pcs_annotator.asking.relations.rules.synonyms import synonym

BUILT_IN = (attribution, cleft, contraction, double_negation, frame, number_format, punctuation, synonym, voice)
