#include "rushlight/llm/grammar/regex/dfa.h"

#include <algorithm>
#include <map>
#include <utility>

#include "rushlight/llm/text/utf8.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kMaxNfaStates = 200000;
constexpr size_t kMaxStates = 20000;
constexpr size_t kMaxCells = size_t{1} << 22;    // of a table
constexpr size_t kMaxWork = size_t{1} << 26;     // NFA states visited while sets of them are made
constexpr size_t kMaxMembers = size_t{1} << 22;  // of all these sets together

using Kind = RegexNode::Kind;

// One state of Thompson's construction: either a set of characters leads to `first`, or nothing
// does to `first` and `second`, perhaps only at the begin or the end of the text.
struct NfaState {
  Kind kind = Kind::Empty;
  uint32_t set = 0;
  uint32_t first = kDead, second = kDead;
};

class NfaBuilder {
 public:
  explicit NfaBuilder(const Regex& regex) : regex_(regex) {}

  // The state from which `node` and then `then` is matched.
  uint32_t build(uint32_t node, uint32_t then);
  uint32_t add(NfaState state) {
    if (states.size() < kMaxNfaStates)
      states.push_back(state);
    else
      too_large = true;
    return static_cast<uint32_t>(states.size() - 1);
  }

  std::vector<NfaState> states;
  bool too_large = false;

 private:
  uint32_t repeat(const RegexNode& node, uint32_t then);

  const Regex& regex_;
};

uint32_t NfaBuilder::repeat(const RegexNode& node, uint32_t then) {
  uint32_t at = then;
  if (node.most == kUnbounded) {
    const uint32_t loop = add({Kind::Empty, 0, kDead, then});
    const uint32_t body = build(node.parts[0], loop);
    states[loop].first = body;
    at = loop;
  } else {
    for (uint32_t i = node.least; i < node.most && !too_large; ++i) {
      at = add({Kind::Empty, 0, build(node.parts[0], at), then});
    }
  }
  for (uint32_t i = 0; i < node.least && !too_large; ++i) {
    const uint32_t next = build(node.parts[0], at);
    if (next == at) break;  // the part matches nothing but the empty text
    at = next;
  }
  return at;
}

uint32_t NfaBuilder::build(uint32_t index, uint32_t then) {
  if (too_large) return then;
  const RegexNode& node = regex_.nodes[index];
  switch (node.kind) {
    case Kind::Empty:
      return then;
    case Kind::Set:
    case Kind::Begin:
    case Kind::End:
      return add({node.kind, node.set, then, kDead});
    case Kind::Sequence:
      for (size_t i = node.parts.size(); i-- > 0;) then = build(node.parts[i], then);
      return then;
    case Kind::Choice: {
      uint32_t at = node.parts.empty() ? add({Kind::Empty, 0, kDead, kDead}) : kDead;
      for (size_t i = node.parts.size(); i-- > 0;) {
        const uint32_t part = build(node.parts[i], then);
        at = at == kDead ? part : add({Kind::Empty, 0, part, at});
      }
      return at;
    }
    case Kind::Repeat:
      return repeat(node, then);
  }
  return then;
}

// The symbols of an alphabet that tells apart the characters of all sets.
struct Alphabet {
  std::vector<uint32_t> starts;
  std::vector<std::vector<uint32_t>> symbols;  // of each set
};

bool make_alphabet(const std::vector<CodeSet>& sets, Alphabet* out) {
  Alphabet& alphabet = *out;
  size_t entries = 0;
  std::vector<uint32_t>& starts = alphabet.starts;
  starts.push_back(0);
  for (const CodeSet& set : sets) {
    for (const CodeRange& range : set) {
      starts.push_back(range.low);
      if (range.high < kLastCode) starts.push_back(range.high + 1);
    }
  }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  for (const CodeSet& set : sets) {
    std::vector<uint32_t> symbols;
    for (const CodeRange& range : set) {
      size_t i = static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), range.low) -
                                     starts.begin());
      for (; i < starts.size() && starts[i] <= range.high; ++i) {
        symbols.push_back(static_cast<uint32_t>(i));
      }
    }
    entries += symbols.size();
    if (entries > kMaxMembers) return false;
    alphabet.symbols.push_back(std::move(symbols));
  }
  return true;
}

