"""How sure is a share?"""

from __future__ import annotations

import math
from statistics import NormalDist

from fot.stats.paired import Interval

__all__ = ["wilson"]


def wilson(hits: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of the share `hits / n`; (0, 1), knowing nothing, when `n` is 0.

    `n` may be an effective size, and `hits` a mean over draws.
    """
    if n <= 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, square = hits / n, z * z / n
    middle = (share + square / 2) / (1 + square)
    reach = z * math.sqrt(share * (1 - share) / n + square / (4 * n)) / (1 + square)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Interval(0.0 if hits <= 0 else low, 1.0 if hits >= n else high)
