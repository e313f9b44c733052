"""Gamma(S_1, S_2): every (b_1, b_2) with S_1 b_1 + S_2 b_2 = |T|, addressed by index and never listed.

Source: generalized bucketization, section 5.1 (Eq. 7-10) and the loss-based cut-off of section 5.2 (Eq. 11-12).
Python integers throughout: |T| may be 10^10 and losses reach |T|^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd


@dataclass(frozen=True)
class Candidates:
    """The list in descending order of b_1, so in ascending order of loss (Lemma 3).

    The i-th candidate is (first_small - i * step_small, first_large + i * step_large), 0 <= i < length. `length` is the
    k + 1 of Eq. 9; it is 0 when no pair exists.
    """

    small: int
    large: int
    first_small: int
    first_large: int
    step_small: int
    step_large: int
    length: int

    @staticmethod
    def of(n: int, small: int, large: int) -> Candidates:
        """Gamma(small, large) for a table of n records, 1 <= small < large. Cost: one modular inverse.

        The first candidate has the least b_2 >= 0 with small * b_1 + large * b_2 = n (Eq. 7). With g = gcd(small, large)
        that is b_2 = (n / g) * (large / g)^-1 modulo small / g, and no pair exists unless g divides n.
        """
        g = gcd(small, large)
        step_small, step_large = large // g, small // g
        if n % g:
            return Candidates(small, large, 0, 0, step_small, step_large, 0)
        b2 = (n // g) * pow(step_small, -1, step_large) % step_large
        b1 = (n - large * b2) // small
        return Candidates(small, large, max(b1, 0), b2, step_small, step_large, b1 // step_small + 1 if b1 >= 0 else 0)

    def at(self, i: int) -> tuple[int, int]:
        """(b_1, b_2) of the i-th candidate (Eq. 10)."""
        if not 0 <= i < self.length:
            raise IndexError(i)
        return self.first_small - i * self.step_small, self.first_large + i * self.step_large

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (self.at(i) for i in range(self.length))

    def loss(self, i: int) -> int:
        """b_1 (S_1 - 1)^2 + b_2 (S_2 - 1)^2 of the i-th candidate (Eq. 6)."""
        return self._first_loss + i * self._loss_step

    def cutoff(self, best_loss: int | None) -> int:
        """How many leading candidates lose less than `best_loss`; all of them for None.

        This is k' + 1 of Eq. 12, except that Eq. 11 keeps one candidate even when none can win, and a last one that may tie.
        """
        if best_loss is None:
            return self.length
        winning = (best_loss - 1 - self._first_loss) // self._loss_step + 1
        return max(0, min(self.length, winning))

    @property
    def _first_loss(self) -> int:
        return self.first_small * (self.small - 1) ** 2 + self.first_large * (self.large - 1) ** 2

    @property
    def _loss_step(self) -> int:
        # Positive: with L = lcm it is L * ((S_2 - 1)^2 / S_2 - (S_1 - 1)^2 / S_1), and (S - 1)^2 / S grows with S.
        return self.step_large * (self.large - 1) ** 2 - self.step_small * (self.small - 1) ** 2
