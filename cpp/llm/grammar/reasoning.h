// Reasoning before what a grammar describes: a model that thinks writes it between `<think>` and
// `</think>`, and then what it was asked for.
#pragma once

#include "rushlight/llm/grammar/grammar.h"

namespace rushlight::llm {

// Puts reasoning before the texts of an automaton that is not pruned yet, or is.
Status add_reasoning(Reasoning reasoning, const Vocabulary& vocabulary,
                     grammar::Automaton* automaton, grammar::Budget* budget, Message* message);

}  // namespace rushlight::llm
