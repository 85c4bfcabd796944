// Rules that call no other: an automaton over characters becomes one over the bytes that write
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/automaton/automaton.h"
#include "rushlight/llm/grammar/regex/dfa.h"

namespace rushlight::llm::grammar {

enum class Encoding {
  Plain,     // UTF-8
  Json,      // within a JSON string, each character in one way: escaped only where it must be
  JsonFree,  // within a JSON string, in every way that JSON has
};

struct Lexeme {
  Dfa characters;
  Encoding encoding = Encoding::Plain;
  bool is_quoted = false;             // in quotation marks
  uint64_t low = 0, high = kEndless;  // characters
};

// Adds a rule for the texts of `lexeme`; *rule is its number. With bounds on the length, characters
// are counted where any number of them can follow, and states are multiplied elsewhere.
Status add_lexeme(Lexeme lexeme, const std::string& where, Automaton* automaton, uint32_t* rule,
                  Budget* budget, Message* message);

// Adds a rule for some texts, which share their beginnings.
Status add_texts(std::vector<std::string> texts, const std::string& where, Automaton* automaton,
                 uint32_t* rule, Message* message);

}  // namespace rushlight::llm::grammar
