// Delegates: what a backend gets, that it is destroyed, what happens if it fails, and what a tracer
// is told.
#include <functional>
#include <string>

#include "check.h"
#include "delegates.h"

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
  void begin(const char* name, StringView) override { log += std::string("(") + name + " "; }
  void end(const char*) override { log += ")"; }
  void begin_instruction(uint32_t chain, uint32_t i, InstructionKind, StringView name) override {
    log += std::to_string(chain) + "." + std::to_string(i) + ":" +
           std::string(name.data(), name.size());
  }
  void end_instruction(const InstructionArguments* arguments) override {
    if (arguments == nullptr) return;
    log += "/" + std::to_string(arguments->all.size()) + ">" +
           std::to_string(arguments->first_written) + " ";
  }
  void delegate_event(DelegateId, uint64_t, uint64_t, Span<const uint8_t>) override {}
  bool wants_delegate_value(DelegateId) const override { return false; }
  void delegate_value(DelegateId, const DelegateValue&) override {}
  void output(const EValue& value) override { log += value.is_tensor() ? "out" : "scalar"; }
};

// y = delegate(delegate(x)); the second delegate has another payload.
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
    options.tracer = kHasTracing ? &tracer : nullptr;
    loaded.allow_structures(64);
    status = loaded.load("forward", options);
  }
  BackendTable table;
  RecordingTracer tracer;
  Loaded loaded;
  Status status;
};

Status execute(Method& method) { return run_on(method, {1, 2}); }

void test_runs() {
  AddingBackend backend;
  {
    Run run(backend);
    CHECK(run.status.ok() && backend.alive == 2);
    CHECK(backend.specs == "key=7;" && backend.named == "w");
    CHECK(execute(run.loaded.method).ok());
    CHECK(first(run.loaded.method.output(0)) == 111);
    CHECK(run.tracer.log == (kHasTracing ? "(Method::init )(Method::execute 0.0:Adder/2>1 "
                                           "0.1:Adder/2>1 out)"
                                         : ""));
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

// If the second delegate fails, the first is destroyed immediately, and only once.
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
    CHECK(backend.specs == "key=7;" && backend.alive == 0);
    CHECK(execute(loaded.method).code() == Code::InvalidState);
  }
  CHECK(backend.alive == 0);
}

// Does what the test sets.
class FreeBackend : public Backend {
 public:
  std::function<Status(BackendInit&)> on_init = [](BackendInit&) { return Status(); };
  std::function<Status(const BackendRun&, EValue* const*)> on_run;

  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override {
    RL_TRY(on_init(init));
    return static_cast<void*>(this);
  }
  Status execute(const BackendRun& run, void*, EValue* const* args, size_t) override {
    return on_run(run, args);
  }
  void destroy(void*) override {}
};

// A loader that records what was released.
class RememberingLoader : public DataLoader {
 public:
  RememberingLoader(const void* data, size_t size) : image_(data, size) {}
  size_t size() const override { return image_.size(); }
  Result<Span<const uint8_t>> load(size_t offset, size_t size) override {
    return image_.load(offset, size);
  }
  void release(Span<const uint8_t> bytes) override { released = bytes; }
  Span<const uint8_t> released;

 private:
  MemoryLoader image_;
};

struct Free {
  explicit Free(bool dynamic = false) : loaded(one_delegate_file("Free", {1, 2, 3}, dynamic)) {
    CHECK(table.add("Free", &backend).ok());
  }
  Status load(MethodOptions options = {}) {
    options.backends = &table;
    loaded.allow_structures(1024);
    return loaded.load("forward", options);
  }
  FreeBackend backend;
  BackendTable table;
  Loaded loaded;
};

void test_place() {
  Free at_init;
  at_init.backend.on_init = [](BackendInit& init) {
    init.place->set(StringView("conv_3"));
    return init.message->fail(Code::NotSupported, "no such operator");
  };
  CHECK(at_init.load().code() == Code::NotSupported);
  CHECK(says(at_init.loaded.message, "forward: delegate 0 (Free): at conv_3: no such operator"));
  CHECK(at_init.loaded.method.failed_delegate() == 0);
  CHECK(std::string(at_init.loaded.method.failed_place()) == "conv_3");

  Free at_run;
  bool fails = true;
  at_run.backend.on_run = [&](const BackendRun& run, EValue* const*) {
    run.place->set(-12);
    return fails ? Status(Code::EndOfMethod) : Status();
  };
  CHECK(at_run.load().ok());
  Method& method = at_run.loaded.method;
  CHECK(execute(method).code() == Code::Internal);  // the method did not end
  CHECK(says(method.message(), "forward: instruction 0 (Free): at -12: Internal"));
  CHECK(method.failed_delegate() == 0 && method.delegate_of(0, 0) == 0);
  CHECK(method.delegate_of(0, 1) == Method::kNoDelegate);
  CHECK(method.delegate_of(1, 0) == Method::kNoDelegate);
  fails = false;
  CHECK(execute(method).ok() && method.failed_delegate() == Method::kNoDelegate);
}

