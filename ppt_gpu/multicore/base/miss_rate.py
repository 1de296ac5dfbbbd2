"""Miss rates as power laws of the cache size (Jacob et al.; parameters: Blem, table B.1), and caches shared by threads.

m(S) = (S/beta + 1)^(1 - alpha). T threads that share a cache have S/T bytes each.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ppt_gpu.common.errors import PptError
from ppt_gpu.multicore.base.values import Values, require


def miss_rate(
    size: Values, alpha: Values, beta: Values, *, sharers: Values = 1.0, literal: bool = False
) -> NDArray[np.float64]:
    """Misses per access, 0 to 1, of a cache of `size` bytes that `sharers` threads share evenly; `beta` in bytes.

    `literal` takes the sign as remembered from the ISCA'11 print, (1 - S/(T beta))^(1 - alpha); its base is negative
    as soon as the share exceeds beta. Raises PptError then, and for values out of range.
    """
    share = require("the cache size in bytes", size, least=0) / require("the number of sharers", sharers, above=0)
    ratio = share / require("beta of a miss-rate curve", beta, above=0)
    power = 1.0 - require("alpha of a miss-rate curve", alpha, least=1)
    if not literal:
        return np.asarray((ratio + 1.0) ** power)
    if np.any(ratio >= 1):
        worst = float(np.max(ratio))
        raise PptError(f"the printed miss rate has base 1 - S/(T beta) = {1 - worst:g}", hint="it needs S < T beta")
    return np.asarray((1.0 - ratio) ** power)
