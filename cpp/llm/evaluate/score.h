// How probable a model finds a given text: what perplexity is computed from.
#pragma once

#include <memory>
#include <vector>

#include "rushlight/llm/runner/scheduler.h"

namespace rushlight::llm {

// Each token but the first, with its log probability after those before it, and the most probable
// alternatives. Texts that are generated meanwhile go on between its steps. The tokens are the
// vocabulary's, and fit the context; `adapter` may be nullptr.
Result<std::vector<Drawn>> score(Scheduler& scheduler, Span<const int32_t> tokens,
                                 int32_t alternatives, std::shared_ptr<const Adapter> adapter,
                                 Message* message);

}  // namespace rushlight::llm
