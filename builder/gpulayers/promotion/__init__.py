"""Moving images to channels: which may, by what rule, and how their tags get there and back."""

from gpulayers.promotion.carry import Carried, Journal, RolledBack, Target, carry, rollback
from gpulayers.promotion.decide import Decision, Refusal, Terms, decide
from gpulayers.promotion.rejudge import Judge, rejudged

__all__ = [
    "Carried",
    "Decision",
    "Journal",
    "Judge",
    "Refusal",
    "RolledBack",
    "Target",
    "Terms",
    "carry",
    "decide",
    "rejudged",
    "rollback",
]
