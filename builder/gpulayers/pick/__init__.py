"""The best image for a machine, and why the others are not."""

from gpulayers.pick.choose import Candidate, Choice, Host, Wish, choose
from gpulayers.pick.host import read_host
from gpulayers.pick.offers import built, planned

__all__ = ["Candidate", "Choice", "Host", "Wish", "built", "choose", "planned", "read_host"]
