"""What an export of a language model is told: dataclasses that YAML files and arguments fill.

Annotations are those that OmegaConf reads: classes that it has no merge for would not do.
"""
