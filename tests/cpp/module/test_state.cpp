// State of a module: lists, finds, saves, restores, forks and resets it.
#include <cstring>
#include <vector>

#include "check.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

// An open module with a temporary file.
struct Opened {
  explicit Opened(std::vector<uint8_t> bytes) : file(std::move(bytes)) {
    ModuleOptions options;
    options.kernels = &test_kernels();
    CHECK(module.open_memory(file.data(), file.size(), options).ok());
  }
  std::vector<uint8_t> file;
  Module module;
};

float count(Module& module, const char* name) {
  Result<Method*> method = module.method(name);
  CHECK(method.ok() && method.value()->execute().ok());
  return method.ok() ? first(method.value()->output(0)) : -1;
}

float& value_of(Module& module, StringView name) {
  static float none = -1;
  Result<const StateEntry*> entry = module.find_state(name);
  CHECK(entry.ok());
  return entry.ok() ? *reinterpret_cast<float*>((*entry)->data) : none;
}

void test_list() {
  Opened opened(counting_file("counter"));
  Module& module = opened.module;
  CHECK(module.state()->size() == 0);  // no method is loaded
  CHECK(count(module, "also_up") == 11 && module.state()->size() == 1);
  CHECK((*module.state())[0].method == "also_up");
  CHECK(count(module, "up") == 12);
  const Span<const StateEntry> entries = module.state().value();
  CHECK(entries.size() == 1 && entries[0].name == "counter" && entries[0].method == "up");
  CHECK(entries[0].tensor.rank == 1 && entries[0].tensor.nbytes == 4);
  CHECK(value_of(module, "counter") == 12);
  value_of(module, "counter") = 40;
  CHECK(count(module, "also_up") == 41);
  CHECK(module.find_state("other").status().code() == Code::NotFound);
  CHECK(says(module.message(), "no loaded method has a state called 'other'"));
  module.unload("up");
  CHECK((*module.state())[0].method == "also_up" && value_of(module, "counter") == 41);
}

// Without names, state is what operators write in place.
void test_unnamed() {
  Opened opened(counting_file());
  CHECK(count(opened.module, "up") == 11 && count(opened.module, "also_up") == 12);
  CHECK(opened.module.state()->size() == 1);
  const StateEntry& entry = (*opened.module.state())[0];
  CHECK(entry.name.empty() && entry.method == "up" && entry.value == 0);
  CHECK(*reinterpret_cast<float*>(entry.data) == 12);
}

void test_snapshot() {
  Opened opened(counting_file("counter"));
  Module& module = opened.module;
  CHECK(count(module, "up") == 11 && count(module, "also_up") == 12);
  std::vector<uint8_t> bytes(module.snapshot_bytes().value());
  CHECK(module.snapshot(bytes.data(), bytes.size() - 1).code() == Code::InvalidArgument);
  CHECK(module.snapshot(bytes.data(), bytes.size()).ok());
  CHECK(count(module, "up") == 13);
  CHECK(module.restore(bytes.data(), bytes.size()).ok() && count(module, "up") == 13);

  for (size_t at : {size_t{0}, size_t{8}, size_t{16}}) {  // another magic, program, size
    std::vector<uint8_t> wrong = bytes;
    wrong[at] ^= 1;
    CHECK(module.restore(wrong.data(), wrong.size()).code() == Code::InvalidArgument);
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    CHECK(module.restore(bytes.data(), size).code() == Code::InvalidArgument);
  }
  CHECK(says(module.message(), "are not a snapshot of this program's state"));
  CHECK(value_of(module, "counter") == 13);
  Opened other(counting_file("other"));
  CHECK(other.module.load("up").ok() && other.module.load("also_up").ok());
  CHECK(other.module.restore(bytes.data(), bytes.size()).code() == Code::InvalidArgument);
}

