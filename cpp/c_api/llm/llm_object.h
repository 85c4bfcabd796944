// What handles of language models lead to.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "rushlight/c_api/backends.h"
#include "rushlight/c_api/entry.h"
#include "rushlight/c_api/trace.h"
#include "rushlight/llm/runner/load.h"
#include "rushlight/llm/runner/runner.h"

namespace rushlight::c_api {

// A runner, which lives as long as what was made of it, and is destroyed before what it uses.
struct Model {
  std::string chat_template;
  Backends backends;
  std::unique_ptr<Trace> trace;
  llm::Runner runner;
};

struct LlmObject {
  static constexpr Kind kKind = Kind::Llm;
  std::shared_ptr<Model> model;
};

struct SessionObject {
  static constexpr Kind kKind = Kind::Session;
  std::shared_ptr<Model> model;
  std::atomic<bool> cancelled{false};
  std::unique_ptr<llm::Session> session;  // destroyed before the model
};

struct GrammarObject {
  static constexpr Kind kKind = Kind::Grammar;
  std::shared_ptr<Model> model;
  std::shared_ptr<const llm::Grammar> grammar;
};

struct AdapterObject {
  static constexpr Kind kKind = Kind::Adapter;
  std::shared_ptr<Model> model;
  std::shared_ptr<const llm::Adapter> adapter;
};

// The adapter of a handle, which may be NULL: the model alone.
Result<std::shared_ptr<const llm::Adapter>> adapter_of(const rl_adapter* handle, Message* message);

// A request of the caller: where it goes, and what ends it.
struct Request {
  const rl_generate_options* options;
  rl_piece_fn write;
  void* userdata;
  rl_statistics* statistics;
};

// Generates texts, in a session if there is one; `cancelled` may be nullptr.
Status generate(Model& model, llm::Session* session, const std::atomic<bool>* cancelled,
                Span<const int32_t> prompt, const Request& request, Message* message);

inline Status fail_room(size_t capacity, size_t needed, Message* message) {
  return message->fail(Code::InvalidArgument, "there is room for %zu items, and there are %zu",
                       capacity, needed);
}

// Copies items to an array of the caller, which may be NULL, and sets *count to their number.
template <class T>
Status give_items(Span<const T> items, T* to, size_t capacity, size_t* count, Message* message) {
  if (count != nullptr) *count = items.size();
  if (to == nullptr) return check_given(count, "count", message);
  if (items.size() > capacity) return fail_room(capacity, items.size(), message);
  if (!items.empty()) std::memcpy(to, items.data(), items.size() * sizeof(T));
  return {};
}

// A caller's array. Returns InvalidArgument for NULL that has items.
template <class T>
Result<Span<const T>> items_of(const T* items, size_t count, const char* name, Message* message) {
  if (count > 0) RL_TRY(check_given(items, name, message));
  return Span<const T>(items, count);
}

}  // namespace rushlight::c_api
