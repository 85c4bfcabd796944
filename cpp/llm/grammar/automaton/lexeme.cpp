#include "rushlight/llm/grammar/automaton/lexeme.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "rushlight/llm/grammar/automaton/encoding.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kCost = 16;  // of a way to write a character, in cells of a table

// What is left of a character that has been read in part, and the state after it.
struct Rest {
  ByteSequence bytes;
  uint32_t target;
};

bool operator<(const Rest& a, const Rest& b) {
  if (a.target != b.target) return a.target < b.target;
  return a.bytes < b.bytes;
}

using Rests = std::vector<Rest>;

struct ByteRange {
  uint32_t low, high;
};

// The bytes of a part: hex digits are up to three ranges.
void append_ranges(const BytePart& part, std::vector<ByteRange>* out) {
  if (!part.is_hex) return out->push_back({part.low, part.high});
  if (part.low < 10)
    out->push_back({'0' + uint32_t{part.low}, '0' + std::min<uint32_t>(part.high, 9)});
  if (part.high < 10) return;
  const uint32_t low = std::max<uint32_t>(part.low, 10) - 10, high = part.high - 10u;
  out->push_back({'A' + low, 'A' + high});
  out->push_back({'a' + low, 'a' + high});
}

class Lowering {
 public:
  Lowering(const Lexeme& lexeme, bool counts, uint32_t rule, Automaton* automaton, Budget* budget)
      : lexeme_(lexeme), counts_(counts), rule_(rule), automaton_(*automaton), budget_(*budget) {}

  void run();

 private:
  void expand(uint32_t state, const Rests& rests);
  // The state that reads the bytes of one of `rests`; of a whole character, its target.
  uint32_t state_of(Rests rests);

  const Lexeme& lexeme_;
  const bool counts_;
  const uint32_t rule_;
  Automaton& automaton_;
  Budget& budget_;
  uint32_t first_ = 0;  // the state of the DFA's state 0
  std::map<Rests, uint32_t> known_;
  std::vector<std::pair<uint32_t, Rests>> open_;
};

uint32_t Lowering::state_of(Rests rests) {
  if (rests[0].bytes.empty()) return first_ + rests[0].target;
  std::sort(rests.begin(), rests.end());
  const auto known = known_.find(rests);
  if (known != known_.end()) return known->second;
  const uint32_t state = automaton_.add_state(rule_);
  known_.emplace(rests, state);
  open_.push_back({state, std::move(rests)});
  return state;
}

