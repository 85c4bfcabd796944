#include "rushlight/llm/grammar/automaton/automaton.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <utility>

#include "rushlight/llm/grammar/regex/budget.h"

namespace rushlight::llm::grammar {

uint32_t Automaton::add_rule(std::string where) {
  rules.emplace_back();
  rules.back().where = std::move(where);
  const auto rule = static_cast<uint32_t>(rules.size() - 1);
  rules[rule].start = add_state(rule);
  return rule;
}

uint32_t Automaton::add_state(uint32_t rule) {
  if (states.size() >= kMaxAutomatonStates) {
    is_full = true;
    return static_cast<uint32_t>(states.size() - 1);
  }
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
  if (text.size() > kMaxAutomatonStates - std::min(states.size(), kMaxAutomatonStates)) {
    is_full = true;
    return;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t next = i + 1 < text.size() ? add_state(states[from].rule) : to;
    const auto byte = static_cast<uint8_t>(text[i]);
    states[from].edges.push_back({byte, byte, false, next});
    from = next;
  }
}

uint32_t Automaton::append(const Automaton& other) {
  const auto first_state = static_cast<uint32_t>(states.size());
  const auto first_rule = static_cast<uint32_t>(rules.size());
  for (State state : other.states) {
    state.rule += first_rule;
    for (Edge& edge : state.edges) edge.target += first_state;
    for (Jump& jump : state.jumps) jump.target += first_state;
    for (Call& call : state.calls) {
      call.rule += first_rule;
      call.after += first_state;
    }
    states.push_back(std::move(state));
  }
  for (Rule rule : other.rules) {
    rule.start += first_state;
    rules.push_back(std::move(rule));
  }
  is_full = is_full || other.is_full || states.size() > kMaxAutomatonStates;
  return first_rule + other.root;
}

Status check_size(const Automaton& automaton, const std::string& where, Message* message) {
  if (!automaton.is_full) return {};
  return message->fail(
      Code::OutOfResources,
      "%s: the automaton has more than %zu states: use a smaller schema or pattern", where.c_str(),
      kMaxAutomatonStates);
}

size_t bytes_of(const Automaton& automaton) {
  size_t bytes =
      automaton.states.capacity() * sizeof(State) + automaton.rules.capacity() * sizeof(Rule);
  for (const State& state : automaton.states) {
    bytes += state.edges.capacity() * sizeof(Edge) + state.jumps.capacity() * sizeof(Jump) +
             state.calls.capacity() * sizeof(Call);
  }
  for (const Rule& rule : automaton.rules) bytes += rule.where.capacity();
  return bytes;
}

namespace {

constexpr uint32_t kNone = UINT32_MAX;

struct Before {
  uint32_t state;
  uint32_t rule;  // that is called on the way, or kNone
  bool counts;
};

struct Caller {
  uint32_t state, after;
};

// Who leads to each state, by an edge, a jump, or a call after which it goes on.
struct Reverse {
  std::vector<std::vector<Before>> before;
  std::vector<std::vector<Caller>> callers;  // of each rule
};

Reverse reverse_of(const Automaton& automaton) {
  Reverse reverse;
  reverse.before.resize(automaton.states.size());
  reverse.callers.resize(automaton.rules.size());
  for (uint32_t i = 0; i < automaton.states.size(); ++i) {
    const State& state = automaton.states[i];
    for (const Edge& edge : state.edges) {
      reverse.before[edge.target].push_back({i, kNone, edge.counts});
    }
    for (const Jump& jump : state.jumps) {
      reverse.before[jump.target].push_back({i, kNone, jump.counts});
    }
    for (const Call& call : state.calls) {
      reverse.before[call.after].push_back({i, call.rule, false});
      reverse.callers[call.rule].push_back({i, call.after});
    }
  }
  return reverse;
}

// Sets of rules that call each other, directly or through others: each after those that it calls.
class Components {
 public:
  explicit Components(const Automaton& automaton) : order_(automaton.rules.size(), 0) {
    std::vector<std::vector<uint32_t>> called(automaton.rules.size());
    for (const State& state : automaton.states) {
      for (const Call& call : state.calls) called[state.rule].push_back(call.rule);
    }
    index_.assign(called.size(), kNone);
    first_ = order_;
    for (uint32_t rule = 0; rule < called.size(); ++rule) {
      if (order_[rule] == 0) visit(rule, called);
    }
  }

