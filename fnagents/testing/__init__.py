"""For other people's tests: models made of functions, a clock that does not wait, a network that refuses.

`scripted`, `from_function` and `inventive` are model clients; `no_network` makes any connection an error;
`run_virtual` runs a coroutine in virtual time.  Nothing here needs more than the library itself.
"""

from fnagents.testing.clients import Reply, Scripted, from_function, scripted
from fnagents.testing.invention import inventive
from fnagents.testing.network import NetworkForbiddenError, no_network
from fnagents.testing.virtual import VirtualLoop, run_virtual

__all__ = [
    "NetworkForbiddenError",
    "Reply",
    "Scripted",
    "VirtualLoop",
    "from_function",
    "inventive",
    "no_network",
    "run_virtual",
    "scripted",
]
