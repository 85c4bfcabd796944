"""Two versions of a program beside each other: what is in them, what they compute, how fast."""
