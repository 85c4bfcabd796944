"""Other runtimes, to time programs beside them: each in a process and an environment of its own."""
