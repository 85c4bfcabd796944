// What a method tells of a load, an input and a run that fails, in memory of the caller's.
#include <cstring>
#include <string>

#include "check.h"
#include "delegates.h"
#include "rushlight/core/host_tensor.h"
#include "rushlight/program/identity.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

struct Listener {
  FailureReport report;
  int calls = 0;

  MethodOptions options() {
    MethodOptions options = {};
    const auto count = [](const FailureReport& report, void* self) {
      CHECK(&report == &static_cast<Listener*>(self)->report);
      ++static_cast<Listener*>(self)->calls;
    };
    options.failure = {&report, count, this};
    return options;
  }
  bool is(FailurePhase phase, Code code, int wanted_calls = 1) const {
    return report.has_failure() && calls == wanted_calls &&
           report.phase == static_cast<uint8_t>(phase) &&
           report.code == static_cast<uint32_t>(code) && report.bytes == sizeof(FailureReport);
  }
};

// y = x + 2 * x, then a kernel that fails on y.
Plan failing_plan(const char* name) {
  Plan plan = add_plan();
  plan.name = name;
  plan.call("test::always_fails", {plan.outputs[0]}, "");
  return plan;
}

Status set_ones(Method& method, int32_t rows = 2) {
  const float ones[6] = {1, 1, 1, 1, 1, 1};
  return method.set_input(0, HostTensor(DType::Float32, {rows, 3}, ones));
}

void test_run() {
  ProgramFile file;
  file.plans = {add_plan(), failing_plan("second")};
  Listener listener;
  Loaded loaded(file.bytes());
  CHECK(loaded.load("second", listener.options()).ok() && listener.calls == 0);
  CHECK(set_ones(loaded.method).ok() && !listener.report.has_failure());
  for (int run = 1; run <= 3; ++run) {
    CHECK(loaded.method.execute().code() == Code::InvalidArgument);
    CHECK(listener.is(FailurePhase::Run, Code::InvalidArgument, run));
  }
  const FailureReport& report = listener.report;
  CHECK(std::string(report.method) == "second" && report.method_index == 1);
  CHECK(report.chain == 0 && report.instruction == 1 && report.delegate == FailureReport::kNone);
  CHECK(std::string(report.name) == "test::always_fails");
  CHECK(std::string(report.message) == loaded.method.message().text());
  CHECK(report.program == identity_of(loaded.program));
  CHECK(report.n_values == 1 && report.values[0].rank == 2 && report.values[0].sizes[0] == 2);
  CHECK(report.values[0].sizes[1] == 3 && report.values[0].number == 6);
  CHECK(report.n_events == 6 && report.events[5].instruction == 1 && report.events[5].run == 3);
  CHECK(report.events[4].instruction == 0 && report.events[4].method == 1);
  CHECK(report.events[5].ns >= report.events[4].ns && report.time_ns >= report.events[5].ns);
}

// The oldest events make room for the newest.
void test_many_events() {
  Listener listener;
  Loaded loaded(file_of(failing_plan("forward")));
  CHECK(loaded.load("forward", listener.options()).ok() && set_ones(loaded.method).ok());
  for (int run = 0; run < 100; ++run) CHECK(!loaded.method.execute().ok());
  const FailureReport& report = listener.report;
  CHECK(report.n_events == 200);
  for (uint64_t n = 200 - FailureReport::kEvents; n < 200; ++n) {
    const FailureEvent& event = report.events[n % FailureReport::kEvents];
    CHECK(event.instruction == n % 2 && event.run == n / 2 + 1);
  }
}

void test_steps() {
  Listener listener;
  Loaded loaded(file_of(failing_plan("forward")));
  CHECK(loaded.load("forward", listener.options()).ok() && set_ones(loaded.method).ok());
  CHECK(loaded.method.step().ok() && listener.calls == 0);
  CHECK(!loaded.method.step().ok());
  CHECK(listener.is(FailurePhase::Run, Code::InvalidArgument));
  CHECK(listener.report.instruction == 1);
  Loaded good(file_of(add_plan()));
  Listener none;
  CHECK(good.load("forward", none.options()).ok() && set_ones(good.method).ok());
  CHECK(good.method.step().ok() && good.method.step().code() == Code::EndOfMethod);
  CHECK(none.calls == 0 && none.report.n_events == 1);
}

