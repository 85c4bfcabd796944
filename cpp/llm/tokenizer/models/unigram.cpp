#include "rushlight/llm/tokenizer/models/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "rushlight/llm/text/utf8.h"
#include "rushlight/llm/tokenizer/models/bpe.h"

namespace rushlight::llm {
namespace {

// How scores are added: in double or single precision; or in double precision, and the best score
// but one at each place is kept to tell near ties.
enum class Sums { Double, Single, Compared };

constexpr double kWorst = -std::numeric_limits<double>::infinity();

// The pieces of tables since version 2: a trie of characters, which has all of a score that is in
// single precision.
template <Sums sums>
class CharacterPieces {
 public:
  explicit CharacterPieces(const Table& table)
      : trie_(table.piece_trie), scores_(table.scores), first_labels_(table.first_labels) {}

  // What a text is made of in the trie; 0 for its end.
  static const uint32_t* symbols(const Letters& letters) { return letters.labels(); }

  // The child of `node` for a symbol, or 0.
  uint32_t child(uint32_t node, uint32_t symbol) const { return trie_.child(node, symbol); }
  // The child of the root.
  uint32_t first(uint32_t symbol) const {
    if (first_labels_ == 0) return likely_child(0, symbol);
    return symbol & all_if(symbol <= first_labels_);
  }
  // As `child`, without a branch: for where it can hardly be predicted whether there is one.
  uint32_t likely_child(uint32_t node, uint32_t symbol) const {
    const PieceNode& parent = trie_.nodes[node];
    const uint32_t may_be = uint32_t{0} - (parent.children >> (symbol & 31) & 1);
    const uint32_t place = (parent.base ^ symbol) & may_be;
    const uint32_t inside = place & all_if(place < trie_.nodes.size());
    return inside & all_if(trie_.nodes[inside].parent == node);
  }
  // In the precision of sums, or minus infinity.
  auto score(uint32_t node) const {
    const float score = trie_.nodes[node].score;
    if constexpr (sums == Sums::Single) {
      return score;
    } else {
      if (sums != Sums::Double || score == static_cast<float>(kWorst)) return double{score};
      return token(node) != kNone ? scores_[token(node)] : kWorst;
    }
  }
  uint32_t token(uint32_t node) const { return trie_.tokens[node]; }

 private:
  static uint32_t all_if(bool is) { return uint32_t{0} - uint32_t{is}; }

  PieceTrie trie_;
  Span<const double> scores_;
  uint32_t first_labels_;
};

// The pieces of tables of version 1: a trie of bytes.
template <class Score>
class BytePieces {
 public:
  explicit BytePieces(const Table& table) : table_(table) {}

  static const uint32_t* symbols(const Letters& letters) { return letters.codes(); }

  uint32_t child(uint32_t node, uint32_t symbol) const {
    if (symbol == kNone) return 0;
    char bytes[4];
    const size_t size = write_utf8(symbol, bytes);
    for (size_t i = 0; i < size; ++i) {
      node = table_.model.child(node, static_cast<uint8_t>(bytes[i]));
      if (node == 0) break;
    }
    return node;
  }
  uint32_t likely_child(uint32_t node, uint32_t symbol) const { return child(node, symbol); }
  uint32_t first(uint32_t symbol) const { return child(0, symbol); }
  Score score(uint32_t node) const {
    return static_cast<Score>(token(node) != kNone ? table_.scores[token(node)] : kWorst);
  }
  uint32_t token(uint32_t node) const { return table_.model.values[node]; }

 private:
  const Table& table_;
};

// Places are counted in letters, from the last one to which the best path was given out.
template <Sums sums, class Pieces>
class Search {
 public:
  Search(const Table& table, const Letters& letters, Scratch* scratch, std::vector<int32_t>* out)
      : table_(table),
        symbols_(Pieces::symbols(letters)),
        codes_(letters.codes()),
        size_(letters.size()),
        longest_(table.piece_trie.empty() ? size_ : table.settings.longest_piece),
        pieces_(table),
        unknown_score_(static_cast<Score>(table.scores[table.settings.vocabulary])),
        scores_(scores(scratch)),
        seconds_(scratch->seconds),
        links_(scratch->links),
        unknown_(scratch->normalized[0]),
        out_(out) {}

