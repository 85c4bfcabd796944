// A pushdown automaton over bytes. Its states belong to rules; a state may call a rule, and goes on
// at another state when a text of that rule has been read. So rules can contain themselves.
//
// A rule may count: some transitions add one to the count of a call, and a call ends only with a
// count from `low` to `high`. Each state knows how many more counts it needs at least, and whether
// it can take any number; a transition to a state that cannot reach the bounds is not taken. Hence
// a text that has been read so far can always be completed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"

namespace rushlight::llm::grammar {

class Budget;

constexpr uint64_t kEndless = UINT64_MAX;
constexpr size_t kMaxAutomatonStates = 400000;

struct Edge {
  uint8_t low, high;  // the bytes that it takes
  bool counts;
  uint32_t target;
};

struct Jump {  // without a byte
  uint32_t target;
  bool counts;
};

struct Call {
  uint32_t rule;
  uint32_t after;
};

struct State {
  uint32_t rule;
  bool accepts = false;  // a call of the rule may end here
  uint64_t least = 0;    // counts that are needed to the end of the rule
  // And that are possible: any number from least to most is, unless the rule has no lower bound.
  uint64_t most = kEndless;
  std::vector<Edge> edges;
  std::vector<Jump> jumps;
  std::vector<Call> calls;
};

struct Rule {
  uint32_t start = 0;
  uint64_t low = 0, high = kEndless;
  bool counts = false;
  bool is_lexeme = false;  // calls nothing, and each byte leads to one state at most
  std::string where;       // in the schema
};

struct Automaton {
  std::vector<State> states;
  std::vector<Rule> rules;
  uint32_t root = 0;     // rule
  bool is_full = false;  // a state was left out, as there are as many as may be: see check_size

  uint32_t add_rule(std::string where);
  uint32_t add_state(uint32_t rule);
  void add_text(uint32_t from, const std::string& text, uint32_t to);
  // Adds the rules of another automaton; returns its root.
  uint32_t append(const Automaton& other);

  // Whether a call that has counted `count` can go on at, or end in, this state.
  bool viable(uint32_t state, uint64_t count) const {
    const State& s = states[state];
    const Rule& rule = rules[s.rule];
    if (!rule.counts) return true;
    return s.least != kEndless && count + s.least <= rule.high &&
           (s.most == kEndless || count + s.most >= rule.low);
  }
  bool ends(uint32_t state, uint64_t count) const {
    const State& s = states[state];
    const Rule& rule = rules[s.rule];
    return s.accepts && (!rule.counts || (count >= rule.low && count <= rule.high));
  }
};

// An error if it has more states than may be. `where` begins the message.
Status check_size(const Automaton& automaton, const std::string& where, Message* message);
// Bytes of memory.
size_t bytes_of(const Automaton& automaton);
// Sets State::least and State::most, and removes what leads to no end of a rule. Returns whether
// each rule has a text, by rule.
Result<std::vector<bool>> prune(Automaton* automaton, Budget* budget, Message* message);

}  // namespace rushlight::llm::grammar
