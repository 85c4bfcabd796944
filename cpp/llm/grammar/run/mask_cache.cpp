#include "rushlight/llm/grammar/run/mask_cache.h"

#include <algorithm>
#include <utility>

#include "rushlight/llm/grammar/run/hash.h"

namespace rushlight::llm::grammar {
namespace {

constexpr size_t kNodeBytes = 112;  // that a node takes besides its places and transitions

}  // namespace

size_t MaskCache::KeyHash::operator()(const Key& key) const {
  return mix(mix(key.set, key.state), key.count);
}

// A token adds at most a count for each of its bytes; a call needs one more to end.
MaskCache::MaskCache(const Automaton& automaton, const TokenTrie& trie, size_t tokens,
                     size_t max_bytes)
    : automaton_(automaton),
      trie_(trie),
      classes_(automaton),
      words_((tokens + 31) / 32),
      max_bytes_(max_bytes),
      reach_(trie.longest() + 2),
      reader_(automaton, reach_),
      gathered_(words_),
      lexemes_(automaton, trie, classes_, &gathered_),
      most_least_(automaton.rules.size()),
      scratch_(words_) {
  for (const State& state : automaton.states) {
    if (state.least == kEndless) continue;
    most_least_[state.rule] = std::max(most_least_[state.rule], state.least);
  }
  clear();
}

void MaskCache::clear() {
  reader_.stacks().clear();
  nodes_.clear();
  nodes_.emplace_back();
  node_by_hash_.clear();
  sets_.clear();
  set_by_key_.clear();
  lexemes_.clear();
  bytes_ = 0;
}

size_t MaskCache::bytes() const { return bytes_ + lexemes_.bytes() + reader_.stacks().bytes(); }

uint32_t MaskCache::node_of(Places places, bool ends) {
  ends = reader_.close(&places) || ends;
  return closed_node_of(std::move(places), ends);
}

uint32_t MaskCache::closed_node_of(Places places, bool ends) {
  if (places.empty() && !ends) return kNowhere;
  uint64_t hash = ends ? 1 : 0;
  for (const Place& place : places) {
    hash = mix(mix(hash, uint64_t{place.state} << 32 | place.stack), place.count);
  }
  const auto [begin, end] = node_by_hash_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (nodes_[at->second].ends == ends && nodes_[at->second].places == places) return at->second;
  }
  const auto id = static_cast<uint32_t>(nodes_.size());
  const size_t classes = classes_.size();
  bytes_ += kNodeBytes + places.size() * sizeof(Place) + classes * sizeof(uint32_t);
  nodes_.emplace_back();
  Node& node = nodes_.back();
  node.after.reset(new uint32_t[classes]);
  std::fill_n(node.after.get(), classes, kNowhere);
  for (const Place& place : places) {
    const State& state = automaton_.states[place.state];
    node.has_lexeme = node.has_lexeme || automaton_.rules[state.rule].is_lexeme;
    for (const Edge& edge : state.edges) {
      std::fill(&node.after[classes_.of(edge.low)], &node.after[classes_.of(edge.high)] + 1,
                kUnknown);
    }
  }
  if (node.has_lexeme && places.size() == 1 && !ends) node.lexeme_left = counts_left(places[0]);
  node.places = std::move(places);
  node.ends = ends;
  node_by_hash_.emplace(hash, id);
  return id;
}

uint32_t MaskCache::after_call(uint32_t id) {
  if (nodes_[id].after_call != kUnknown) return nodes_[id].after_call;
  const uint32_t stack = nodes_[id].places[0].stack;
  Places places;
  for (const Link& link : reader_.stacks().links(stack)) {
    places.push_back({link.state, link.parent, link.count});
  }
  const uint32_t after = node_of(std::move(places), reader_.stacks().has_bottom(stack));
  return nodes_[id].after_call = after;
}