void test_options() {
  const std::string long_key(64, 'k'), long_text(256, 't');
  BackendOptionsMap map;
  Message message;
  const BackendOption all[] = {BackendOption::of_int("threads", 2),
                               BackendOption::of_text("device", "cpu")};
  const BackendOption one[] = {BackendOption::of_int("threads", -7),
                               BackendOption::of_bool("fast", true)};
  CHECK(map.set("Free", all, message).ok());
  CHECK(map.set("Free", one, message, "forward").ok());
  CHECK(map.set("Free", all, message, "backward").ok());
  Free free;
  free.backend.on_init = [](BackendInit& init) {
    CHECK(init.options.size() == 4 && init.options.find("threads")->i == -7);
    CHECK(init.options.find("device")->text == "cpu" && init.options.find("fast")->i == 1);
    CHECK(init.options.find("slow") == nullptr);
    return Status();
  };
  MethodOptions options = {};
  options.backend_options = &map;
  CHECK(free.load(options).ok());

  const BackendOption bad_key[] = {BackendOption::of_bool({long_key.data(), 64}, true)};
  CHECK(map.set("Free", bad_key, message).code() == Code::InvalidArgument);
  CHECK(says(message, "a key of 64 bytes; 1 to 63 are allowed"));
  const BackendOption bad_text[] = {BackendOption::of_text("x", {long_text.data(), 256})};
  CHECK(map.set("Free", bad_text, message).code() == Code::InvalidArgument);
  CHECK(says(message, "'x' for Free has a text of 256 bytes; at most 255"));
  const BackendOption twice[] = {all[0], all[1], all[0]};
  CHECK(map.set("Free", twice, message).code() == Code::InvalidArgument);
  CHECK(says(message, "'threads' for Free is there twice"));
  CHECK(map.size() == 3);  // none of these were added
  for (const char* id : {"b", "c", "d", "e", "f", "g", "h"}) CHECK(map.set(id, all, message).ok());
  CHECK(map.set("i", all, message).code() == Code::InvalidArgument);
  CHECK(says(message, "for 8 backends"));
  CHECK(map.set("h", one, message).ok() && map.of("h", "any").size() == 2);
}

void test_payload_is_released() {
  for (const bool keeps : {true, false}) {
    const std::vector<uint8_t> file = one_delegate_file("Free", {1, 2, 3});
    std::vector<uint64_t> image(file.size() / 8 + 2);
    std::memcpy(image.data(), file.data(), file.size());
    RememberingLoader loader(image.data(), file.size());
    Free free;
    CHECK(free.loaded.program.load(loader).ok());
    free.backend.on_init = [&](BackendInit& init) {
      init.keeps_payload = keeps;
      init.payload = {};  // changing its own view has no effect
      return Status();
    };
    CHECK(free.load().ok() && (loader.released.size() == 3) == !keeps);
    if (!keeps) CHECK(loader.released[2] == 3);
  }
}