void test_inputs() {
  Listener listener;
  Loaded loaded(file_of(failing_plan("forward")));
  CHECK(loaded.load("forward", listener.options()).ok() && set_ones(loaded.method).ok());
  CHECK(!loaded.method.execute().ok() && listener.calls == 1);
  CHECK(set_ones(loaded.method, 1).code() == Code::NotSupported);
  CHECK(listener.is(FailurePhase::Input, Code::NotSupported, 2));
  const FailureReport& report = listener.report;
  CHECK(report.input == 0 && report.n_values == 1 && report.values[0].sizes[0] == 1);
  CHECK(report.instruction == FailureReport::kNone && report.name[0] == '\0');
  CHECK(report.n_events == 2);  // of the run before
  CHECK(loaded.method.set_input_int(7, 1).code() == Code::InvalidArgument);
  CHECK(listener.is(FailurePhase::Input, Code::InvalidArgument, 3) && report.n_values == 0);
  Loaded unset(file_of(add_plan()));
  Listener other;
  CHECK(unset.load("forward", other.options()).ok() && !unset.method.execute().ok());
  CHECK(other.is(FailurePhase::Run, Code::InvalidState));
  CHECK(other.report.instruction == FailureReport::kNone);
}

void test_missing_kernel() {
  Plan plan = add_plan();
  plan.call("my::missing", {plan.outputs[0], plan.outputs[0]});
  Listener listener;
  Loaded loaded(file_of(plan));
  CHECK(loaded.load("forward", listener.options()).code() == Code::OperatorMissing);
  CHECK(listener.is(FailurePhase::Load, Code::OperatorMissing));
  CHECK(listener.report.instruction == 1 && listener.report.n_values == 2);
  CHECK(std::string(listener.report.name) == "my::missing.out");
  Listener unknown;
  Loaded other(file_of(plan));
  Method method;
  MethodMemory memory = {};
  std::vector<uint8_t> room(1 << 16);
  Allocator structures(room.data(), room.size());
  memory.structures = &structures;
  MethodOptions options = unknown.options();
  options.kernels = &test_kernels();
  CHECK(!method.load(other.program, "nothing", memory, options).ok());
  CHECK(unknown.is(FailurePhase::Load, Code::InvalidArgument));
  CHECK(unknown.report.method_index == UINT16_MAX && unknown.report.method[0] == '\0');
}

void test_memory() {
  Loaded loaded(file_of(add_plan()));
  const size_t wanted = Method::structure_bytes(loaded.program.method_meta("forward").value());
  alignas(64) static uint8_t room[1 << 16];
  alignas(64) static uint8_t arena[256];
  for (const bool has_structures : {false, true}) {
    Listener listener;
    MethodOptions options = listener.options();
    options.kernels = &test_kernels();
    Allocator structures(room, has_structures ? sizeof(room) : 100);
    const Span<uint8_t> arenas[] = {{arena, 32}};
    MethodMemory memory = {};
    memory.structures = &structures;
    memory.arenas = arenas;
    Method method;
    CHECK(method.load(loaded.program, "forward", memory, options).code() ==
          Code::MemoryAllocationFailed);
    CHECK(listener.is(FailurePhase::Load, Code::MemoryAllocationFailed));
    const FailureReport& report = listener.report;
    CHECK(report.n_memories == (has_structures ? 1U : 2U));
    const FailureMemory& last = report.memories[report.n_memories - 1];
    CHECK(last.kind == FailureMemory::Arena && last.id == 1);
    CHECK(last.wanted == 256 && last.available == 32);
    if (has_structures) continue;
    CHECK(report.memories[0].kind == FailureMemory::Structures);
    CHECK(report.memories[0].wanted == wanted && report.memories[0].available == 100);
  }
}

