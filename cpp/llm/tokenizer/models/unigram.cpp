#include "rushlight/llm/tokenizer/models/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "rushlight/llm/tokenizer/models/bpe.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

// How scores are added: in double or single precision; or in double precision, and the best score
// but one at each position is kept to tell near ties.
enum class Sums { Double, Single, Compared };

template <Sums sums>
class Search {
 public:
  Search(const Table& table, StringView text, Scratch* scratch, std::vector<int32_t>* out)
      : table_(table),
        text_(text),
        unknown_score_(table.scores[table.settings.vocabulary]),
        paths_(scratch->paths),
        out_(out) {}

  // Where no piece reaches beyond a position, the best path to it is final: it is given out, and
  // the search goes on from there. Returns its score after a text of the score `before`.
  double run(double before) {
    restart(0, before);
    for (size_t i = 0; i < text_.size();) {
      if (i == reach_ && i > base_) {
        const double score = paths_[i - base_].score;
        emit(i);
        restart(i, score);
      }
      i += extend(i);
    }
    const double score = paths_[text_.size() - base_].score;
    emit(text_.size());
    end_unknown();
    return score;
  }

  // Of the best path, the least difference to another one at any position, and the greatest score.
  double difference() const { return difference_; }
  double greatest() const { return greatest_; }
  bool has_unknown() const { return has_unknown_; }

 private:
  void restart(size_t base, double score) {
    base_ = reach_ = base;
    paths_.clear();
    paths_.push_back({score, kWorst, kNone, kNone});
  }

  // Adds the paths by the pieces that begin at `begin`; returns the bytes of its character.
  size_t extend(size_t begin) {
    const double score = paths_[begin - base_].score;
    const size_t bytes = read_point(text_.data() + begin, text_.size() - begin).bytes;
    bool has_character = false;
    uint32_t node = table_.model.starts[static_cast<uint8_t>(text_.data()[begin])];
    for (size_t end = begin + 1; node != 0; ++end) {
      const uint32_t token = table_.model.values[node];
      if (token != kNone) {
        add(begin, end, table_.scores[token] + score, token);
        has_character |= end == begin + bytes;
      }
      node = end < text_.size() ? table_.model.child(node, static_cast<uint8_t>(text_.data()[end]))
                                : 0;
    }
    if (!has_character) add(begin, begin + bytes, unknown_score_ + score, kNone);
    return bytes;
  }

  void add(size_t begin, size_t end, double score, uint32_t token) {
    if constexpr (sums == Sums::Single) score = static_cast<float>(score);
    if constexpr (sums == Sums::Compared) greatest_ = std::max(greatest_, std::fabs(score));
    reach_ = std::max(reach_, end);
    if (end - base_ >= paths_.size()) paths_.resize(end - base_ + 1, kNoPath);
    BestPath& path = paths_[end - base_];
    if (path.begin != kNone && score <= path.score) {
      if constexpr (sums == Sums::Compared) path.second = std::max(path.second, score);
      return;
    }
    if constexpr (sums == Sums::Compared) path.second = path.begin != kNone ? path.score : kWorst;
    path.score = score;
    path.begin = static_cast<uint32_t>(begin - base_);
    path.token = token;
  }

  // Gives out the best path to `end`, which is read from its end: first it is turned around, so
  // that each of its positions names the next one.
  void emit(size_t end) {
    uint32_t next = kNone;
    for (auto i = static_cast<uint32_t>(end - base_); i > 0;) {
      if constexpr (sums == Sums::Compared) {
        difference_ = std::min(difference_, paths_[i].score - paths_[i].second);
      }
      const uint32_t begin = paths_[i].begin;
      paths_[i].begin = next;
      next = i;
      i = begin;
    }
    for (size_t from = base_; next != kNone; next = paths_[next].begin) {
      const uint32_t token = paths_[next].token;
      const size_t to = base_ + next;
      if (token == kNone || token == table_.settings.unknown) {
        has_unknown_ = true;
        if (unknown_size_ == 0) unknown_ = from;
        unknown_size_ = to - unknown_;
      } else {
        end_unknown();
        out_->push_back(static_cast<int32_t>(token));
      }
      from = to;
    }
  }

  // Neighbouring unknown characters are one; tokenizers looks for their text in the vocabulary.
  void end_unknown() {
    if (unknown_size_ == 0) return;
    const StringView text(text_.data() + unknown_, unknown_size_);
    unknown_size_ = 0;
    const uint32_t token = sums == Sums::Double ? whole(text) : kNone;
    if (token != kNone) {
      out_->push_back(static_cast<int32_t>(token));
    } else {
      append_unknown(table_, text, out_);
    }
  }
  uint32_t whole(StringView text) const {
    uint32_t node = table_.model.starts[static_cast<uint8_t>(text.data()[0])];
    for (size_t i = 1; i < text.size() && node != 0; ++i) {
      node = table_.model.child(node, static_cast<uint8_t>(text.data()[i]));
    }
    return node != 0 ? table_.model.values[node] : kNone;
  }

  static constexpr double kWorst = -std::numeric_limits<double>::infinity();
  static constexpr BestPath kNoPath = {0, kWorst, kNone, kNone};

  const Table& table_;
  StringView text_;
  double unknown_score_;
  std::vector<BestPath>& paths_;  // to each position from base_ on
  std::vector<int32_t>* out_;
  size_t base_ = 0, reach_ = 0;
  size_t unknown_ = 0, unknown_size_ = 0;
  double difference_ = -kWorst, greatest_ = 0;
  bool has_unknown_ = false;
};

}  // namespace

void encode_unigram(const Table& table, StringView word, Scratch* scratch,
                    std::vector<int32_t>* out) {
  if (!word.empty()) Search<Sums::Double>(table, word, scratch, out).run(0);
}

void encode_unigram_after(const Table& table, StringView word, double* score, Scratch* scratch,
                          std::vector<int32_t>* out) {
  if (!word.empty()) *score = Search<Sums::Single>(table, word, scratch, out).run(*score);
}

// In single precision a sum of n scores is wrong by at most n * 2^-24 of the greatest sum on the
// way, that is of `before` + greatest. The same path wins if the difference is more than twice
// that.
double encode_unigram_anywhere(const Table& table, StringView word, Scratch* scratch,
                               std::vector<int32_t>* out) {
  if (word.empty()) return -1;
  constexpr double kTwiceRounding = 1.01 / (1 << 23);
  Search<Sums::Compared> search(table, word, scratch, out);
  search.run(0);
  if (search.has_unknown()) return -1;
  const double steps = static_cast<double>(word.size());
  return search.difference() / (steps * kTwiceRounding) - search.greatest();
}

}  // namespace rushlight::llm
