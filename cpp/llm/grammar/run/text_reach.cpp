#include "rushlight/llm/grammar/run/text_reach.h"

#include <algorithm>

namespace rushlight::llm::grammar {
namespace {

// The characters of a class as steps from state to state.
class Steps {
 public:
  Steps(const Automaton& automaton, const CodeSet& codes) : automaton_(automaton) {
    for (const CodeRange& range : codes) {
      if (range.high >= 0x80) {
        append_sequences({std::max(range.low, 0x80u), range.high}, Encoding::Plain, &beyond_ascii_);
      }
      if (range.low >= 0x80) continue;
      ascii_.push_back({{static_cast<uint8_t>(range.low),
                         static_cast<uint8_t>(std::min(range.high, 0x7Fu)), false}});
    }
  }

  // The states after one character, each once. Returns whether every character leads to one.
  bool read(uint32_t state, std::vector<uint32_t>* targets) const {
    targets->clear();
    bool all = true;
    for (const ByteSequence& bytes : ascii_) all = read(state, bytes, 0, targets) && all;
    const std::vector<Edge>& edges = automaton_.states[state].edges;
    if (std::any_of(edges.begin(), edges.end(), [](const Edge& e) { return e.high >= 0x80; })) {
      for (const ByteSequence& bytes : beyond_ascii_) all = read(state, bytes, 0, targets) && all;
    } else {
      all = all && beyond_ascii_.empty();
    }
    std::sort(targets->begin(), targets->end());
    targets->erase(std::unique(targets->begin(), targets->end()), targets->end());
    return all;
  }

 private:
  bool read(uint32_t state, const ByteSequence& bytes, size_t at,
            std::vector<uint32_t>* targets) const {
    const BytePart& part = bytes[at];
    uint32_t taken = 0;  // bytes: each leads to one state at most
    bool all = true;
    for (const Edge& edge : automaton_.states[state].edges) {
      const uint32_t low = std::max(edge.low, part.low), high = std::min(edge.high, part.high);
      if (low > high) continue;
      taken += high - low + 1;
      if (at + 1 < bytes.size()) {
        all = read(edge.target, bytes, at + 1, targets) && all;
      } else if (targets->empty() || targets->back() != edge.target) {
        targets->push_back(edge.target);
      }
    }
    return all && taken == part.high - part.low + 1u;
  }

  const Automaton& automaton_;
  std::vector<ByteSequence> ascii_, beyond_ascii_;  // all ways to write a character
};

// Of the states of lexemes: the steps by a class, backwards, and how far they lead.
class Distances {
 public:
  static constexpr uint32_t kMost = TextClass::kMaxCharacters;

  Distances(const Automaton& automaton, const Steps& steps)
      : sure_(automaton.states.size(), kMost),
        most_(automaton.states.size(), kMost),
        longest_(automaton.states.size(), 0),
        left_(automaton.states.size(), 0),
        stays_(automaton.states.size(), false),
        ends_(automaton.states.size(), false) {
    std::vector<uint32_t> targets;
    for (uint32_t i = 0; i < automaton.states.size(); ++i) {
      const State& state = automaton.states[i];
      if (!automaton.rules[state.rule].is_lexeme) {
        sure_[i] = most_[i] = 0;
        continue;
      }
      const bool all = steps.read(i, &targets);
      left_[i] = static_cast<uint32_t>(targets.size());
      stays_[i] = all && targets.size() == 1 && targets[0] == i;
      for (const uint32_t target : targets) before_.push_back({target, i});
      if (!all) failing_.push_back(i);
      if (targets.empty()) last_.push_back(i);
      if (state.accepts) ends_[i] = true;
    }
    std::sort(before_.begin(), before_.end(),
              [](const Step& a, const Step& b) { return a.to < b.to; });
    find_sure();
    find_most();
    find_ends();
  }

  uint8_t sure(uint32_t state) const { return sure_[state]; }
  uint8_t most(uint32_t state) const { return most_[state]; }
  bool stays(uint32_t state) const { return stays_[state]; }
  bool ends(uint32_t state) const { return ends_[state]; }

 private:
  struct Step {
    uint32_t to, from;
  };
  template <typename Visit>
  void for_each_before(uint32_t state, const Visit& visit) const {
    auto at = std::lower_bound(before_.begin(), before_.end(), state,
                               [](const Step& step, uint32_t to) { return step.to < to; });
    for (; at != before_.end() && at->to == state; ++at) visit(at->from);
  }
  // The shortest text that leaves the lexeme, less one: states are met in this order.
  void find_sure() {
    for (const uint32_t state : failing_) sure_[state] = 0;
    for (size_t i = 0; i < failing_.size(); ++i) {
      const uint32_t through = sure_[failing_[i]] + 1u;
      for_each_before(failing_[i], [&](uint32_t state) {
        if (sure_[state] <= through) return;
        sure_[state] = static_cast<uint8_t>(through);
        failing_.push_back(state);
      });
    }
  }
  // The longest text that does not: known of a state when it is of all states that come next, which
  // those within and before a loop never are.
  void find_most() {
    for (const uint32_t state : last_) most_[state] = 0;
    for (size_t i = 0; i < last_.size(); ++i) {
      const auto through = static_cast<uint8_t>(std::min(most_[last_[i]] + 1u, kMost));
      for_each_before(last_[i], [&](uint32_t state) {
        longest_[state] = std::max(longest_[state], through);
        if (--left_[state] > 0) return;
        most_[state] = longest_[state];
        last_.push_back(state);
      });
    }
  }
  void find_ends() {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < ends_.size(); ++i) {
      if (ends_[i]) open.push_back(i);
    }
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      for_each_before(at, [&](uint32_t state) {
        if (!ends_[state]) open.push_back(state);
        ends_[state] = true;
      });
    }
  }

  std::vector<Step> before_;  // by `to`
  std::vector<uint32_t> failing_, last_;
  // By state; `longest_` and `left_` are what is known while `most_` is not, and how many states
  // that come next are not.
  std::vector<uint8_t> sure_, most_, longest_;
  std::vector<uint32_t> left_;
  std::vector<bool> stays_, ends_;
};

}  // namespace

TextReach::TextReach(const Automaton& automaton, const TokenTrie& trie) {
  for (const TextClass& text : trie.classes()) {
    const Distances distances(automaton, Steps(automaton, text.codes));
    std::vector<uint8_t> reach(automaton.states.size());
    for (uint32_t i = 0; i < reach.size(); ++i) {
      if (distances.sure(i) != distances.most(i)) continue;
      reach[i] = static_cast<uint8_t>(distances.sure(i) | (distances.stays(i) ? kStays : 0) |
                                      (distances.ends(i) ? kEnds : 0));
    }
    reach_.push_back(std::move(reach));
  }
}

}  // namespace rushlight::llm::grammar
