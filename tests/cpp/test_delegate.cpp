// Delegates: what a backend is given, that it is destroyed, what happens if it fails; and what a
// tracer is told.
#include <string>

#include "check.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

// Adds its payload's first byte to every element of its input.
class AddingBackend : public Backend {
 public:
  bool is_available = true;
  bool fails_init = false;
  bool fails_run = false;
  int alive = 0;
  std::string specs;
  std::string named;

  bool available() const override { return is_available; }
  Result<void*> init(BackendInit& init) override {
    if (fails_init) return init.message->fail(Code::DelegateInvalidCompatibility, "payload v9");
    for (const CompileSpec& spec : init.specs) {
      specs += std::string(spec.key.data(), spec.key.size()) + "=" +
               std::to_string(spec.value.empty() ? -1 : spec.value[0]) + ";";
    }
    Result<Span<const uint8_t>> weights = init.named_data->get("weights");
    if (weights.ok()) named.assign(weights->begin(), weights->end());
    auto* state = init.allocator->allocate_array<uint8_t>(1);
    if (state == nullptr) return Code::DelegateMemoryAllocationFailed;
    *state = init.payload[0];
    ++alive;
    return static_cast<void*>(state);
  }
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n) override {
    if (fails_run) return Code::DelegateInvalidHandle;
    if (n != 2 || run.scratch->allocate(8) == nullptr) return Code::Internal;
    const Tensor& in = args[0]->tensor();
    Tensor& out = args[1]->tensor();
    RL_TRY(out.resize(in.shape()));
    for (int64_t i = 0; i < in.numel; ++i) {
      out.as<float>()[i] = in.as<float>()[i] + *static_cast<uint8_t*>(handle);
    }
    return {};
  }
  void destroy(void*) override { --alive; }
};

class RecordingTracer : public Tracer {
 public:
  std::string log;
  void begin(const char* name) override { log += std::string("(") + name + " "; }
  void end(const char*) override { log += ")"; }
  void begin_instruction(uint32_t chain, uint32_t i, InstructionKind, StringView name) override {
    log += std::to_string(chain) + "." + std::to_string(i) + ":" +
           std::string(name.data(), name.size());
  }
  void end_instruction(uint32_t, uint32_t, EValue* const*, uint32_t n_args) override {
    log += "/" + std::to_string(n_args) + " ";
  }
  void delegate_event(const char*, int64_t, uint64_t, uint64_t) override {}
};

// y = delegate(delegate(x)), the second delegate with other payload.
std::vector<uint8_t> delegate_file() {
  Plan plan;
  const int32_t x = plan.tensor({2});
  TensorOptions at;
  at.offset = 16;
  const int32_t y = plan.tensor({2}, at);
  plan.delegate("Adder", 0);
  plan.delegate("Adder", 1);
  const Table spec = Table().ref(0, string_of("key")).ref(1, vector_of(std::vector<uint8_t>{7}));
  plan.delegates[1].ref(2, tables_of({spec}));
  plan.delegate_call(0, {x, y});
  plan.delegate_call(1, {y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  ProgramFile file;
  file.plans = {plan};
  file.segments = {{10}, {100}, {'w'}};
  file.named = {{"weights", 2}};
  return file.bytes();
}

struct Run {
  explicit Run(AddingBackend& backend, const char* id = "Adder") : loaded(delegate_file()) {
    CHECK(loaded.opened.ok() && table.add(id, &backend).ok());
    MethodOptions options = {};
    options.backends = &table;
    options.tracer = &tracer;
    loaded.allow_structures(64);
    status = loaded.load("forward", options);
  }
  BackendTable table;
  RecordingTracer tracer;
  Loaded loaded;
  Status status;
};

Status execute(Method& method) {
  float x[] = {1, 2};
  int32_t sizes[] = {2}, strides[] = {1};
  const uint8_t dim_order[] = {0};
  Tensor tensor;
  tensor.data = x;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = dim_order;
  tensor.numel = 2;
  tensor.rank = 1;
  RL_TRY(method.set_input(0, tensor));
  return method.execute();
}

void test_runs() {
  AddingBackend backend;
  {
    Run run(backend);
    CHECK(run.status.ok() && backend.alive == 2);
    CHECK(backend.specs == "key=7;" && backend.named == "w");
    CHECK(execute(run.loaded.method).ok());
    CHECK(first(run.loaded.method.output(0)) == 111);
    CHECK(run.tracer.log == "(Method::init )(Method::execute 0.0:Adder/2 0.1:Adder/2 )");
    run.loaded.method.set_tracer(nullptr);
    run.tracer.log.clear();
    CHECK(execute(run.loaded.method).ok() && run.tracer.log.empty());
  }
  CHECK(backend.alive == 0);
}

void test_failures() {
  {
    AddingBackend backend;
    backend.fails_init = true;
    Run run(backend);
    CHECK(run.status.code() == Code::DelegateInvalidCompatibility);
    CHECK(says(run.loaded.message, "forward: delegate 0 (Adder): payload v9"));
  }
  {
    AddingBackend backend;
    backend.fails_run = true;
    Run run(backend);
    CHECK(run.status.ok());
    CHECK(execute(run.loaded.method).code() == Code::DelegateInvalidHandle);
    CHECK(
        says(run.loaded.method.message(), "forward: instruction 0 (Adder): DelegateInvalidHandle"));
  }
  AddingBackend backend;
  Run other(backend, "Multiplier");
  CHECK(other.status.code() == Code::NotFound);
  CHECK(says(other.loaded.message, "forward: no backend Adder"));
  backend.is_available = false;
  Run unavailable(backend);
  CHECK(unavailable.status.code() == Code::NotFound && backend.alive == 0);
}

// The second delegate fails: the first is destroyed with the method.
void test_half_made() {
  AddingBackend backend;
  {
    Loaded loaded(delegate_file());
    BackendTable table;
    CHECK(table.add("Adder", &backend).ok());
    MethodOptions options = {};
    options.backends = &table;
    loaded.allow_structures(1);  // one byte of the backend's own: the second has none
    CHECK(loaded.load("forward", options).code() == Code::DelegateMemoryAllocationFailed);
    CHECK(says(loaded.message, "delegate 1 (Adder): DelegateMemoryAllocationFailed"));
    CHECK(backend.alive == 1);
  }
  CHECK(backend.alive == 0);
}

}  // namespace

int main() {
  test_runs();
  test_failures();
  test_half_made();
  return check_result();
}