  // Where no piece reaches beyond a place, the best path to it is final: it is given out after a
  // while, and the search goes on from there. Returns its score after a text of the score `before`.
  double run(double before) {
    restart(before);
    while (extend()) {
      const double score = scores_[at_];
      emit(at_);
      base_ += at_;
      restart(score);
    }
    emit(at_);
    end_unknown();
    return scores_[at_];
  }

  // Of the best path, the least difference to another one at any place.
  double difference() const { return difference_; }
  bool has_unknown() const { return has_unknown_; }

 private:
  using Score = std::conditional_t<sums == Sums::Single, float, double>;
  static constexpr Score kUnreached = static_cast<Score>(kWorst);
  static constexpr size_t kWindow = 256, kBlock = 64;     // letters
  static constexpr size_t kMostPlaces = size_t{1} << 31;  // that links can name

  struct Paths {
    // Without a branch: which path is better can hardly be predicted. Where no piece ends, the
    // score is the worst.
    void add(size_t from, size_t to, Score score, uint32_t node) {
      const Score other = scores[to];
      if constexpr (sums == Sums::Compared) {
        seconds[to] = std::max(seconds[to], std::min(score, other));
      }
      const uint64_t is_better = uint64_t{0} - uint64_t{score > other};
      const uint64_t link = uint64_t{node} << 32 | from;
      links[to] ^= (links[to] ^ link) & is_better;
      scores[to] = std::max(other, score);
    }

    Score* scores;
    uint64_t* links;
    double* seconds;
  };

  static std::vector<Score>& scores(Scratch* scratch) {
    if constexpr (sums == Sums::Single) {
      return scratch->single_scores;
    } else {
      return scratch->scores;
    }
  }

  void restart(double score) {
    at_ = reach_ = ready_ = 0;
    prepare(longest_ + 1);
    scores_[0] = static_cast<Score>(score);
  }

  // Forgets the paths to places before `end`, which were not used yet, and some more.
  void prepare(size_t end) {
    end = std::min(size_ - base_ + 1, end + kWindow);
    reserve(&scores_, end);
    reserve(&links_, end);
    std::fill(&scores_[ready_], scores_.data() + end, kUnreached);
    std::fill(&links_[ready_], links_.data() + end, uint64_t{0});
    if constexpr (sums == Sums::Compared) {
      reserve(&seconds_, end);
      std::fill(&seconds_[ready_], seconds_.data() + end, kWorst);
    }
    ready_ = end;
  }
  template <class Buffer>
  static void reserve(Buffer* buffer, size_t places) {
    if (buffer->size() < places) buffer->resize(places + places / 2);
  }

  // Adds the paths by the pieces that begin at each place. Returns whether it stopped before the
  // end, where the best path may be given out.
  bool extend() {
    const size_t size = size_ - base_;
    while (at_ < size) {
      if ((at_ == reach_ && at_ >= kWindow) || at_ >= kMostPlaces) return true;
      if (ready_ <= size && ready_ - at_ <= longest_) prepare(at_ + longest_ + 1);
      const size_t end = std::min(ready_ > size ? size : ready_ - longest_, at_ + kBlock);
      Starts starts;
      find_starts(symbols_ + base_ + at_, end - at_, &starts);
      if (sums == Sums::Single && may_begin_anew(end)) {
        walk<sums == Sums::Single>(end, starts);
      } else {
        walk<false>(end, starts);
      }
    }
    return false;
  }
  // Whether the score of a place before `end` may be beyond the farthest one.
  bool may_begin_anew(size_t end) const {
    const double most = table_.greatest_score * static_cast<double>(end);
    return !(std::fabs(double{scores_[0]}) + most < kFarthestScore * 0.99);
  }

  // The nodes of the first two symbols from some places on, or 0.
  struct Starts {
    uint32_t one[kBlock], two[kBlock];
    Score score[kBlock];  // of the first
  };