// Sets of NFA states as states of the DFA.
class Determinizer {
 public:
  // `tail`: a state that accepts every text, or kDead.
  Determinizer(const std::vector<NfaState>& nfa, const Alphabet& alphabet, uint32_t accept,
               uint32_t tail, Budget* budget)
      : nfa_(nfa),
        alphabet_(alphabet),
        accept_(accept),
        tail_(tail),
        budget_(*budget),
        seen_(nfa.size(), 0) {}

  bool run(uint32_t start, Dfa* dfa);

 private:
  using Set = std::vector<uint32_t>;

  // What is reached without a character; `end`: also what is only reached at the text's end.
  Set close(const Set& set, bool begin, bool end);
  uint32_t number(Set set, bool begin);
  // Counts what was done since the last call; false if it was too much.
  bool goes_on();

  const std::vector<NfaState>& nfa_;
  const Alphabet& alphabet_;
  const uint32_t accept_, tail_;
  Budget& budget_;
  std::vector<uint32_t> seen_;
  uint32_t round_ = 0;
  size_t work_ = 0, counted_ = 0, members_ = 0;
  std::map<std::pair<bool, Set>, uint32_t> numbers_;
  std::vector<Set> sets_;
  Dfa* dfa_ = nullptr;
};

Determinizer::Set Determinizer::close(const Set& set, bool begin, bool end) {
  ++round_;
  Set closed, open = set;
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (at == kDead || seen_[at] == round_) continue;
    seen_[at] = round_;
    ++work_;
    const NfaState& state = nfa_[at];
    if (at == accept_ || state.kind == Kind::Set || state.kind == Kind::End) closed.push_back(at);
    const bool passes = state.kind == Kind::Empty || (state.kind == Kind::Begin && begin) ||
                        (state.kind == Kind::End && end);
    if (at == accept_ || !passes) continue;
    open.push_back(state.first);
    open.push_back(state.second);
  }
  std::sort(closed.begin(), closed.end());
  return closed;
}

uint32_t Determinizer::number(Set set, bool begin) {
  set = close(set, begin, false);
  if (set.empty() && !begin) return kDead;
  // Beside a state that accepts every text, the others accept nothing more.
  if (tail_ != kDead && seen_[tail_] == round_) set = close({tail_}, begin, false);
  members_ += set.size();
  const auto key = std::make_pair(begin, set);
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  const auto id = static_cast<uint32_t>(sets_.size());
  numbers_.emplace(key, id);
  const Set at_end = close(set, begin, true);
  const bool accepts = std::binary_search(at_end.begin(), at_end.end(), accept_);
  dfa_->accepts.push_back(accepts ? 1 : 0);
  sets_.push_back(std::move(set));
  return id;
}

bool Determinizer::goes_on() {
  const bool may = budget_.spend(work_ - counted_);
  counted_ = work_;
  return may && work_ <= kMaxWork && members_ <= kMaxMembers;
}

bool Determinizer::run(uint32_t start, Dfa* dfa) {
  dfa_ = dfa;
  dfa->starts = alphabet_.starts;
  const size_t symbols = dfa->symbols();
  number({start}, true);
  std::vector<Set> targets(symbols);
  for (size_t i = 0; i < sets_.size(); ++i) {
    for (const uint32_t at : sets_[i]) {
      if (at == accept_ || nfa_[at].kind != Kind::Set) continue;
      for (const uint32_t symbol : alphabet_.symbols[nfa_[at].set]) {
        targets[symbol].push_back(nfa_[at].first);
      }
      work_ += alphabet_.symbols[nfa_[at].set].size();
      if (!goes_on()) return false;
    }
    for (Set& target : targets) {
      std::sort(target.begin(), target.end());
      target.erase(std::unique(target.begin(), target.end()), target.end());
      dfa->next.push_back(target.empty() ? kDead : number(target, false));
      target.clear();
      if (!goes_on()) return false;
    }
    work_ += symbols;
    if (sets_.size() > kMaxStates || dfa->next.size() > kMaxCells) return false;
  }
  return true;
}

