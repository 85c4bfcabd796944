// What all parts of one run of a template share: where it is, how much it has done, and the error.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/template/values/value.h"

namespace rushlight::llm {

struct TemplateLimits {
  size_t work = size_t{1} << 24;    // evaluations, items and sixteenths of copied bytes
  size_t output = size_t{1} << 26;  // bytes of a text
  uint32_t depth = 400;             // of calls and expressions, and of values inside each other
  uint32_t weight = 1u << 20;       // values inside each other
};

// Names of variables, numbered once for a template.
struct Scope : Object {
  Ref<Scope> parent;
  std::vector<std::pair<uint32_t, Value>> variables;
  void set(uint32_t name, Value value);
};

class RunContext {
 public:
  RunContext(const TemplateLimits& limits, Message* message) : limits(limits), message(message) {}
  ~RunContext();
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  // Sets the error, which names the line.
  [[gnu::format(printf, 2, 3)]] Status fail(const char* format, ...);
  // The error where a value is used that is undefined.
  Status fail_undefined(const Value& value);
  // Counts work, and fails when it is too much.
  Status charge(size_t work);
  // Counts a text or list that was made.
  Status charge_bytes(size_t bytes);

  // Appends within the limits.
  Status append(const Text& part, Text* text);
  Status append(StringView part, Text* text);
  // Values with these inside, within the limits.
  Status make_text(Text text, Value* out);
  Status make_items(Kind kind, std::vector<Value> items, Value* out, const char* view = "");
  Status make_dict(std::vector<Entry> entries, Value* out);

  void keep(Ref<DictObject> space) { namespaces_.push_back(std::move(space)); }
  void keep(Ref<Scope> scope) { scopes_.push_back(std::move(scope)); }
  void keep(Ref<LoopObject> loop) { loops_.push_back(std::move(loop)); }

  TemplateLimits limits;
  Message* message;
  uint32_t line = 1;
  int64_t now = -1;  // the time in seconds since 1970 in the local time zone; -1: the clock

 private:
  Status charge_append(size_t bytes, const Text& text);
  Status check(Object& object, uint32_t depth, size_t weight);

  size_t work_ = 0;
  std::vector<Ref<DictObject>> namespaces_;
  std::vector<Ref<Scope>> scopes_;
  std::vector<Ref<LoopObject>> loops_;
};

}  // namespace rushlight::llm
