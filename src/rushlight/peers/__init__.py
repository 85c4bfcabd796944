"""Other runtimes for comparisons, each in a process and an environment of its own."""
