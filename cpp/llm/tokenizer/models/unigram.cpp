#include "rushlight/llm/tokenizer/models/unigram.h"

#include <algorithm>

#include "rushlight/llm/tokenizer/models/bpe.h"
#include "rushlight/llm/tokenizer/unicode/unicode.h"

namespace rushlight::llm {
namespace {

class Search {
 public:
  Search(const Table& table, StringView text, Scratch* scratch, std::vector<int32_t>* out)
      : table_(table),
        text_(text),
        single_(table.settings.model == Model::Unigram32),
        unknown_score_(table.scores[table.settings.vocabulary]),
        paths_(scratch->paths),
        out_(out) {}

  // Where no piece reaches beyond a position, the best path to it is final: it is given out, and
  // the search goes on from there.
  void run() {
    restart(0, 0);
    for (size_t i = 0; i < text_.size();) {
      if (i == reach_ && i > base_) {
        const double score = paths_[i - base_].score;
        emit(i);
        restart(i, score);
      }
      i += extend(i);
    }
    emit(text_.size());
    end_unknown();
  }

 private:
  void restart(size_t base, double score) {
    base_ = reach_ = base;
    paths_.clear();
    paths_.push_back({score, kNone, kNone});
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
    if (!has_character) {
      const double sum = unknown_score_ + score;
      add(begin, begin + bytes, sum, kNone);
    }
    return bytes;
  }

  void add(size_t begin, size_t end, double score, uint32_t token) {
    if (single_) score = static_cast<float>(score);
    reach_ = std::max(reach_, end);
    if (end - base_ >= paths_.size()) paths_.resize(end - base_ + 1, {0, kNone, kNone});
    BestPath& path = paths_[end - base_];
    if (path.begin != kNone && score <= path.score) return;
    path = {score, static_cast<uint32_t>(begin - base_), token};
  }

  // Gives out the best path to `end`, which is read from its end.
  void emit(size_t end) {
    steps_.clear();
    for (size_t i = end - base_; i > 0; i = paths_[i].begin) {
      steps_.push_back(static_cast<uint32_t>(i));
    }
    for (size_t i = steps_.size(); i-- > 0;) {
      const BestPath& path = paths_[steps_[i]];
      const size_t from = base_ + path.begin, to = base_ + steps_[i];
      if (path.token == kNone || path.token == table_.settings.unknown) {
        if (unknown_size_ == 0) unknown_ = from;
        unknown_size_ = to - unknown_;
      } else {
        end_unknown();
        out_->push_back(static_cast<int32_t>(path.token));
      }
    }
  }

  // Neighbouring unknown characters are one; tokenizers looks for their text in the vocabulary.
  void end_unknown() {
    if (unknown_size_ == 0) return;
    const StringView text(text_.data() + unknown_, unknown_size_);
    unknown_size_ = 0;
    const uint32_t token = single_ ? kNone : whole(text);
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

  const Table& table_;
  StringView text_;
  bool single_;
  double unknown_score_;
  std::vector<BestPath>& paths_;  // to each position from base_ on
  std::vector<uint32_t> steps_;
  std::vector<int32_t>* out_;
  size_t base_ = 0, reach_ = 0;
  size_t unknown_ = 0, unknown_size_ = 0;
};

}  // namespace

void encode_unigram(const Table& table, StringView text, Scratch* scratch,
                    std::vector<int32_t>* out) {
  if (!text.empty()) Search(table, text, scratch, out).run();
}

}  // namespace rushlight::llm