  // Beside `walk`, so that each loop has registers enough.
  [[gnu::noinline]] void find_starts(const uint32_t* symbols, size_t n, Starts* starts) const {
    const Pieces pieces = pieces_;
    const Score unknown = unknown_score_;
    for (size_t i = 0; i < n; ++i) {
      const uint32_t one = pieces.first(symbols[i]);
      const uint32_t two = pieces.likely_child(one, symbols[i + 1]);
      const Score score = pieces.score(one);  // of the root the worst
      const bool is_known = score != kUnreached;
      starts->two[i] = two & (uint32_t{0} - uint32_t{one != 0});
      starts->one[i] = one & (uint32_t{0} - uint32_t{is_known});
      starts->score[i] = is_known ? score : unknown;
    }
  }

  // Adds the paths by the pieces that begin at the next places, all before `end`. Scores may be
  // beyond the farthest one if `may_be_far`.
  template <bool may_be_far>
  [[gnu::noinline]] void walk(size_t end, const Starts& starts) {
    const uint32_t* const symbols = symbols_ + base_;
    const Pieces pieces = pieces_;
    Paths paths{scores_.data(), links_.data(), seconds_.data()};
    const size_t ready = ready_, begin = at_;
    size_t reach = reach_;
    for (size_t i = begin; i < end; ++i) {
      if (may_be_far && std::fabs(paths.scores[i]) > kFarthestScore) begin_anew(i, reach);
      const Score score = paths.scores[i];
      size_t to = i + 1;
      paths.add(i, to, starts.score[i - begin] + score, starts.one[i - begin]);
      uint32_t node = starts.two[i - begin];
      while (node != 0 && to + 1 < ready) {
        paths.add(i, ++to, pieces.score(node) + score, node);
        node = pieces.child(node, symbols[to]);
      }
      reach = std::max(reach, to);
    }
    at_ = end;
    reach_ = reach;
  }

  // Takes the score of the best path to a place from all that were reached.
  void begin_anew(size_t begin, size_t reach) {
    const Score score = scores_[begin];
    for (size_t i = begin; i <= reach; ++i) scores_[i] -= score;
  }

  static uint64_t begin_of(uint64_t link) { return link & 0xFFFFFFFF; }
  uint32_t token_of(uint64_t link) const {
    const auto node = static_cast<uint32_t>(link >> 32);
    const uint32_t token = node != 0 ? pieces_.token(node) : kNone;
    return token != kNone ? token : table_.settings.unknown;
  }

  // Gives out the best path to `end`.
  void emit(size_t end) {
    if constexpr (sums == Sums::Compared) {
      for (uint64_t i = end; i > 0; i = begin_of(links_[i])) {
        difference_ = std::min(difference_, scores_[i] - seconds_[i]);
      }
    }
    if (unknown_begin_ != unknown_end_ || !emit_tokens(end)) emit_texts(end);
  }

  // The tokens, from the last one on; neighbouring unknown ones are one. False, and nothing is
  // given out: what the unknown ones become depends on their text.
  bool emit_tokens(size_t end) {
    const uint32_t unknown = table_.settings.unknown;
    const size_t before = out_->size();
    out_->resize(before + end);
    int32_t* const last = out_->data() + before + end;
    int32_t* token = last;
    bool after_is_unknown = false, any = false;
    for (uint64_t i = end; i > 0; i = begin_of(links_[i])) {
      const uint32_t own = token_of(links_[i]);
      const bool is_unknown = own == unknown;
      token -= is_unknown && after_is_unknown ? 0 : 1;
      *token = static_cast<int32_t>(own);
      after_is_unknown = is_unknown;
      any = any || is_unknown;
    }
    has_unknown_ = has_unknown_ || any;
    const bool is_text =
        any && (sums == Sums::Double || unknown == kNone || table_.has(kByteFallback));
    if (!is_text) {
      if (after_is_unknown && ended_unknown_) ++token;
      ended_unknown_ = any && last[-1] == static_cast<int32_t>(unknown);
      std::copy(token, last, out_->data() + before);
    }
    out_->resize(is_text ? before : before + static_cast<size_t>(last - token));
    return !is_text;
  }

