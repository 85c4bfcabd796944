"""Structured output: JSON schemas, regular expressions and tools as automata over tokens.

vocabulary = Vocabulary(pieces, ends=[2])
grammar = Grammar.from_json_schema(schema, vocabulary)
state = State(grammar)
logits[~state.mask()] = -inf  # then sample a token
state.accept(token)
"""

from rushlight.llm.grammar.grammar import Grammar, State, ToolFormat, Vocabulary

__all__ = ["Grammar", "State", "ToolFormat", "Vocabulary"]
