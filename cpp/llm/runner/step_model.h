// A model as the scheduler sees it: rows of tokens in, logits or hidden states out. The one that a
// program holds is in runner/module_model.h; tests have others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/delegate/kv_cache.h"
#include "rushlight/llm/adapters/adapter.h"

namespace rushlight::llm {

// What becomes the embedding of a text.
enum class Pooling : uint8_t {
  Last,   // the hidden state of the last token
  Mean,   // the mean of all
  First,  // that of the first: "cls"
};

struct ModelFacts {
  size_t vocabulary = 0;
  size_t context = 0;  // positions of a sequence
  size_t batch = 0;    // the most rows of a step
  size_t wanted = 0;   // the most rows of a step whose logits can be had
  size_t texts = 0;    // the most sequences that are worth computing at once; 0: any number
  KvLayout cache;
  size_t page_bytes = 0;
  size_t hidden = 0;  // elements of an embedding; 0: there is no method `embed`
  Pooling pooling = Pooling::Last;
  // The model has no cache and no `step`: texts are embedded whole.
  bool is_encoder = false;
  AdapterFacts adapters;
};

// The rows of one step: row i is tokens[i] at positions[i] of sequences[i], an index of `tables`.
// Rows of one sequence stand together, with ascending positions.
struct StepRows {
  Span<const int64_t> tokens;
  Span<const int64_t> positions;
  Span<const int64_t> sequences;
  Span<const int64_t> wanted;  // rows
  Span<const KvSequence> tables;
};

// The error of what only decoders do.
Status refuse_encoder(const char* what, Message* message);

class StepModel {
 public:
  virtual ~StepModel() = default;
  virtual const ModelFacts& facts() const = 0;
  // Stores the rows' keys and values in the pages, and gives the logits [wanted, vocabulary], which
  // may be changed and are valid until the next step. Repeating a step gives the same.
  virtual Result<Span<float>> step(const StepRows& rows, Message* message) = 0;
  // The same for the hidden states [wanted, hidden] of embeddings; all rows may be wanted. Texts of
  // an encoder come whole, and have no tables. Only if facts().hidden > 0.
  virtual Result<Span<float>> embed(const StepRows& rows, Message* message) = 0;
  // Of `count` tokens whose pages are given, how many of the first need not be computed again.
  virtual size_t kept(const KvSequence&, size_t count) const { return count; }
  // Of the weights and all else that the keys and values of a text depend on.
  virtual uint64_t digest() = 0;
};

}  // namespace rushlight::llm
