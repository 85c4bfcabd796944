#include "rushlight/llm/grammar/automaton/automaton.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace rushlight::llm::grammar {

uint32_t Automaton::add_rule(std::string where) {
  rules.emplace_back();
  rules.back().where = std::move(where);
  const auto rule = static_cast<uint32_t>(rules.size() - 1);
  rules[rule].start = add_state(rule);
  return rule;
}

uint32_t Automaton::add_state(uint32_t rule) {
  State state;
  state.rule = rule;
  states.push_back(std::move(state));
  return static_cast<uint32_t>(states.size() - 1);
}

void Automaton::add_text(uint32_t from, const std::string& text, uint32_t to) {
  if (text.empty()) {
    states[from].jumps.push_back({to, false});
    return;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t next = i + 1 < text.size() ? add_state(states[from].rule) : to;
    const auto byte = static_cast<uint8_t>(text[i]);
    states[from].edges.push_back({byte, byte, false, next});
    from = next;
  }
}

namespace {

struct Before {
  uint32_t state;
  bool counts;
};

// Who leads to each state, by an edge, a jump, or a call after which it goes on.
struct Reverse {
  std::vector<std::vector<Before>> before;
  std::vector<std::vector<uint32_t>> callers;  // of each rule
};

Reverse reverse_of(const Automaton& automaton) {
  Reverse reverse;
  reverse.before.resize(automaton.states.size());
  reverse.callers.resize(automaton.rules.size());
  for (uint32_t i = 0; i < automaton.states.size(); ++i) {
    const State& state = automaton.states[i];
    for (const Edge& edge : state.edges) reverse.before[edge.target].push_back({i, edge.counts});
    for (const Jump& jump : state.jumps) reverse.before[jump.target].push_back({i, jump.counts});
    for (const Call& call : state.calls) {
      reverse.before[call.after].push_back({i, false});
      reverse.callers[call.rule].push_back(i);
    }
  }
  return reverse;
}

class Pruner {
 public:
  explicit Pruner(Automaton* automaton)
      : automaton_(*automaton),
        reverse_(reverse_of(*automaton)),
        banned_(automaton->rules.size(), false) {}

  std::vector<bool> run() {
    for (bool more = true; more;) {
      find_useful();
      remove_useless();
      count();
      more = ban();
    }
    std::vector<bool> has_text;
    for (uint32_t i = 0; i < automaton_.rules.size(); ++i) has_text.push_back(works(i));
    return has_text;
  }

 private:
  bool works(uint32_t rule) const {
    return !banned_[rule] && useful_[automaton_.rules[rule].start];
  }
  bool leads_on(uint32_t at) const {
    const State& state = automaton_.states[at];
    const auto useful = [this](const auto& way) { return useful_[way.target]; };
    return state.accepts || std::any_of(state.edges.begin(), state.edges.end(), useful) ||
           std::any_of(state.jumps.begin(), state.jumps.end(), useful) ||
           std::any_of(state.calls.begin(), state.calls.end(), [this](const Call& call) {
             return useful_[call.after] && works(call.rule);
           });
  }
  void find_useful();
  void remove_useless();
  void count();
  bool ban();

  Automaton& automaton_;
  Reverse reverse_;
  std::vector<bool> banned_, useful_;
};

// The states from which the end of their rule can be reached: backwards from the ends.
void Pruner::find_useful() {
  useful_.assign(automaton_.states.size(), false);
  std::vector<uint32_t> open;
  const auto visit = [&](uint32_t at) {
    if (useful_[at] || !leads_on(at)) return;
    useful_[at] = true;
    open.push_back(at);
  };
  for (uint32_t i = 0; i < automaton_.states.size(); ++i) {
    if (automaton_.states[i].accepts) visit(i);
  }
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    for (const Before& before : reverse_.before[at]) visit(before.state);
    const uint32_t rule = automaton_.states[at].rule;
    if (automaton_.rules[rule].start != at) continue;
    for (const uint32_t caller : reverse_.callers[rule]) visit(caller);
  }
}

void Pruner::remove_useless() {
  const auto useless = [this](const auto& way) { return !useful_[way.target]; };
  for (State& state : automaton_.states) {
    std::vector<Edge>& edges = state.edges;
    std::vector<Jump>& jumps = state.jumps;
    std::vector<Call>& calls = state.calls;
    edges.erase(std::remove_if(edges.begin(), edges.end(), useless), edges.end());
    jumps.erase(std::remove_if(jumps.begin(), jumps.end(), useless), jumps.end());
    const auto dead_call = [this](const Call& call) {
      return !useful_[call.after] || !works(call.rule);
    };
    calls.erase(std::remove_if(calls.begin(), calls.end(), dead_call), calls.end());
  }
}

// Distances to the end of the rule, in counts: 0 or 1 for each transition.
void Pruner::count() {
  reverse_ = reverse_of(automaton_);
  std::vector<State>& states = automaton_.states;
  std::deque<uint32_t> open;
  std::vector<uint32_t> counting;
  for (uint32_t i = 0; i < states.size(); ++i) {
    states[i].least = states[i].accepts ? 0 : kEndless;
    states[i].most = 0;
    if (states[i].accepts) open.push_back(i);
    for (const Before& before : reverse_.before[i]) {
      if (before.counts) counting.push_back(before.state);
    }
  }
  while (!open.empty()) {
    const uint32_t at = open.front();
    open.pop_front();
    for (const Before& before : reverse_.before[at]) {
      const uint64_t least = states[at].least + (before.counts ? 1 : 0);
      if (least >= states[before.state].least) continue;
      states[before.state].least = least;
      if (before.counts) {
        open.push_back(before.state);
      } else {
        open.push_front(before.state);
      }
    }
  }
  // Rules count in loops only: from where a counting transition can be reached, any number can be.
  while (!counting.empty()) {
    const uint32_t at = counting.back();
    counting.pop_back();
    if (states[at].most == kEndless) continue;
    states[at].most = kEndless;
    for (const Before& before : reverse_.before[at]) counting.push_back(before.state);
  }
}

// A rule that counts, and can no longer reach its bounds, has no text either.
bool Pruner::ban() {
  bool more = false;
  for (uint32_t i = 0; i < automaton_.rules.size(); ++i) {
    if (!works(i) || automaton_.viable(automaton_.rules[i].start, 0)) continue;
    banned_[i] = more = true;
  }
  return more;
}

}  // namespace

std::vector<bool> prune(Automaton* automaton) { return Pruner(automaton).run(); }

}  // namespace rushlight::llm::grammar
