"""Draw and train the batch in this process and print its peak memory in bytes."""

import resource
import sys

from benchmarks import contenders

contenders.ours(contenders.drawn(contenders.D))
unit = 1 if sys.platform == "darwin" else 1024
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit)