uint32_t MaskCache::target_of(uint32_t id, uint8_t byte) {
  Places places;
  reader_.advance(nodes_[id].places, byte, &places);
  return node_of(std::move(places));
}

inline uint32_t MaskCache::after(uint32_t id, uint8_t byte) {
  const size_t number = classes_.of(byte);
  const uint32_t known = nodes_[id].after[number];
  if (known != kUnknown) return known;
  const uint32_t target = is_simple(nodes_[id], byte) ? id : target_of(id, byte);
  nodes_[id].after[number] = target;
  return target;
}

// Whether a byte leads back to the node, as most do within strings.
bool MaskCache::is_simple(const Node& node, uint8_t byte) const {
  if (node.places.size() != 1 || node.ends) return false;
  const State& state = automaton_.states[node.places[0].state];
  const Rule& rule = automaton_.rules[state.rule];
  if (!rule.is_lexeme || rule.counts || state.accepts) return false;
  return std::any_of(state.edges.begin(), state.edges.end(), [&](const Edge& edge) {
    return byte >= edge.low && byte <= edge.high && edge.target == node.places[0].state;
  });
}

void MaskCache::push_step(uint32_t tree_node, uint32_t at) {
  const TrieEntry& entry = trie_.entries()[tree_node];
  path_.push_back({entry.children, entry.children + entry.child_count, at, nodes_[at].after.get()});
}

void MaskCache::walk(const Exit& from, uint32_t start, TokenSet* set) {
  if (start == kNowhere) return;
  const TrieEntry* const entries = trie_.entries().data();
  const bool is_whole = !set->is_counted && !from.excludes && !from.leaves_out;
  const bool takes_all = is_whole && from.lengths == kAnyLength;
  path_.clear();
  push_step(from.node, start);
  while (!path_.empty()) {
    Step& step = path_.back();
    if (step.child == step.end) {
      path_.pop_back();
      continue;
    }
    const uint32_t child = step.child++;
    ++visited_;
    const TrieEntry& entry = entries[child];
    uint32_t next = step.after[classes_.of(entry.byte)];
    if (next == kUnknown) next = after(step.at, entry.byte);
    if (next == kNowhere) continue;
    if (entry.child_count > 0 && takes_below(&nodes_[next], child)) {
      append(trie_.endings_from(child), from, set);
      continue;
    }
    if (takes_all && entry.token < TrieEntry::kManyTokens) {
      gathered_.take(entry.token, set);
    } else if (entry.token != TrieEntry::kNoToken) {
      append(trie_.endings_at(child), from, set);
    }
    if (entry.child_count == 0) continue;
    if (nodes_[next].ends) {
      set->exits.push_back(from);
      set->exits.back().node = child;
    }
    if (is_whole && is_in_lexeme(nodes_[next], entry)) {
      walk_lexeme(from, child, next, set);
    } else {
      push_step(child, next);
    }
  }
}

void MaskCache::walk_lexeme(const Exit& from, uint32_t tree_node, uint32_t at, TokenSet* set) {
  ended_.clear();
  ended_.swap(set->exits);
  lexemes_.walk_below(tree_node, nodes_[at].places[0].state, from.lengths, set);
  ended_.swap(set->exits);
  if (ended_.empty()) return;
  const uint32_t after = after_call(at);
  if (after == kNowhere) return;
  for (const Exit& exit : ended_) {
    if (nodes_[after].ends) {
      set->exits.push_back(from);
      set->exits.back().node = exit.node;
    }
    push_step(exit.node, after);
  }
}

// How many more counts a call in a lexeme may take at least, if it has as many as it needs; else 0.
uint64_t MaskCache::counts_left(const Place& place) const {
  const uint32_t number = automaton_.states[place.state].rule;
  const Rule& rule = automaton_.rules[number];
  if (!rule.counts) return kEndless;
  if (place.count < rule.low || most_least_[number] > rule.high - place.count) return 0;
  if (rule.high == kEndless) return kEndless;
  // Counts with more left than the reader's reach are the same.
  return std::min(rule.high - place.count, reach_ + 1) - most_least_[number];
}