// A snapshot includes the generator: another seed gives another snapshot, and restoring restores
// it.
void test_snapshot_of_generator() {
  Opened opened(counting_file("counter"));
  Module& module = opened.module;
  CHECK(module.load("up").ok());
  std::vector<uint8_t> first(module.snapshot_bytes().value());
  std::vector<uint8_t> second(first.size());
  CHECK(module.snapshot(first.data(), first.size()).ok());
  module.manual_seed(3);
  CHECK(module.snapshot(second.data(), second.size()).ok() && first != second);
  CHECK(module.restore(first.data(), first.size()).ok());
  CHECK(module.snapshot(second.data(), second.size()).ok() && first == second);

  module.manual_seed(3);
  Module fork;
  CHECK(module.fork(fork).ok() && module.snapshot(first.data(), first.size()).ok());
  CHECK(fork.snapshot(second.data(), second.size()).ok() && first == second);

  for (uint8_t& byte : first) byte |= byte == 0 ? 0 : 0xff;  // a position after the words
  std::memcpy(first.data(), second.data(), 24);              // the head of the snapshot
  CHECK(module.restore(first.data(), first.size()).code() == Code::InvalidArgument);
  CHECK(module.snapshot(first.data(), first.size()).ok() && first == second);
}

void test_fork_and_reset() {
  Opened opened(counting_file("counter"));
  Module& module = opened.module;
  CHECK(count(module, "up") == 11);
  Module fork;
  CHECK(module.fork(fork).ok() && fork.is_loaded("up") && !fork.is_loaded("also_up"));
  CHECK(count(module, "up") == 12 && count(module, "up") == 13);
  CHECK(count(fork, "also_up") == 12);
  CHECK(module.reset_state().ok() && value_of(module, "counter") == 10);
  CHECK(count(module, "up") == 11 && value_of(fork, "counter") == 12);
  Module closed, copy;
  CHECK(closed.fork(copy).code() == Code::InvalidState);
  CHECK(closed.state().status().code() == Code::InvalidState);
}

// State in a method's own arena. Two methods have a separate counter of that name each.
void test_own_state() {
  ProgramFile file;
  for (const char* name : {"one", "two"}) {
    Plan plan = counting_plan(name, 1, "counter");
    plan.arenas = {0, 64, name[0] == 'o' ? 64 : 128};  // of two sizes, so not shared
    file.plans.push_back(plan);
  }
  const float one = 1, start = 5;
  file.segments = {std::vector<uint8_t>(4), std::vector<uint8_t>(4)};
  std::memcpy(file.segments[0].data(), &one, 4);
  std::memcpy(file.segments[1].data(), &start, 4);
  file.constants = {0, 0};
  file.states = {0, 0};
  Opened opened(file.bytes());
  Module& module = opened.module;
  CHECK(count(module, "one") == 6 && value_of(module, "counter") == 6);
  CHECK(count(module, "two") == 6 && count(module, "two") == 7);
  CHECK(module.state()->size() == 2);
  CHECK(module.find_state("counter").status().code() == Code::InvalidArgument);
  CHECK(says(module.message(), "one and two have each a state of their own called 'counter'"));
  CHECK(module.reset_state().ok() && count(module, "one") == 6 && count(module, "two") == 6);
}

void test_refused_in_steps() {
  Opened opened(counting_file("counter"));
  Module& module = opened.module;
  Method& method = *module.method("up").value();
  std::vector<uint8_t> bytes(module.snapshot_bytes().value());
  CHECK(module.snapshot(bytes.data(), bytes.size()).ok());
  CHECK(method.step().ok() && method.in_steps());
  Module copy;
  CHECK(module.snapshot(bytes.data(), bytes.size()).code() == Code::InvalidState);
  CHECK(module.restore(bytes.data(), bytes.size()).code() == Code::InvalidState);
  CHECK(module.reset_state().code() == Code::InvalidState);
  CHECK(says(module.message(), "up runs in steps"));
  CHECK(module.fork(copy).code() == Code::InvalidState && !copy.is_open());
  CHECK(method.step().ok() && method.step().code() == Code::EndOfMethod && method.reset().ok());
  CHECK(module.restore(bytes.data(), bytes.size()).ok() && value_of(module, "counter") == 10);
}

}  // namespace

int main() {
  test_list();
  test_unnamed();
  test_snapshot();
  test_snapshot_of_generator();
  test_fork_and_reset();
  test_own_state();
  test_refused_in_steps();
  return check_result();
}
