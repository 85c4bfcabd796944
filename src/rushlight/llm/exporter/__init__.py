"""From a language model to a program with a `step`: families, recipes, folders of weights."""