// Whether the tokens below a node of the trees are in a lexeme alone, and far from its bounds.
inline bool MaskCache::is_in_lexeme(const Node& at, const TrieEntry& entry) const {
  return entry.bytes_below < UINT8_MAX ? at.lexeme_left >= entry.bytes_below
                                       : at.lexeme_left >= trie_.longest();
}

// Whether all tokens below a node of the trees can be read from a place.
inline bool MaskCache::takes_below(Node* at, uint32_t node) {
  if (!at->has_lexeme) return false;
  if (at->taken == kUnknownKinds) {
    at->taken = 0;
    for (const Place& place : at->places) {
      if (!automaton_.rules[automaton_.states[place.state].rule].is_lexeme) continue;
      at->taken |= lexemes_.taken_kinds(place.state);
    }
  }
  if ((trie_.entries()[node].kinds_below & ~at->taken) != 0) return false;
  return std::any_of(at->places.begin(), at->places.end(), [this, node](const Place& place) {
    const Rule& rule = automaton_.rules[automaton_.states[place.state].rule];
    return rule.is_lexeme && lexemes_.takes_below(place.state, rule.high - place.count, node);
  });
}

void MaskCache::append(Span<const Ending> endings, const Exit& from, TokenSet* set) {
  if (!set->is_counted && !from.excludes && !from.leaves_out) {
    return gathered_.take(endings, from.lengths, set);
  }
  const auto is_left_out = [&from, set](uint32_t token) {
    return from.leaves_out && has_bit(set->left_out->data(), token);
  };
  for (const Ending& ending : endings) {
    if ((from.lengths >> ending.before() & 1) == 0) continue;
    if (from.excludes && set->excluded[trie_.first_byte(ending.token())]) continue;
    if (is_left_out(ending.token())) continue;
    if (set->is_counted) {
      set->closed.push_back({ending.token(), ending.before() + from.counts});
    } else {
      gathered_.take(ending.token(), set);
    }
  }
}

uint32_t MaskCache::store(const Key& key, TokenSet set) {
  bytes_ += set.bytes() + sizeof(Key) + 64;
  const auto id = static_cast<uint32_t>(sets_.size());
  sets_.push_back(std::move(set));
  set_by_key_.emplace(key, id);
  return id;
}

// Bytes of the longest token that may come in a state.
size_t MaskCache::longest_from(uint32_t state) const {
  size_t longest = 0;
  for (uint32_t child = trie_.entries()[TokenTrie::kRoot].children;
       child < trie_.end_of_children(TokenTrie::kRoot); ++child) {
    const uint8_t byte = trie_.byte(child), below = trie_.entries()[child].bytes_below;
    const size_t bytes = below < UINT8_MAX ? below + size_t{1} : trie_.longest();
    if (bytes <= longest) continue;
    const std::vector<Edge>& edges = automaton_.states[state].edges;
    const bool is_taken = std::any_of(edges.begin(), edges.end(), [byte](const Edge& edge) {
      return byte >= edge.low && byte <= edge.high;
    });
    if (is_taken) longest = bytes;
  }
  return longest;
}

// Whether the counts of a call matter to the tokens that may come.
bool MaskCache::is_counted(uint32_t state, const Window& window) const {
  const uint64_t least = most_least_[automaton_.states[state].rule];
  if (window.low > 0) return true;
  return window.high < trie_.longest() + least && window.high < longest_from(state) + least;
}

