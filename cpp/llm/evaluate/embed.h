// Embeddings: texts as vectors, which are near each other for texts of like meaning. Of an encoder,
// or of a decoder that was exported with `embed`.
//
//   const StringView texts[] = {"a lamp", "a light"};
//   auto vectors = llm::embed(runner, texts, {}, &message);
//   if (!vectors.ok()) return complain(message.text());
//   const float* second = vectors.value().data() + runner.facts().hidden;
#pragma once

#include <vector>

#include "rushlight/llm/runner/runner.h"

namespace rushlight::llm {

struct EmbedOptions {
  bool normalize = true;  // to the length 1
  bool truncate = false;  // texts beyond the context are cut; otherwise they are refused
  std::shared_ptr<const Adapter> adapter;  // nullptr: the model alone
};

// facts().hidden numbers for each text, one text after the other. Short texts are computed
// together, and nothing is padded. Texts that are generated meanwhile go on between the calls of
// the model. Special tokens in a text are text; those that begin and end each text are added.
Result<std::vector<float>> embed(Runner& runner, Span<const StringView> texts,
                                 const EmbedOptions& options, Message* message);
// The same for texts in tokens, to which nothing is added.
Result<std::vector<float>> embed(Runner& runner, Span<const std::vector<int32_t>> texts,
                                 const EmbedOptions& options, Message* message);

}  // namespace rushlight::llm
