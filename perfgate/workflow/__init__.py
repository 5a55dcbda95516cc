"""Use cases, one module a verb: what a command does, without arguments and printing."""