  const std::vector<std::vector<uint32_t>>& all() const { return all_; }
  uint32_t of(uint32_t rule) const { return index_[rule]; }

 private:
  struct Step {
    uint32_t rule;
    size_t next;  // of those it calls
  };
  // Tarjan's algorithm, with a path in place of recursion.
  void visit(uint32_t start, const std::vector<std::vector<uint32_t>>& called) {
    std::vector<Step> path;
    enter(start, &path);
    while (!path.empty()) {
      const uint32_t rule = path.back().rule;
      if (path.back().next < called[rule].size()) {
        const uint32_t other = called[rule][path.back().next++];
        if (order_[other] == 0) {
          enter(other, &path);
        } else if (index_[other] == kNone) {
          first_[rule] = std::min(first_[rule], order_[other]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        first_[path.back().rule] = std::min(first_[path.back().rule], first_[rule]);
      }
      if (first_[rule] == order_[rule]) close(rule);
    }
  }
  void enter(uint32_t rule, std::vector<Step>* path) {
    order_[rule] = first_[rule] = ++entered_;
    open_.push_back(rule);
    path->push_back({rule, 0});
  }
  void close(uint32_t rule) {
    all_.emplace_back();
    for (uint32_t member = kNone; member != rule; open_.pop_back()) {
      member = open_.back();
      index_[member] = static_cast<uint32_t>(all_.size() - 1);
      all_.back().push_back(member);
    }
  }

  std::vector<std::vector<uint32_t>> all_;
  std::vector<uint32_t> index_;  // by rule: in all_
  // By rule: when it was met, and the first rule met that it calls back; 0 if not yet.
  std::vector<uint32_t> order_, first_;
  std::vector<uint32_t> open_;  // rules that are in no component yet
  uint32_t entered_ = 0;
};

// A rule has a text if an end can be reached by rules that have one. So it is found out from the
// innermost rules outwards: a recursion without end is never reached.
class Pruner {
 public:
  Pruner(Automaton* automaton, Budget* budget)
      : automaton_(*automaton),
        budget_(*budget),
        reverse_(reverse_of(*automaton)),
        components_(*automaton),
        states_of_(automaton->rules.size()),
        transitions_(automaton->rules.size(), 0),
        useful_(automaton->states.size(), false) {
    within_.reserve(automaton_.rules.size());
    for (const Rule& rule : automaton_.rules) within_.push_back(!rule.counts);
    for (uint32_t i = 0; i < automaton_.states.size(); ++i) {
      states_of_[automaton_.states[i].rule].push_back(i);
    }
  }

  Result<std::vector<bool>> run(Message* message) {
    for (const std::vector<uint32_t>& rules : components_.all()) {
      states_.clear();
      for (const uint32_t rule : rules) {
        states_.insert(states_.end(), states_of_[rule].begin(), states_of_[rule].end());
      }
      RL_TRY(budget_.take(states_.size(), message));
      begin();
      do {
        find_useful();
        find_least();
        find_most();
        find_within();
        RL_TRY(budget_.take(0, message));
      } while (!opened_.empty());
    }
    RL_TRY(budget_.take(0, message));
    remove_useless();
    std::vector<bool> has_text;
    has_text.reserve(automaton_.rules.size());
    for (uint32_t i = 0; i < automaton_.rules.size(); ++i) has_text.push_back(works(i));
    return has_text;
  }

 private:
  bool works(uint32_t rule) const { return within_[rule] && useful_[automaton_.rules[rule].start]; }
  // Whether the way from `before` to a useful state can be gone.
  bool is_open(const Before& before) const {
    return useful_[before.state] && (before.rule == kNone || works(before.rule));
  }
  void begin();
  void open_callers(uint32_t rule);
  void find_useful();
  void find_least();
  void find_most();
  bool lengthen(uint32_t at, uint32_t target, bool counts);
  void find_within();
  void remove_useless();
  template <typename Visit>
  void for_each_way(uint32_t at, const Visit& visit) const;

  Automaton& automaton_;
  Budget& budget_;
  const Reverse reverse_;
  const Components components_;
  std::vector<std::vector<uint32_t>> states_of_;  // by rule
  std::vector<uint32_t> states_;                  // of the component that it is at
  // Of a round: states found useful, calls of rules that were found to have a text, and starts of
  // rules of which something was found.
  std::vector<uint32_t> reached_, starts_;
  std::vector<Caller> opened_;
  std::vector<uint64_t> transitions_;  // by rule: those that count
  std::vector<bool> within_;           // by rule: its bounds can be reached
  std::vector<bool> useful_;           // by state: an end of its rule can be reached
};

// The ways from a state to useful ones, by rules that have a text.
template <typename Visit>
void Pruner::for_each_way(uint32_t at, const Visit& visit) const {
  const State& state = automaton_.states[at];
  for (const Edge& edge : state.edges) {
    if (useful_[edge.target]) visit(edge.target, edge.counts);
  }
  for (const Jump& jump : state.jumps) {
    if (useful_[jump.target]) visit(jump.target, jump.counts);
  }
  for (const Call& call : state.calls) {
    if (useful_[call.after] && works(call.rule)) visit(call.after, false);
  }
}

// The first round goes backwards from the ends, and each other one from calls of rules that were
// found to have a text in the one before: what was found stays true.
void Pruner::begin() {
  std::vector<State>& states = automaton_.states;
  reached_.clear();
  for (const uint32_t i : states_) {
    states[i].least = states[i].accepts ? 0 : kEndless;
    states[i].most = 0;
    if (states[i].accepts) reached_.push_back(i);
    for (const Before& before : reverse_.before[i]) {
      if (before.counts) ++transitions_[states[i].rule];
    }
  }
}

void Pruner::open_callers(uint32_t rule) {
  if (!works(rule)) return;
  for (const Caller& caller : reverse_.callers[rule]) {
    const uint32_t other = automaton_.states[caller.state].rule;
    if (components_.of(other) == components_.of(rule)) opened_.push_back(caller);
  }
}

void Pruner::find_useful() {
  std::vector<uint32_t>& reached = reached_;
  for (const uint32_t end : reached) useful_[end] = true;
  const auto visit = [&](uint32_t at) {
    if (useful_[at]) return;
    useful_[at] = true;
    reached.push_back(at);
  };
  size_t next = 0, next_call = 0;
  while (next < reached.size() || next_call < opened_.size()) {
    if (next == reached.size()) {
      const Caller& caller = opened_[next_call++];
      if (useful_[caller.after]) visit(caller.state);
      continue;
    }
    const uint32_t at = reached[next++];
    if (!budget_.spend(reverse_.before[at].size())) return;
    for (const Before& before : reverse_.before[at]) {
      if (before.rule == kNone || works(before.rule)) visit(before.state);
    }
    const uint32_t rule = automaton_.states[at].rule;
    if (automaton_.rules[rule].start != at) continue;
    starts_.push_back(at);
    open_callers(rule);
  }
}

// Shortest ways to the end of the rule, in counts: 0 or 1 for each transition.
void Pruner::find_least() {
  std::vector<State>& states = automaton_.states;
  std::deque<uint32_t> open;
  const auto shorten = [&](uint32_t at, uint32_t target, bool counts) {
    if (states[target].least == kEndless) return;
    const uint64_t least = states[target].least + (counts ? 1 : 0);
    if (least >= states[at].least) return;
    states[at].least = least;
    if (counts) {
      open.push_back(at);
    } else {
      open.push_front(at);
    }
  };
  for (const uint32_t at : reached_) {
    if (states[at].accepts) open.push_back(at);
    for_each_way(at, [&](uint32_t target, bool counts) { shorten(at, target, counts); });
  }
  for (const Caller& caller : opened_) {
    if (useful_[caller.after]) shorten(caller.state, caller.after, false);
  }
  while (!open.empty()) {
    const uint32_t at = open.front();
    open.pop_front();
    if (!budget_.spend(reverse_.before[at].size())) return;
    if (automaton_.rules[states[at].rule].start == at) starts_.push_back(at);
    for (const Before& before : reverse_.before[at]) {
      if (is_open(before)) shorten(before.state, at, before.counts);
    }
  }
}

// Whether the longest way from a state by one to `target` is longer than what was known.
bool Pruner::lengthen(uint32_t at, uint32_t target, bool counts) {
  std::vector<State>& states = automaton_.states;
  const uint32_t rule = states[at].rule;
  const uint64_t most = states[target].most;
  uint64_t through = most == kEndless ? kEndless : most + (counts ? 1 : 0);
  const bool loops = automaton_.rules[rule].is_lexeme || through > transitions_[rule];
  if (through > 0 && loops) through = kEndless;
  if (through <= states[at].most) return false;
  states[at].most = through;
  return true;
}

// Longest ways. In a lexeme, counting transitions are in loops: where one can be reached, any
// number can be. Elsewhere a way that counts more often than there are counting transitions has
// been in a loop. Later states stand nearer to the end mostly: each is visited a few times if those
// come first.
void Pruner::find_most() {
  std::vector<uint32_t> open;
  std::sort(reached_.begin(), reached_.end(), std::greater<uint32_t>());
  for (const uint32_t at : reached_) {
    for_each_way(at, [&](uint32_t target, bool counts) {
      if (lengthen(at, target, counts)) open.push_back(at);
    });
  }
  for (const Caller& caller : opened_) {
    if (useful_[caller.after] && lengthen(caller.state, caller.after, false)) {
      open.push_back(caller.state);
    }
  }
  std::sort(open.begin(), open.end());
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (!budget_.spend(reverse_.before[at].size())) return;
    if (automaton_.rules[automaton_.states[at].rule].start == at) starts_.push_back(at);
    for (const Before& before : reverse_.before[at]) {
      if (is_open(before) && lengthen(before.state, at, before.counts)) {
        open.push_back(before.state);
      }
    }
  }
}

void Pruner::find_within() {
  reached_.clear();
  opened_.clear();
  for (const uint32_t start : starts_) {
    const uint32_t rule = automaton_.states[start].rule;
    if (within_[rule] || !useful_[start] || !automaton_.viable(start, 0)) continue;
    within_[rule] = true;
    open_callers(rule);
  }
  starts_.clear();
}

void Pruner::remove_useless() {
  const auto useless = [this](const auto& way) { return !useful_[way.target]; };
  const auto dead_call = [this](const Call& call) {
    return !useful_[call.after] || !works(call.rule);
  };
  for (State& state : automaton_.states) {
    std::vector<Edge>& edges = state.edges;
    std::vector<Jump>& jumps = state.jumps;
    std::vector<Call>& calls = state.calls;
    edges.erase(std::remove_if(edges.begin(), edges.end(), useless), edges.end());
    jumps.erase(std::remove_if(jumps.begin(), jumps.end(), useless), jumps.end());
    calls.erase(std::remove_if(calls.begin(), calls.end(), dead_call), calls.end());
  }
}

}  // namespace

Result<std::vector<bool>> prune(Automaton* automaton, Budget* budget, Message* message) {
  return Pruner(automaton, budget).run(message);
}

}  // namespace rushlight::llm::grammar