// Leaves out what leads to no accepting state; the start stays.
Dfa trimmed(const Dfa& dfa) {
  const size_t states = dfa.states(), symbols = dfa.symbols();
  std::vector<std::vector<uint32_t>> before(states);
  for (size_t i = 0; i < dfa.next.size(); ++i) {
    if (dfa.next[i] != kDead) before[dfa.next[i]].push_back(static_cast<uint32_t>(i / symbols));
  }
  std::vector<uint8_t> useful(states, 0);
  std::vector<uint32_t> open;
  for (size_t i = 0; i < states; ++i) {
    if (dfa.accepts[i] != 0) open.push_back(static_cast<uint32_t>(i));
  }
  for (const uint32_t at : open) useful[at] = 1;
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    for (const uint32_t from : before[at]) {
      if (useful[from] == 0) open.push_back(from);
      useful[from] = 1;
    }
  }
  std::vector<uint32_t> renamed(states, kDead);
  Dfa result;
  result.starts = dfa.starts;
  for (size_t i = 0; i < states; ++i) {
    if (useful[i] == 0 && i != 0) continue;
    renamed[i] = static_cast<uint32_t>(result.accepts.size());
    result.accepts.push_back(dfa.accepts[i]);
  }
  for (size_t i = 0; i < states; ++i) {
    if (renamed[i] == kDead) continue;
    for (size_t symbol = 0; symbol < symbols; ++symbol) {
      const uint32_t target = dfa.next[i * symbols + symbol];
      const bool dead = target == kDead || useful[target] == 0;
      result.next.push_back(dead ? kDead : renamed[target]);
    }
  }
  return result;
}

Status too_large(const Budget& budget, Message* message) {
  if (budget.is_spent()) return budget.fail(message);
  return message->fail(Code::InvalidArgument,
                       "the automaton has more than %zu states or %zu entries: use smaller counts, "
                       "or fewer counted parts that overlap",
                       kMaxStates, kMaxCells);
}

}  // namespace

bool Dfa::is_empty() const {
  return std::none_of(accepts.begin(), accepts.end(), [](uint8_t accept) { return accept != 0; });
}

bool Dfa::matches(StringView text) const {
  uint32_t state = 0;
  for (size_t at = 0; at < text.size();) {
    const Character character = read_utf8(text.data() + at, text.size() - at);
    if (!character.valid) return false;
    at += character.bytes;
    const auto after_it = std::upper_bound(starts.begin(), starts.end(), character.code);
    state = after(state, static_cast<size_t>(after_it - starts.begin()) - 1);
    if (state == kDead) return false;
  }
  return accepts[state] != 0;
}

Result<Dfa> dfa_from(const Regex& regex, Match match, Budget* budget, Message* message) {
  NfaBuilder nfa(regex);
  std::vector<CodeSet> sets = regex.sets;
  sets.push_back(any_code());
  const auto any = static_cast<uint32_t>(sets.size() - 1);
  const uint32_t accept = nfa.add({Kind::Empty, 0, kDead, kDead});
  uint32_t then = accept, tail = kDead;
  if (match == Match::Anywhere) {  // what follows a match may be anything
    then = nfa.add({Kind::Empty, 0, kDead, accept});
    const uint32_t skip = nfa.add({Kind::Set, any, then, kDead});
    nfa.states[then].first = skip;
    tail = then;
  }
  uint32_t start = nfa.build(static_cast<uint32_t>(regex.nodes.size() - 1), then);
  if (match == Match::Anywhere) {
    const uint32_t loop = nfa.add({Kind::Empty, 0, kDead, start});
    const uint32_t skip = nfa.add({Kind::Set, any, loop, kDead});
    nfa.states[loop].first = skip;
    start = loop;
  }
  if (nfa.too_large) {
    return message->fail(Code::InvalidArgument, "it needs more than %zu states: use smaller counts",
                         kMaxNfaStates);
  }
  Dfa dfa;
  Alphabet alphabet;
  if (!make_alphabet(sets, &alphabet) ||
      !Determinizer(nfa.states, alphabet, accept, tail, budget).run(start, &dfa)) {
    return too_large(*budget, message);
  }
  return minimized(trimmed(dfa), budget);
}