void Lowering::expand(uint32_t state, const Rests& rests) {
  std::vector<std::vector<ByteRange>> ranges(rests.size());
  std::vector<uint32_t> starts;
  for (size_t i = 0; i < rests.size(); ++i) {
    append_ranges(rests[i].bytes[0], &ranges[i]);
    for (const ByteRange& range : ranges[i])
      starts.insert(starts.end(), {range.low, range.high + 1});
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (size_t at = 0; at + 1 < starts.size(); ++at) {
    Rests after;
    for (size_t i = 0; i < rests.size(); ++i) {
      for (const ByteRange& range : ranges[i]) {
        if (starts[at] < range.low || starts[at] > range.high) continue;
        after.push_back({{rests[i].bytes.begin() + 1, rests[i].bytes.end()}, rests[i].target});
      }
    }
    if (after.empty()) continue;
    const bool ends = after[0].bytes.empty();
    const uint32_t target = state_of(std::move(after));
    const auto low = static_cast<uint8_t>(starts[at]);
    const auto high = static_cast<uint8_t>(starts[at + 1] - 1);
    std::vector<Edge>& edges = automaton_.states[state].edges;
    if (!edges.empty() && edges.back().target == target && edges.back().high + 1 == low) {
      edges.back().high = high;
    } else {
      edges.push_back({low, high, counts_ && ends, target});
    }
  }
}

// Leaves the rule in part when the automaton is full, or the budget is spent.
void Lowering::run() {
  const Dfa& dfa = lexeme_.characters;
  first_ = static_cast<uint32_t>(automaton_.states.size());
  for (size_t i = 0; i < dfa.states(); ++i) automaton_.add_state(rule_);
  if (automaton_.is_full) return;
  const uint32_t start = automaton_.rules[rule_].start;
  automaton_.add_text(start, lexeme_.is_quoted ? "\"" : "", first_);
  const uint32_t end = lexeme_.is_quoted ? automaton_.add_state(rule_) : 0;
  if (lexeme_.is_quoted) automaton_.states[end].accepts = true;
  for (uint32_t i = 0; i < dfa.states(); ++i) {
    Rests rests;
    std::vector<ByteSequence> sequences;
    for (size_t symbol = 0; symbol < dfa.symbols(); ++symbol) {
      if (dfa.after(i, symbol) == kDead) continue;
      sequences.clear();
      const CodeRange range = {dfa.starts[symbol], dfa.last_code(symbol)};
      append_sequences(range, lexeme_.encoding, &sequences);
      for (ByteSequence& bytes : sequences)
        rests.push_back({std::move(bytes), dfa.after(i, symbol)});
    }
    if (!budget_.spend(kCost * rests.size())) return;
    expand(first_ + i, rests);
    while (!open_.empty()) {
      const auto [state, tails] = std::move(open_.back());
      open_.pop_back();
      expand(state, tails);
    }
    if (automaton_.is_full) return;
    if (dfa.accepts[i] == 0) continue;
    if (lexeme_.is_quoted) {
      automaton_.add_text(first_ + i, "\"", end);
    } else {
      automaton_.states[first_ + i].accepts = true;
    }
  }
}

// Whether every accepted text can be followed by one more character and be accepted again.
bool grows_by_one(const Dfa& dfa) {
  for (uint32_t state = 0; state < dfa.states(); ++state) {
    if (dfa.accepts[state] == 0) continue;
    bool grows = false;
    for (size_t symbol = 0; symbol < dfa.symbols() && !grows; ++symbol) {
      const uint32_t next = dfa.after(state, symbol);
      grows = next != kDead && dfa.accepts[next] != 0;
    }
    if (!grows) return false;
  }
  return true;
}

// Whether there are accepted texts of any length. Every state leads to an accepting one.
bool has_loop(const Dfa& dfa) {
  std::vector<uint32_t> entering(dfa.states(), 0);  // transitions from states that are not done
  for (const uint32_t target : dfa.next) {
    if (target != kDead) ++entering[target];
  }
  std::vector<uint32_t> done;
  for (uint32_t state = 0; state < dfa.states(); ++state) {
    if (entering[state] == 0) done.push_back(state);
  }
  for (size_t i = 0; i < done.size(); ++i) {
    for (size_t symbol = 0; symbol < dfa.symbols(); ++symbol) {
      const uint32_t target = dfa.after(done[i], symbol);
      if (target != kDead && --entering[target] == 0) done.push_back(target);
    }
  }
  return done.size() < dfa.states();
}

// Whether counts are enough to keep to the bounds: where a text can be completed within them, it is
// of any length between the least and the greatest that it may be completed to, or only the least
// matters.
bool can_count(const Lexeme& lexeme) {
  return grows_by_one(lexeme.characters) || (lexeme.low == 0 && has_loop(lexeme.characters));
}

}  // namespace

Status add_lexeme(Lexeme lexeme, const std::string& where, Automaton* automaton, uint32_t* rule,
                  Budget* budget, Message* message) {
  const bool has_bounds = lexeme.low > 0 || lexeme.high != kEndless;
  const bool counts = has_bounds && can_count(lexeme);
  if (has_bounds && !counts) {
    Result<Dfa> bounded = with_length(lexeme.characters, lexeme.low, lexeme.high, budget, message);
    if (!bounded.ok()) {
      message->prepend("%s: the bounds on the length, with the pattern: ", where.c_str());
      return bounded.status();
    }
    lexeme.characters = std::move(*bounded);
  }
  *rule = automaton->add_rule(where);
  Rule& added = automaton->rules[*rule];
  added.is_lexeme = true;
  added.counts = counts;
  if (counts) {
    added.low = lexeme.low;
    added.high = lexeme.high;
  }
  Lowering(lexeme, counts, *rule, automaton, budget).run();
  RL_TRY(budget->take(0, message));
  return check_size(*automaton, where, message);
}

Status add_texts(std::vector<std::string> texts, const std::string& where, Automaton* automaton,
                 uint32_t* rule, Message* message) {
  std::sort(texts.begin(), texts.end());
  *rule = automaton->add_rule(where);
  automaton->rules[*rule].is_lexeme = true;
  std::vector<uint32_t> path = {automaton->rules[*rule].start};  // the states of the text before
  std::string before;
  for (std::string& text : texts) {
    const auto differs = std::mismatch(text.begin(), text.end(), before.begin(), before.end());
    path.resize(static_cast<size_t>(differs.first - text.begin()) + 1);
    for (auto at = differs.first; at != text.end(); ++at) {
      const uint32_t state = automaton->add_state(*rule);
      const auto byte = static_cast<uint8_t>(*at);
      automaton->states[path.back()].edges.push_back({byte, byte, false, state});
      path.push_back(state);
    }
    RL_TRY(check_size(*automaton, where, message));
    automaton->states[path.back()].accepts = true;
    before = std::move(text);
  }
  return {};
}

}  // namespace rushlight::llm::grammar
