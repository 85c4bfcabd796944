// How probable a model finds a given text: what perplexity is computed from.
#pragma once

#include <memory>
#include <vector>

#include "rushlight/llm/runner/scheduler.h"

namespace rushlight::llm {

// The log probability of each token but the first, after those before it. Texts that are generated
// meanwhile go on between its steps. The tokens are the vocabulary's, and fit the context;
// `adapter` may be nullptr.
Result<std::vector<float>> score(Scheduler& scheduler, Span<const int32_t> tokens,
                                 std::shared_ptr<const Adapter> adapter, Message* message);

}  // namespace rushlight::llm