uint32_t MaskCache::set_of(const Place& place, const Window& window) {
  const uint32_t number = automaton_.states[place.state].rule;
  const Rule& rule = automaton_.rules[number];
  TokenSet set;
  set.is_counted = rule.is_lexeme && rule.counts && is_counted(place.state, window);
  const uint64_t lexeme_count = set.is_counted ? 1 : 0;
  const Key key = {kUnknown, place.state,
                   rule.is_lexeme ? lexeme_count : reader_.canonical(place.state, place.count)};
  const auto known = set_by_key_.find(key);
  if (known != set_by_key_.end()) return known->second;
  const uint32_t like =
      rule.is_lexeme && !set.is_counted ? lexemes_.similar(place.state) : place.state;
  if (like != place.state) {
    set = sets_[set_of({like, place.stack, place.count}, window)];
    lexemes_.adapt(place.state, like, &set);
  } else if (rule.is_lexeme) {
    lexemes_.find(place.state, &set);
  } else {
    // What it calls has places of its own.
    walk({TokenTrie::kRoot, 0, kAnyLength, false},
         closed_node_of({{place.state, Stacks::kBottom, key.count}}, false), &set);
    gathered_.finish(&set);
  }
  return store(key, std::move(set));
}

uint32_t MaskCache::continued(uint32_t id, uint32_t state, uint64_t count) {
  const Key key = {id, state, reader_.canonical(state, count)};
  const auto known = set_by_key_.find(key);
  if (known != set_by_key_.end()) return known->second;
  TokenSet set;
  set.is_counted = sets_[id].is_counted;
  const uint32_t start = node_of({{state, Stacks::kBottom, key.count}});
  set.excluded = sets_[id].excluded;
  set.left_out = sets_[id].left_out;
  for (const Exit& exit : sets_[id].exits) {
    walk(exit, start, &set);
    if (nodes_[start].ends) set.exits.push_back(exit);
  }
  if (!set.is_counted) gathered_.finish(&set);
  return store(key, std::move(set));
}

void MaskCache::add_tokens(const TokenSet& set, const Window& window, uint32_t* bits) {
  const auto add = [&](const std::vector<uint32_t>& added) {
    add_bits(added.data(), added.size(), bits);
  };
  if (!set.is_counted) {
    for (const uint32_t token : set.few) set_bit(bits, token);
    return add(set.bits);
  }
  if (set.text != nullptr && window.high >= set.least_of_text) {
    const uint64_t more = window.high - set.least_of_text;
    const std::vector<uint32_t>& up_to =
        set.text->up_to[std::min<uint64_t>(more, TextClass::kMaxCharacters - 1) + 1];
    if (set.begin.empty()) add(up_to);
    for (size_t i = 0; i < set.begin.size(); ++i) bits[i] |= up_to[i] & set.begin[i];
  }
  for (const Enders& some : set.enders) {
    if (window.high < some.least) continue;
    const uint64_t most = window.high - some.least;
    const uint32_t* const up_to =
        set.text->up_to[std::min<uint64_t>(most, TextClass::kMaxCharacters)].data();
    for (size_t i = 0; i < some.bits.size(); ++i) bits[i] |= up_to[i] & some.bits[i];
    for (const uint32_t token : some.few) {
      if (has_bit(up_to, token)) set_bit(bits, token);
    }
  }
  const auto end =
      std::partition_point(set.open.begin(), set.open.end(),
                           [&window](const Counted& token) { return token.counts <= window.high; });
  if (set.bits.empty() || end - set.open.begin() < set.open.end() - end) {
    for (auto at = set.open.begin(); at != end; ++at) set_bit(bits, at->token);
  } else {
    scratch_ = set.bits;
    for (auto at = end; at != set.open.end(); ++at) clear_bit(scratch_.data(), at->token);
    add(scratch_);
  }
  for (const Counted& token : set.closed) {
    if (token.counts >= window.low && token.counts <= window.high) set_bit(bits, token.token);
  }
}

void MaskCache::add_continued(uint32_t id, uint32_t stack, const Stacks& stacks,
                              const Window& window, uint32_t* bits) {
  if (sets_[id].exits.empty()) return;
  for (const Link& link : stacks.links(stack)) {
    const uint32_t next = continued(id, link.state, link.count);
    add_tokens(sets_[next], window, bits);
    add_continued(next, link.parent, stacks, window, bits);
  }
}