  // The path is turned around first, so that each of its places names the next one.
  void emit_texts(size_t end) {
    uint64_t next = kNone;
    for (uint64_t i = end; i > 0;) {
      const uint64_t begin = begin_of(links_[i]);
      links_[i] = links_[i] - begin + next;
      next = i;
      i = begin;
    }
    for (size_t from = base_; next != kNone; next = begin_of(links_[next])) {
      const uint32_t token = token_of(links_[next]);
      if (token == table_.settings.unknown) {
        if (unknown_begin_ == unknown_end_) unknown_begin_ = from;
        unknown_end_ = base_ + next;
      } else {
        end_unknown();
        out_->push_back(static_cast<int32_t>(token));
      }
      from = base_ + next;
    }
  }

  // Neighbouring unknown characters are one; tokenizers looks for their text in the vocabulary.
  void end_unknown() {
    if (unknown_begin_ == unknown_end_) return;
    const uint32_t token = sums == Sums::Double ? whole() : kNone;
    if (token != kNone) {
      out_->push_back(static_cast<int32_t>(token));
    } else {
      append_unknown();
    }
    unknown_begin_ = unknown_end_;
  }
  uint32_t whole() const {
    uint32_t node = 0;
    for (size_t i = unknown_begin_; i < unknown_end_; ++i) {
      node = pieces_.child(node, symbols_[i]);
      if (node == 0) return kNone;
    }
    return pieces_.token(node);
  }
  void append_unknown() {
    unknown_.clear();
    for (size_t i = unknown_begin_; i < unknown_end_ && table_.has(kByteFallback); ++i) {
      char bytes[4];
      unknown_.append(bytes, write_utf8(codes_[i], bytes));
    }
    llm::append_unknown(table_, {unknown_.data(), unknown_.size()}, out_);
  }

  const Table& table_;
  const uint32_t *symbols_, *codes_;
  size_t size_;
  size_t longest_;  // letters of a piece
  Pieces pieces_;
  Score unknown_score_;
  std::vector<Score>& scores_;    // of the best path to each place
  std::vector<double>& seconds_;  // of the best path but one
  std::vector<uint64_t>& links_;  // where the best path's last piece begins, and its node above
  std::string& unknown_;
  std::vector<int32_t>* out_;
  size_t base_ = 0;                             // the letter of place 0
  size_t at_ = 0, reach_ = 0;                   // places
  size_t ready_ = 0;                            // places before it may be reached
  size_t unknown_begin_ = 0, unknown_end_ = 0;  // letters
  double difference_ = -kWorst;
  bool has_unknown_ = false, ended_unknown_ = false;
};

// Calls `use` with a search.
template <Sums sums, class Use>
void search(const Table& table, const Letters& letters, Scratch* scratch, std::vector<int32_t>* out,
            const Use& use) {
  if (!table.piece_trie.empty()) {
    use(Search<sums, CharacterPieces<sums>>(table, letters, scratch, out));
  } else {
    using Score = std::conditional_t<sums == Sums::Single, float, double>;
    use(Search<sums, BytePieces<Score>>(table, letters, scratch, out));
  }
}

}  // namespace

void encode_unigram(const Table& table, StringView word, Scratch* scratch,
                    std::vector<int32_t>* out) {
  Letters letters(table.piece_trie, &scratch->letters);
  letters.add(word);
  search<Sums::Double>(table, letters, scratch, out, [](auto best) { best.run(0); });
}

void encode_unigram_after(const Table& table, const Letters& letters, double* score,
                          Scratch* scratch, std::vector<int32_t>* out) {
  search<Sums::Single>(table, letters, scratch, out, [&](auto best) { *score = best.run(*score); });
}

// In single precision a sum of n scores is wrong by at most n * 2^-24 of the greatest sum on the
// way, that is of `before` and n scores. The same path wins if the difference is more than twice
// that.
double encode_unigram_anywhere(const Table& table, const Letters& letters, Scratch* scratch,
                               std::vector<int32_t>* out) {
  constexpr double kTwiceRounding = 1.01 / (1 << 23);
  double limit = -1;
  search<Sums::Compared>(table, letters, scratch, out, [&](auto best) {
    best.run(0);
    const auto most = static_cast<double>(letters.size());
    if (best.has_unknown()) return;
    limit = best.difference() / (most * kTwiceRounding) - most * table.greatest_score;
  });
  return limit;
}

}  // namespace rushlight::llm
