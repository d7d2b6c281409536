"""What Kubernetes reads as an amount: `100m`, `0.5`, `256Mi`."""

import re

PATTERN = re.compile(
    r"([+-]?(?:\d+\.?\d*|\.\d+))(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE]?)|[eE]([+-]?\d+))", re.ASCII
)
"""Its groups: the number, its suffix, or the exponent in place of one."""