// Changes of its arguments that a backend must not make, whether it also fails or not. The method
// works again afterwards.
void test_unlawful_changes(bool fails) {
  int32_t other_sizes[] = {2};
  float elsewhere[2] = {};
  Tensor other;
  const struct {
    const char* says;
    std::function<void(EValue* const*)> change;
  } cases[] = {
      {"the memory of output 0", [&](EValue* const* a) { a[1]->tensor().data = elsewhere; }},
      {"the dtype of output 0", [](EValue* const* a) { a[1]->tensor().dtype = DType::Int32; }},
      {"the rank of output 0", [](EValue* const* a) { a[1]->tensor().rank = 0; }},
      {"the room of output 0", [](EValue* const* a) { a[1]->tensor().capacity = 1 << 20; }},
      {"the layout of output 0", [&](EValue* const* a) { a[1]->tensor().sizes = other_sizes; }},
      {"the sizes of output 0", [](EValue* const* a) { a[1]->tensor().sizes[0] = 1 << 20; }},
      {"the number of elements of output 0", [](EValue* const* a) { a[1]->tensor().numel = 9; }},
      {"the nature of output 0", [](EValue* const* a) { a[1]->tensor().planned = false; }},
      {"the strides", [](EValue* const* a) { a[1]->tensor().strides[0] = 7; }},
      {"the tensor of output 0", [&](EValue* const* a) { a[1]->t = &other; }},
      {"the kind of output 0", [](EValue* const* a) { a[1]->set_int(1); }},
      {"the sizes of input 0; it may only read it",
       [](EValue* const* a) { a[0]->tensor().sizes[0] = 1; }},
      {"the memory of input 0", [&](EValue* const* a) { a[0]->tensor().data = elsewhere; }},
  };
  for (const bool dynamic : {false, true}) {
    Free free(dynamic);
    CHECK(free.load().ok());
    Method& method = free.loaded.method;
    for (const auto& unlawful : cases) {
      free.backend.on_run = [&](const BackendRun& run, EValue* const* args) {
        CHECK(run.n_inputs == 1);
        unlawful.change(args);
        return fails ? run.message->fail(Code::NotSupported, "too warm") : Status();
      };
      CHECK(execute(method).code() == (fails ? Code::NotSupported : Code::Internal));
      if (fails) CHECK(says(method.message(), "(Free): too warm; the backend changed "));
      if (!dynamic) CHECK(says(method.message(), unlawful.says));
      free.backend.on_run = [](const BackendRun&, EValue* const* args) {
        args[1]->tensor().as<float>()[1] = args[0]->tensor().as<float>()[1];
        return Status();
      };
      CHECK(execute(method).ok() && method.output(0).tensor().as<float>()[1] == 2);
    }
  }
}

void test_resize() {
  Free free(true);
  CHECK(free.load().ok());
  Method& method = free.loaded.method;
  int32_t n = 1;
  free.backend.on_run = [&](const BackendRun& run, EValue* const* args) {
    return run.resize(args[1]->tensor(), {&n, 1});
  };
  CHECK(execute(method).ok() && method.output(0).tensor().numel == 1);
  n = 3;
  CHECK(execute(method).code() == Code::NotSupported);
  CHECK(says(method.message(), "a result has sizes (3,), but its output has (1,)"));
}

// With checks on, everything that a backend writes outside of its outputs is found and undone.
void test_stray_writes() {
  MethodOptions options = {};
  options.check_backends = true;
  const struct {
    const char* says;
    int at;  // index of a float, counted from output 0
  } cases[] = {{"past the end of output 0: 0 bytes behind it", 2},
               {"past the end of output 0: 216 bytes behind it", 56},
               {"wrote to byte 4 of its input 0", -3},
               {"none of its outputs: byte 8 of memory 1", -2}};
  for (const auto& stray : cases) {
    Free free;
    CHECK(free.load(options).ok());
    Method& method = free.loaded.method;
    uint32_t* written = nullptr;
    free.backend.on_run = [&](const BackendRun&, EValue* const* args) {
      args[1]->tensor().as<float>()[1] = 5;
      written = args[1]->tensor().as<uint32_t>() + stray.at;
      *written ^= 0xff;
      return Status();
    };
    CHECK(execute(method).code() == Code::Internal && says(method.message(), stray.says));
    const uint32_t now = *written;
    free.backend.on_run = [&](const BackendRun&, EValue* const* args) {
      args[1]->tensor().as<float>()[1] = 6;
      return Status();
    };
    CHECK(execute(method).ok() && method.output(0).tensor().as<float>()[1] == 6);
    CHECK(*written == now && (now & 0xff) == 0);
  }
  Free poor;
  poor.loaded.allow_structures(0);
  options.backends = &poor.table;
  CHECK(poor.loaded.load("forward", options).code() == Code::MemoryAllocationFailed);
  CHECK(says(poor.loaded.message, "checking its backends and kernels takes 256 bytes more"));
}

// The table drops a backend while a method is loaded with it.
void test_removed() {
  Free free;
  CHECK(free.load().ok());
  CHECK(free.table.remove("Free").ok() && free.table.remove("Free").code() == Code::NotFound);
  free.backend.on_run = [](const BackendRun&, EValue* const*) { return Status(); };
  CHECK(execute(free.loaded.method).ok());
}

}  // namespace

int main() {
  test_runs();
  test_failures();
  test_half_made();
  test_place();
  test_options();
  test_payload_is_released();
  test_unlawful_changes(false);
  test_unlawful_changes(true);
  test_resize();
  test_stray_writes();
  test_removed();
  return check_result();
}
