# The compiled extension. Its functions are typed where they are called: rnsdask.backend.protocol.Kernels.
from typing import Any

def __getattr__(name: str) -> Any: ...
