"""Paired statistics, with Student's t throughout: what n differences say, and what n would be needed.

The gate "past two standard errors" is a one-sided t test at the level where the normal distribution has two standard
errors (2.275 %), so that the error is the same at every n: 2.05 standard errors at 55 seeds, 2.006 at 400. Intervals
are two-sided 95 % ones. Under ten seeds nothing is past the gate.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

GATE = 0.97724987  # the normal distribution's share below two standard errors
SIDE = 0.975  # two-sided 95 %
POWER = 0.8
LEAST_SEEDS = 10
MOST_SEEDS = 1_000_000
USUAL_EFFECT = 0.2  # standard deviations of a difference: about what an e-value expects where there is an effect
E_MOST_LOG = math.log(1e300)
SCORE_MOST = 1e100  # the squares of such scores, and the sums of those, are finite doubles
SCORE_LEAST = 1e-100  # and no square of those is nothing


def beyond(score: float) -> bool:
    """Whether doubles cannot hold what is worked out of such a score."""
    return abs(score) > SCORE_MOST or 0 < abs(score) < SCORE_LEAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """n differences: their mean, its standard error, the 95 % interval; that is None under two differences."""

    n: int
    mean: float
    se: float
    low: float | None
    high: float | None

    @property
    def still(self) -> bool:
        """No seed changed: every difference is exactly zero."""
        return self.mean == 0.0 and self.se == 0.0

    @property
    def sd(self) -> float:
        return self.se * math.sqrt(self.n)

    @property
    def e_value(self) -> float:
        """The evidence for a gain, as a bet against "none or a loss" would have multiplied; 0 where the mean is no gain.

        Under that null its mean is at most 1 at any n, and it comes to 1/a at any time with at most probability a, for
        normal differences of whatever variance. It hangs on n, mean and se alone: not on the order, nor on when one looks.
        Source: Lai 1976; Wang and Ramdas, arXiv:2310.03722, the Gaussian mixture, effects of about USUAL_EFFECT.
        """
        if self.mean <= 0.0:
            return 0.0
        c2, ratio = USUAL_EFFECT**-2, self.se / self.mean
        share = self.n / (self.n + c2) / (1.0 + (self.n - 1) * ratio * ratio)  # S² / ((n + c²) V)
        log = 0.5 * math.log(c2 / (self.n + c2)) - self.n / 2.0 * math.log1p(-share)
        return math.exp(min(log, E_MOST_LOG))


def paired(differences: Sequence[float]) -> Paired:
    """Mean, standard error (ddof 1) and interval of at least one finite difference."""
    n = len(differences)
    mean = math.fsum(differences) / n
    return told(n, mean, math.sqrt(math.fsum((d - mean) ** 2 for d in differences) / max(1, n - 1) / n))


def told(n: int, mean: float, se: float) -> Paired:
    """The read that these numbers tell."""
    if n == 1:
        return Paired(n=1, mean=mean, se=0.0, low=None, high=None)
    half = t_quantile(SIDE, n - 1) * se
    return Paired(n=n, mean=mean, se=se, low=mean - half, high=mean + half)


def together(reads: Sequence[Paired]) -> Paired:
    """The read of all their differences, of at least one read."""
    n = sum(read.n for read in reads)
    mean = math.fsum(read.n * read.mean for read in reads) / n
    square = math.fsum((read.n - 1) * read.n * read.se**2 + read.n * (read.mean - mean) ** 2 for read in reads)
    return told(n, mean, math.sqrt(square / max(1, n - 1) / n))


def past_gate(read: Paired) -> bool:
    """Whether the mean is past two standard errors above zero by Student's t. Equal gains on every seed (se 0) are."""
    return past(read, 2.0)


def looks(seeds: int) -> tuple[int, ...]:
    """After how many of the seeds they are looked at: a quarter, a half, all; no look under LEAST_SEEDS."""
    return (*(n for n in (-(-seeds // 4), -(-seeds // 2)) if LEAST_SEEDS <= n < seeds), seeds)


def raced_looks(seeds: int) -> tuple[int, ...]:
    """The same of a raced search, which goes on to two and to four times the seeds where it may be good."""
    return (*looks(seeds), 2 * seeds, 4 * seeds) if seeds >= LEAST_SEEDS else (seeds,)


def past(read: Paired, z: float) -> bool:
    """Whether the mean is past so many standard errors of the normal distribution, by Student's t at the same level."""
    return read.n >= LEAST_SEEDS and read.mean > t_quantile(normal_cdf(z), read.n - 1) * read.se


def normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def seeds_needed(effect: float, sd: float) -> int | None:
    """How many seeds get such an effect past the gate with 80 %; None when no reasonable number does."""
    if effect == 0.0:
        return None
    low, high = LEAST_SEEDS, MOST_SEEDS
    if not _shows(effect, sd, high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _shows(effect, sd, middle) else (middle + 1, high)
    return low


def _shows(effect: float, sd: float, n: int) -> bool:
    return abs(effect) >= smallest_seen(n) * sd


def smallest_seen(n: int, z: float = 2.0) -> float:
    """The effect, in standard deviations of a paired difference, that n seeds get past z errors with 80 %: 0.39 at 55."""
    return (t_quantile(normal_cdf(z), n - 1) + t_quantile(POWER, n - 1)) / math.sqrt(n)


def spread(reads: Iterable[Paired]) -> float:
    """tau²: the variance of true effects over many trials, by moments: max(0, mean of m² - se²)."""
    parts = [read.mean**2 - read.se**2 for read in reads]
    return max(0.0, math.fsum(parts) / len(parts)) if parts else 0.0


def shrunk(read: Paired, tau2: float) -> float:
    """What a read is expected to be when read again: m tau² / (tau² + se²)."""
    total = tau2 + read.se**2
    return read.mean * tau2 / total if total > 0.0 else 0.0


@lru_cache(maxsize=4096)
def t_quantile(p: float, df: int) -> float:
    """The value that Student's t with df degrees stays below with probability p, for p in (0.5, 1)."""
    low, high = 0.0, 1.0
    while t_cdf(high, df) < p:
        high *= 2.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if t_cdf(middle, df) < p else (low, middle)
    return (low + high) / 2.0


def t_cdf(t: float, df: int) -> float:
    """P(T < t) for t >= 0, by the incomplete beta function (Abramowitz and Stegun 26.7.1)."""
    return 1.0 - 0.5 * _beta(df / 2.0, 0.5, df / (df + t * t))


def _beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0.0 or x >= 1.0:
        return min(1.0, max(0.0, x))
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's continued fraction for the incomplete beta function (Numerical Recipes, 6.4)."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1.0), tiny)
    total = d
    for m in range(1, 300):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _off_zero(1.0 + term * d, tiny)
            c = _off_zero(1.0 + term / c, tiny)
            total *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return total


def _off_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
