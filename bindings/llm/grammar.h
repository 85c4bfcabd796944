// What Python holds of grammars; shared by the classes that take them.
#pragma once

#include <memory>

#include "rushlight/llm/grammar/grammar.h"

namespace rushlight::python {

// nanobind cannot hold pointers to constants.
struct VocabularyHandle {
  std::shared_ptr<const llm::Vocabulary> vocabulary;
};

struct GrammarHandle {
  std::shared_ptr<const llm::Grammar> grammar;
};

}  // namespace rushlight::python