Result<Dfa> dfa_from(StringView pattern, Match match, Budget* budget, Message* message) {
  Result<Regex> regex = parse_regex(pattern, message);
  if (!regex.ok()) return regex.status();
  Result<Dfa> dfa = dfa_from(*regex, match, budget, message);
  if (!dfa.ok()) {
    const int shown = pattern.len() < 200 ? pattern.len() : 200;
    message->prepend("the regular expression '%.*s': ", shown, pattern.data());
  }
  return dfa;
}

Result<Dfa> combine(const Dfa& a, const Dfa& b, Combine how, Budget* budget, Message* message) {
  Dfa product;
  product.starts.clear();
  std::set_union(a.starts.begin(), a.starts.end(), b.starts.begin(), b.starts.end(),
                 std::back_inserter(product.starts));
  std::vector<std::pair<uint32_t, uint32_t>> symbols;  // of a and b
  for (const uint32_t start : product.starts) {
    const auto symbol_in = [start](const Dfa& dfa) {
      const auto next = std::upper_bound(dfa.starts.begin(), dfa.starts.end(), start);
      return static_cast<uint32_t>(next - dfa.starts.begin() - 1);
    };
    symbols.push_back({symbol_in(a), symbol_in(b)});
  }
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto number = [&](uint32_t in_a, uint32_t in_b) {
    const bool dead = how == Combine::And       ? in_a == kDead || in_b == kDead
                      : how == Combine::Without ? in_a == kDead
                                                : in_a == kDead && in_b == kDead;
    if (dead) return kDead;
    const auto known = numbers.emplace(std::make_pair(in_a, in_b), pairs.size());
    if (!known.second) return known.first->second;
    pairs.push_back({in_a, in_b});
    const bool accept_a = in_a != kDead && a.accepts[in_a] != 0;
    const bool accept_b = in_b != kDead && b.accepts[in_b] != 0;
    product.accepts.push_back(how == Combine::And       ? accept_a && accept_b
                              : how == Combine::Without ? accept_a && !accept_b
                                                        : accept_a || accept_b);
    return known.first->second;
  };
  number(0, 0);
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [in_a, in_b] = pairs[i];
    for (const auto& [symbol_a, symbol_b] : symbols) {
      product.next.push_back(number(in_a == kDead ? kDead : a.after(in_a, symbol_a),
                                    in_b == kDead ? kDead : b.after(in_b, symbol_b)));
    }
    const bool goes_on = budget->spend(symbols.size());
    if (!goes_on || pairs.size() > kMaxStates || product.next.size() > kMaxCells) {
      return too_large(*budget, message);
    }
  }
  return minimized(trimmed(product), budget);
}

Result<Dfa> with_length(const Dfa& dfa, uint64_t low, uint64_t high, Budget* budget,
                        Message* message) {
  Dfa lengths;
  lengths.starts = {0, kSurrogates.low, kSurrogates.high + 1};
  const bool endless = high == UINT64_MAX;
  const uint64_t last = endless ? low : high;
  if (last >= kMaxStates) return too_large(*budget, message);
  for (uint64_t i = 0; i <= last && low <= high; ++i) {
    lengths.accepts.push_back(i >= low ? 1 : 0);
    const uint32_t next = i < last  ? static_cast<uint32_t>(i + 1)
                          : endless ? static_cast<uint32_t>(i)
                                    : kDead;
    lengths.next.insert(lengths.next.end(), {next, kDead, next});
  }
  if (low > high) {
    lengths.accepts = {0};
    lengths.next.assign(3, kDead);
  }
  return combine(dfa, lengths, Combine::And, budget, message);
}

Dfa any_text() {
  Dfa dfa;
  dfa.starts = {0, kSurrogates.low, kSurrogates.high + 1};
  dfa.next = {0, kDead, 0};
  dfa.accepts = {1};
  return dfa;
}

Result<Dfa> text_without(StringView marker, Budget* budget, Message* message) {
  Regex regex;
  regex.add_repeat(regex.add_text(marker), 1, 1);
  Result<Dfa> with = dfa_from(regex, Match::Anywhere, budget, message);
  if (!with.ok()) return with.status();
  return combine(any_text(), *with, Combine::Without, budget, message);
}

}  // namespace rushlight::llm::grammar