class PlacedBackend : public Backend {
 public:
  bool fails_init = false;
  const char* place = "";
  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override {
    init.place->enter(7);
    if (!fails_init) return static_cast<void*>(this);
    init.place->set(StringView(place));
    return init.message->fail(Code::DelegateInvalidCompatibility, "another version");
  }
  Status execute(const BackendRun& run, void*, EValue* const*, size_t) override {
    run.place->enter(12);
    run.place->set(StringView(place));
    return run.message->fail(Code::Internal, "it does not work");
  }
  void destroy(void*) override {}
};

void test_delegates() {
  for (const bool fails_init : {false, true}) {
    PlacedBackend backend;
    backend.fails_init = fails_init;
    backend.place = "conv:3";
    BackendTable table;
    CHECK(table.add("Placed", &backend).ok());
    Listener listener;
    MethodOptions options = listener.options();
    options.backends = &table;
    Loaded loaded(one_delegate_file("Placed", {}));
    CHECK(loaded.load("forward", options).ok() == !fails_init);
    if (!fails_init) CHECK(!run_on(loaded.method, {1, 2}).ok());
    const FailureReport& report = listener.report;
    CHECK(listener.is(fails_init ? FailurePhase::Load : FailurePhase::Run,
                      fails_init ? Code::DelegateInvalidCompatibility : Code::Internal));
    CHECK(report.delegate == 0 && std::string(report.name) == "Placed");
    CHECK(std::string(report.place) == "conv:3");
    CHECK(report.instruction == (fails_init ? FailureReport::kNone : 0U));
    if (fails_init) continue;
    CHECK(report.n_values == 2 && report.values[0].flags == 0);
    CHECK(report.values[1].flags == FailureValue::kWritten);
    // A place that was only entered is not blamed for an error, only for a crash.
    backend.place = "";
    CHECK(!run_on(loaded.method, {1, 2}).ok() && report.place[0] == '\0');
    CHECK(loaded.method.report_crash(11, 64, true) == &report);
    CHECK(report.signal == 11 && report.address == 64);
  }
}

// The checksum is zlib's, of all that follows it; another program has another identity.
void test_content() {
  Listener listener;
  Loaded loaded(file_of(failing_plan("forward")));
  CHECK(loaded.load("forward", listener.options()).ok() && set_ones(loaded.method).ok());
  CHECK(!loaded.method.execute().ok());
  const Span<const uint8_t> content = listener.report.content();
  CHECK(std::memcmp(content.data(), "RLFR", 4) == 0 && content.size() <= 4096);
  uint32_t crc = ~uint32_t{0};
  for (size_t i = 16; i < content.size(); ++i) {
    crc ^= content[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
  }
  CHECK(~crc == listener.report.checksum);
  Loaded other(file_of(failing_plan("backward")));
  CHECK(identity_of(other.program) != identity_of(loaded.program));
  Loaded same(file_of(failing_plan("forward")));
  CHECK(identity_of(same.program) == identity_of(loaded.program));
}

// Texts and lists that find no room are cut, and numbers are kept.
void test_limits() {
  FailureReport report;
  report.clear();
  EValue value;
  for (uint32_t i = 0; i < 100; ++i) {
    value.set_int(-int64_t{i});
    report.add_value(i, value, 0);
    report.add_memory(FailureMemory::Arena, i, i, 0);
  }
  CHECK(report.n_values == 100 && report.values[FailureReport::kValues - 1].number == -15);
  CHECK(report.n_memories == 100 && report.memories[FailureReport::kMemories - 1].id == 7);
  const std::string text(5000, 'x');
  set_text(report.method, StringView(text.data(), text.size()));
  CHECK(std::strlen(report.method) == sizeof(report.method) - 1);
}

}  // namespace

int main() {
  test_run();
  test_many_events();
  test_steps();
  test_inputs();
  test_missing_kernel();
  test_memory();
  test_delegates();
  test_content();
  test_limits();
  return check_result();
}