// Whether a state goes on by one byte alone, and in one way.
bool MaskCache::is_in_text(uint32_t number) const {
  const State& state = automaton_.states[number];
  return state.edges.size() == 1 && state.edges[0].low == state.edges[0].high &&
         !state.edges[0].counts && !state.accepts && state.jumps.empty() && state.calls.empty() &&
         !automaton_.rules[state.rule].is_lexeme;
}

// The tokens that stay in fixed texts, as in the keys that an object may have: one walk for all.
// The places from which a token may go beyond the end of a text are left.
void MaskCache::add_texts(const Places& places, uint32_t* bits) {
  texts_.clear();
  is_left_.assign(places.size(), true);
  for (uint32_t i = 0; i < places.size(); ++i) {
    if (!is_in_text(places[i].state)) continue;
    is_left_[i] = false;
    texts_.push_back({i, places[i].state});
  }
  open_texts_.assign(1, {TokenTrie::kRoot, 0, texts_.size()});
  while (!open_texts_.empty()) {
    const Texts texts = open_texts_.back();
    open_texts_.pop_back();
    add_texts_below(texts, bits);
  }
}

void MaskCache::add_texts_below(const Texts& texts, uint32_t* bits) {
  const auto edge_of = [this](const Text& text) { return automaton_.states[text.state].edges[0]; };
  const auto by_byte = [&](const Text& a, const Text& b) {
    return edge_of(a).low < edge_of(b).low;
  };
  const auto first = texts_.begin() + static_cast<std::ptrdiff_t>(texts.begin);
  const auto last = texts_.begin() + static_cast<std::ptrdiff_t>(texts.end);
  if (!std::is_sorted(first, last, by_byte)) std::sort(first, last, by_byte);
  for (size_t begin = texts.begin, end = begin; begin < texts.end; begin = end) {
    const uint8_t byte = edge_of(texts_[begin]).low;
    while (end < texts.end && edge_of(texts_[end]).low == byte) ++end;
    const uint32_t child = trie_.child(texts.node, byte);
    if (child == TokenTrie::kRoot) continue;
    ++visited_;
    for (const Ending& ending : trie_.endings_at(child)) set_bit(bits, ending.token());
    if (trie_.entries()[child].child_count == 0) continue;
    size_t kept = begin;
    for (size_t i = begin; i < end; ++i) {
      const uint32_t next = edge_of(texts_[i]).target;
      if (is_in_text(next)) {
        texts_[kept++] = {texts_[i].place, next};
      } else {
        is_left_[texts_[i].place] = true;
      }
    }
    if (kept > begin) open_texts_.push_back({child, begin, kept});
  }
}

void MaskCache::add_masks(const Places& places, const Reader& reader, uint32_t* bits) {
  constexpr size_t kMany = 8;
  const bool is_many = places.size() >= kMany;
  if (is_many) add_texts(places, bits);
  for (size_t i = 0; i < places.size(); ++i) {
    if (!is_many || is_left_[i]) add_mask(places[i], reader, bits);
  }
}

void MaskCache::add_mask(const Place& place, const Reader& reader, uint32_t* bits) {
  if (bytes() > max_bytes_) clear();
  const Rule& rule = automaton_.rules[automaton_.states[place.state].rule];
  Window window;
  if (rule.counts && rule.is_lexeme) {
    window.low = rule.low > place.count ? rule.low - place.count : 0;
    window.high = rule.high == kEndless ? kEndless : rule.high - place.count;
  }
  const uint32_t id = set_of(place, window);
  add_tokens(sets_[id], window, bits);
  add_continued(id, place.stack, reader.stacks(), window, bits);
}

}  // namespace rushlight::llm::grammar
