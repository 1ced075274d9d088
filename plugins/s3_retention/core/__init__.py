"""Values and decisions: no clock, no I/O, no chance. ``now`` is an argument everywhere."""
