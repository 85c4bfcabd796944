// Sessions of language models.
#include "rushlight/c_api/llm/llm_object.h"

namespace rushlight::c_api {
namespace {

Status hand_over_session(const std::shared_ptr<Model>& model, std::unique_ptr<llm::Session> session,
                         rl_session** handle, Message* message) {
  if (session == nullptr) return llm::out_of_memory("open a session", message);
  auto object = std::make_unique<SessionObject>();
  object->model = model;
  object->session = std::move(session);
  std::atomic<bool>* stop = &object->cancelled;
  return hand_over(std::move(object), stop, handle, message);
}

template <class Body>
rl_status with_session(rl_session* session, rl_error* error, const Body& body) {
  return enter<SessionObject>(
      session, Use::Alone, error,
      [&](SessionObject& object, Failing& failing) { return body(object, &failing.message); });
}

}  // namespace
}  // namespace rushlight::c_api

using namespace rushlight;
using namespace rushlight::c_api;

rl_status rl_session_open(rl_llm* llm, rl_session** session, rl_error* error) {
  return enter<LlmObject>(
      llm, Use::Shared, error, [&](LlmObject& object, Failing& failing) -> Status {
        RL_TRY(check_given(session, "session", &failing.message));
        return hand_over_session(object.model, object.model->runner.new_session(), session,
                                 &failing.message);
      });
}

rl_status rl_session_restore(rl_llm* llm, const char* path, rl_adapter* adapter,
                             rl_session** session, rl_error* error) {
  return enter<LlmObject>(
      llm, Use::Shared, error, [&](LlmObject& object, Failing& failing) -> Status {
        Message* message = &failing.message;
        RL_TRY(check_given(path, "path", message));
        RL_TRY(check_given(session, "session", message));
        const auto used = adapter_of(adapter, message);
        RL_TRY(used.status());
        auto restored = object.model->runner.restore(path, used.value(), message);
        RL_TRY(restored.status());
        return hand_over_session(object.model, std::move(restored.value()), session, message);
      });
}

rl_status rl_session_close(rl_session* session, rl_error* error) {
  return close<SessionObject>(session, error);
}

rl_status rl_session_generate(rl_session* session, const int32_t* prompt, size_t n_prompt,
                              const rl_generate_options* options, rl_piece_fn write, void* userdata,
                              rl_statistics* statistics, rl_error* error) {
  return with_session(session, error, [&](SessionObject& object, Message* message) -> Status {
    const auto items = items_of(prompt, n_prompt, "prompt", message);
    RL_TRY(items.status());
    return generate(*object.model, object.session.get(), &object.cancelled, items.value(),
                    {options, write, userdata, statistics}, message);
  });
}

rl_status rl_session_cancel(rl_session* session, rl_error* error) {
  return enter(error, [&](Failing& failing) {
    return stop_use(reinterpret_cast<uintptr_t>(session), Kind::Session, &failing.message);
  });
}

rl_status rl_session_fork(rl_session* session, rl_session** copy, rl_error* error) {
  return with_session(session, error, [&](SessionObject& object, Message* message) -> Status {
    RL_TRY(check_given(copy, "copy", message));
    auto fork = object.session->fork(message);
    RL_TRY(fork.status());
    return hand_over_session(object.model, std::move(fork.value()), copy, message);
  });
}

rl_status rl_session_rewind(rl_session* session, size_t count, rl_error* error) {
  return with_session(session, error, [&](SessionObject& object, Message* message) {
    return object.session->rewind(count, message);
  });
}

rl_status rl_session_set_tokens(rl_session* session, const int32_t* tokens, size_t n_tokens,
                                rl_error* error) {
  return with_session(session, error, [&](SessionObject& object, Message* message) -> Status {
    const auto items = items_of(tokens, n_tokens, "tokens", message);
    RL_TRY(items.status());
    return object.session->set_tokens(items.value(), message);
  });
}

rl_status rl_session_tokens(rl_session* session, int32_t* tokens, size_t capacity, size_t* count,
                            rl_error* error) {
  return with_session(session, error, [&](SessionObject& object, Message* message) -> Status {
    const auto all = object.session->tokens(message);
    RL_TRY(all.status());
    return give_items<int32_t>({all.value().data(), all.value().size()}, tokens, capacity, count,
                               message);
  });
}

rl_status rl_session_save(rl_session* session, const char* path, rl_error* error) {
  return with_session(session, error, [&](SessionObject& object, Message* message) -> Status {
    RL_TRY(check_given(path, "path", message));
    return object.session->save(path, message);
  });
}
