// Traces of language models.
#include "rushlight/c_api/llm/llm_object.h"

using namespace rushlight;
using namespace rushlight::c_api;

namespace {

// A model's recorder is exchanged and read while no step runs.
template <class Body>
rl_status with_traced_model(rl_llm* llm, rl_error* error, const Body& body) {
  return enter<LlmObject>(llm, Use::Shared, error, [&](LlmObject& object, Failing& failing) {
    Model& model = *object.model;
    const llm::Scheduler::Turn turn(model.runner.scheduler());
    return body(model, &failing.message);
  });
}

}  // namespace

rl_status rl_llm_trace_start(rl_llm* llm, const rl_trace_options* options, rl_error* error) {
  return with_traced_model(llm, error, [&](Model& model, Message* message) -> Status {
    std::unique_ptr<Trace> trace;
    RL_TRY(make_trace(options, &trace, message));
    llm::module_of(model.runner).set_tracer(&trace->recorder);
    model.trace = std::move(trace);
    return {};
  });
}

rl_status rl_llm_trace_stop(rl_llm* llm, rl_error* error) {
  return with_traced_model(llm, error, [](Model& model, Message*) {
    llm::module_of(model.runner).set_tracer(nullptr);
    return Status();
  });
}

rl_status rl_llm_trace_write(rl_llm* llm, rl_write_fn write, void* userdata, rl_error* error) {
  return with_traced_model(llm, error, [&](Model& model, Message* message) {
    return write_trace(model.trace.get(), write, userdata, message);
  });
}

rl_status rl_llm_trace_values(rl_llm* llm, rl_write_fn write, void* userdata, rl_error* error) {
  return with_traced_model(llm, error, [&](Model& model, Message* message) {
    return write_values(model.trace.get(), write, userdata, message);
  });
}

rl_status rl_llm_trace_save(rl_llm* llm, const char* path, rl_error* error) {
  return with_traced_model(llm, error, [&](Model& model, Message* message) {
    return save_trace(model.trace.get(), path, message);
  });
}
