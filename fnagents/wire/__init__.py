"""Values to and from what servers speak: pure, no network.  See responses.py and deltas.py."""
