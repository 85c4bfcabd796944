// What templates can call: filters, tests, functions, and the methods of text and dictionaries.
#pragma once

#include "rushlight/core/span.h"
#include "rushlight/llm/template/builtins/arguments.h"

namespace rushlight::llm {

struct Filter {
  const char* name;
  Status (*apply)(RunContext& run, const Value& value, const Arguments& arguments, Value* out);
};

struct Test {
  const char* name;
  Status (*check)(RunContext& run, const Value& value, const Arguments& arguments, bool* out);
};

struct Function {
  const char* name;
  Status (*call)(RunContext& run, const Arguments& arguments, Value* out);
};

struct TextCall {
  RunContext& run;
  const char* name;  // of the method
  unsigned option;   // tells methods that share a function apart
  const Text& text;
  const Arguments& arguments;
};

struct TextMethod {
  const char* name;
  Status (*call)(const TextCall& call, Value* out);
  unsigned option = 0;
};

Span<const Filter> text_filters();
Span<const Filter> item_filters();
Span<const Test> tests();
Span<const Function> functions();
Span<const TextMethod> text_methods();

// Null if there is none of this name.
const Filter* find_filter(StringView name);
const Test* find_test(StringView name);
const Function* find_function(StringView name);
const TextMethod* find_text_method(StringView name);

}  // namespace rushlight::llm
