// The recorder of events and what it writes: `test_recorder [FILE]` leaves the trace of three runs
// in FILE, and their values in FILE.values, for other readers.
#include "rushlight/trace/recorder.h"

#include <cstring>
#include <string>

#include "check.h"
#include "rushlight/module/module.h"
#include "rushlight/trace/etdump.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

class Bytes : public ByteSink {
 public:
  std::vector<uint8_t> all;
  bool write(Span<const uint8_t> bytes) override {
    if (all.size() + bytes.size() > limit) return false;
    all.insert(all.end(), bytes.begin(), bytes.end());
    return true;
  }
  size_t limit = SIZE_MAX;
};

std::vector<uint8_t> dump_of(const TraceRecorder& recorder) {
  Bytes bytes;
  CHECK(write_etdump(recorder, bytes).ok());
  CHECK(bytes.all.size() == etdump_size(recorder));
  return bytes.all;
}

struct Traced {
  explicit Traced(size_t memory, size_t for_values, ValueLevel level)
      : space(memory),
        value_space(for_values),
        values({value_space.data(), value_space.size()}),
        recorder({space.data(), space.size()}, &values, level),
        loaded(file_of(add_plan())) {
    MethodOptions options = {};
    options.tracer = &recorder;
    CHECK(loaded.load("forward", options).ok());
  }
  void run() {
    float x[] = {1, 2, 3, 4, 5, 6};
    CHECK(loaded.method.set_input(0, HostTensor(DType::Float32, {2, 3}, x)).ok());
    CHECK(loaded.method.execute().ok());
  }
  // "Execute: native_call_add.out OPERATOR_CALL …", a block after the other.
  std::string names() const {
    std::string names;
    for (const Record* r = recorder.first(); r != nullptr; r = recorder.next(*r)) {
      if (r->kind == RecordKind::Allocation) continue;
      const StringView name = recorder.text(r->name);
      names += std::string(name.data(), name.size());
      names += r->kind == RecordKind::Block ? ": " : r->kind == RecordKind::Value ? "= " : " ";
    }
    return names;
  }

  std::vector<uint8_t> space;
  std::vector<uint8_t> value_space;
  ValueBuffer values;
  TraceRecorder recorder;
  Loaded loaded;
};

const std::string kLoad = "Default: Method::init ";

void test_events() {
  Traced traced(size_t{1} << 16, 0, ValueLevel::None);
  traced.run();
  traced.run();
  const std::string run = "Execute: native_call_add.out OPERATOR_CALL Method::execute ";
  CHECK(traced.names() == kLoad + run + run);
  const Record* record = traced.recorder.first();
  CHECK(record->number == 3);  // with two allocations
  for (int i = 0; i < 4; ++i) record = traced.recorder.next(*record);
  CHECK(record->number == 3 && traced.recorder.text(record->metadata) == "forward");
  record = traced.recorder.next(*record);
  CHECK(record->chain == 0 && record->instruction == 0 && record->first <= record->second);
  traced.recorder.clear();
  CHECK(traced.recorder.first() == nullptr);
  traced.run();
  CHECK(traced.names() == run);
}

// What a load keeps, and the most scratch of a run.
void test_memory() {
  Traced traced(size_t{1} << 16, 0, ValueLevel::None);
  traced.run();
  std::string told;
  for (const Record* r = traced.recorder.first(); r != nullptr; r = traced.recorder.next(*r)) {
    if (r->kind != RecordKind::Allocation) continue;
    const StringView name = traced.recorder.text(r->name);
    told += std::string(name.data(), name.size());
    if (name == "planned memory 1") {
      CHECK(r->first == traced.loaded.program.method_meta("forward")->arena_bytes(0));
    }
    if (name == "structures") CHECK(r->first > 0);
    told += "; ";
  }
  CHECK(told == "planned memory 1; structures; ");  // the kernel takes no scratch
}

// Runs know the test case that they are of, loads do not.
void test_bundled_case() {
  Traced traced(size_t{1} << 16, 0, ValueLevel::None);
  traced.recorder.set_bundled_case(3);
  traced.run();
  traced.recorder.set_bundled_case(-1);
  traced.run();
  std::vector<int32_t> cases;
  for (const Record* r = traced.recorder.first(); r != nullptr; r = traced.recorder.next(*r)) {
    if (r->kind == RecordKind::Block) cases.push_back(r->instruction);
  }
  CHECK((cases == std::vector<int32_t>{-1, 3, -1}));
}

void test_values() {
  Traced traced(size_t{1} << 16, 4096, ValueLevel::All);
  traced.run();
  CHECK(traced.names() ==
        kLoad + "Execute: = native_call_add.out OPERATOR_CALL = Method::execute ");
  const float* out = reinterpret_cast<const float*>(traced.values.bytes().data() + 64);
  CHECK(traced.values.bytes().size() == 64 + 24 && out[0] == 3 && out[5] == 18);
}

// What finds no room is counted, and what was kept is a whole file, at every size.
void test_full() {
  for (size_t memory = 0; memory < 2000; memory += 24) {
    Traced traced(memory, 100, ValueLevel::All);
    traced.run();
    traced.run();
    dump_of(traced.recorder);
    const bool is_whole = traced.names().size() > 150;
    CHECK(is_whole || traced.recorder.dropped() + traced.recorder.dropped_values() > 0);
    // The second output, and all values of the second run.
    if (is_whole) CHECK(traced.recorder.dropped_values() == 2);
  }
}

void test_sink() {
  Traced traced(size_t{1} << 16, 0, ValueLevel::None);
  Bytes bytes;
  bytes.limit = 100;
  CHECK(write_etdump(traced.recorder, bytes).code() == Code::AccessFailed);
}

bool save(const char* path, Span<const uint8_t> bytes) {
  std::FILE* file = std::fopen(path, "wb");
  if (file == nullptr) return false;
  const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return std::fclose(file) == 0 && ok;
}

void write_files(const std::string& path) {
  Traced traced(size_t{1} << 16, 4096, ValueLevel::All);
  for (int i = 0; i < 3; ++i) traced.run();
  std::vector<uint8_t> dump = dump_of(traced.recorder);
  CHECK(save(path.c_str(), {dump.data(), dump.size()}));
  CHECK(save((path + ".values").c_str(), traced.values.bytes()));
}

}  // namespace

int main(int argc, char** argv) {
  test_events();
  test_memory();
  test_bundled_case();
  test_values();
  test_full();
  test_sink();
  if (argc > 1) write_files(argv[1]);
  return check_result();
}
