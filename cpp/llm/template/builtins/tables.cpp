#include "rushlight/llm/template/builtins/tables.h"

namespace rushlight::llm {
namespace {

template <typename Entry>
const Entry* find(Span<const Entry> entries, StringView name) {
  for (const Entry& entry : entries) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

}  // namespace

const Filter* find_filter(StringView name) {
  const Filter* filter = find(text_filters(), name);
  return filter != nullptr ? filter : find(item_filters(), name);
}

const Test* find_test(StringView name) { return find(tests(), name); }
const Function* find_function(StringView name) { return find(functions(), name); }
const TextMethod* find_text_method(StringView name) { return find(text_methods(), name); }

}  // namespace rushlight::llm
