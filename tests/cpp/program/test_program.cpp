// Files that violate a rule: each gets its code and a message that names the problem and the place.
#include <cstring>
#include <functional>

#include "check.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

Status open(const std::vector<uint8_t>& file, Message* message) {
  MemoryLoader loader(file.data(), file.size());
  Program program;
  const Status status = program.load(loader);
  *message = program.message();
  CHECK(program.loaded() == status.ok());
  return status;
}

void test_not_a_program() {
  Message message;
  CHECK(open({}, &message).code() == Code::InvalidProgram && says(message, "only 0 bytes"));
  std::vector<uint8_t> file = file_of(add_plan());
  CHECK(open(file, &message).ok());
  const std::vector<uint8_t> good = file;
  std::memcpy(&file[4], "ET13", 4);
  CHECK(open(file, &message).code() == Code::InvalidProgram);
  CHECK(says(message, "the identifier is 'ET13', not 'ET12'; it has another version"));
  std::memcpy(&file[4], "FT01", 4);
  CHECK(!open(file, &message).ok() && says(message, "a data file (.ptd)"));
  std::memcpy(&file[4], "\x01\x02zz", 4);
  CHECK(!open(file, &message).ok() && says(message, "'??zz'"));
  for (size_t size = 0; size < good.size(); ++size) {
    CHECK(!open({good.begin(), good.begin() + static_cast<long>(size)}, &message).ok());
    CHECK(!message.empty());
  }
  ProgramFile newer;
  newer.version = 5;
  CHECK(open(newer.bytes(), &message).code() == Code::NotSupported);
  CHECK(says(message, "schema version 5"));
}

void test_headers() {
  Message message;
  const std::vector<uint8_t> good = file_of(add_plan());
  const auto damaged = [&](size_t at, uint64_t value, size_t bytes) {
    std::vector<uint8_t> file = good;
    std::memcpy(&file[8 + at], &value, bytes);
    return open(file, &message);
  };
  CHECK(damaged(4, 20, 4).code() == Code::InvalidProgram && says(message, "its length is 20"));
  CHECK(damaged(4, 0xffffffff, 4).code() == Code::InvalidProgram);
  CHECK(damaged(8, good.size() + 1, 8).code() == Code::InvalidProgram);
  CHECK(says(message, "may have been cut"));
  CHECK(damaged(8, 40, 8).code() == Code::InvalidProgram && says(message, "lead outside"));
  CHECK(damaged(16, ~0ull, 8).code() == Code::InvalidProgram);
  CHECK(damaged(24, ~0ull, 8).code() == Code::InvalidProgram);
  std::vector<uint8_t> longer = good;
  longer.resize(good.size() + 1000);
  CHECK(open(longer, &message).ok());  // bytes after the end are ignored
}

void test_segments() {
  Message message;
  ProgramFile file;
  file.segments = {std::vector<uint8_t>(8)};
  file.named = {{"a", 0}, {"b", 0}};
  CHECK(open(file.bytes(), &message).ok());
  file.named = {{"weights", 7}};
  CHECK(open(file.bytes(), &message).code() == Code::InvalidProgram);
  CHECK(says(message, "'weights' is in segment 7 of 1"));
  file.named.clear();
  file.constants = {0, 9};
  CHECK(open(file.bytes(), &message).code() == Code::InvalidProgram);
  CHECK(says(message, "number 1 of the constants starts at byte 9"));
  file.segments.clear();
  file.constants = {0, 0};
  CHECK(open(file.bytes(), &message).code() == Code::InvalidProgram);
}

void test_named_data() {
  ProgramFile file;
  file.segments = {{1, 2, 3}, {4}};
  file.named = {{"a/b", 1}, {"c", 0}};
  Loaded loaded(file.bytes());
  CHECK(loaded.opened.ok() && loaded.program.n_named_data() == 2);
  CHECK(loaded.program.named_data_key(0) == "a/b");
  CHECK(loaded.program.get("c")->size() == 3 && (*loaded.program.get("a/b"))[0] == 4);
  CHECK(loaded.program.get("d").status().code() == Code::NotFound);
}

// A binary search finds the same entry as a linear one: the first of equal keys.
void test_sorted_keys() {
  ProgramFile file;
  for (uint8_t i = 0; i < 40; ++i) {
    file.segments.push_back({i});
    file.named.emplace_back("weights/" + std::to_string(i * 7 % 20), i);
  }
  Loaded loaded(file.bytes());
  CHECK(loaded.opened.ok());
  std::vector<uint32_t> order(loaded.program.n_keys());
  for (const bool is_sorted : {false, true}) {
    if (is_sorted) loaded.program.sort_keys(order.data());
    for (uint8_t i = 0; i < 20; ++i) {
      Result<Span<const uint8_t>> data = loaded.program.get(file.named[i].first.c_str());
      CHECK(data.ok() && data->size() == 1 && (*data)[0] == i);
    }
    for (const char* key : {"", "weights/", "weights/20", "weights/00", "z"}) {
      CHECK(loaded.program.get(key).status().code() == Code::NotFound);
    }
  }
}

struct Case {
  const char* says;
  Code code;
  std::function<void(Plan&)> spoil;
};

Table tensor_value(const std::vector<int32_t>& sizes, const TensorOptions& options) {
  return Table().choice(0, 5, tensor_table(sizes, options));
}

template <typename F>
std::function<void(Plan&)> with_tensor(const std::vector<int32_t>& sizes, F change) {
  return [sizes, change](Plan& plan) {
    TensorOptions options;
    change(options);
    plan.values[1] = tensor_value(sizes, options);
  };
}

std::vector<Case> tensor_cases() {
  const Code program = Code::InvalidProgram, unsupported = Code::NotSupported;
  const std::vector<int32_t> sizes = {2, 3};
  using O = TensorOptions;
  return {
      {"value 1: there is no dtype 19", program, with_tensor(sizes, [](O& o) { o.dtype = 19; })},
      {"value 1: size 1 is -3", program, with_tensor({2, -3}, [](O&) {})},
      {"value 1: its sizes are too great", program,
       with_tensor({1 << 30, 1 << 30, 1 << 30}, [](O&) {})},
      {"value 1: its sizes are too great", program, with_tensor({1, 1 << 30, 1 << 30}, [](O&) {})},
      {"value 1: its dim order is not a permutation of its 2", program,
       with_tensor(sizes, [](O& o) { o.dim_order = {0, 0}; })},
      {"value 1: its dim order is not a permutation of its 2", program,
       with_tensor(sizes, [](O& o) { o.dim_order = {0}; })},
      {"value 1: its dynamism is 9", program, with_tensor(sizes, [](O& o) { o.dynamism = 9; })},
      {"value 1: a tensor without upper bound has a place or data", program,
       with_tensor(sizes, [](O& o) { o.dynamism = 2; })},
      {"value 1: a tensor without upper bound has no dimensions", program,
       with_tensor({}, [](O& o) { o.dynamism = 2, o.memory_id = -1; })},
      {"value 1: a tensor with a storage offset", unsupported,
       with_tensor(sizes, [](O& o) { o.storage_offset = 1; })},
      {"value 1: a tensor of rank 17", unsupported,
       with_tensor(std::vector<int32_t>(17, 1), [](O&) {})},
      {"value 1: memory id 0; there are 1 to 1", Code::InvalidArgument,
       with_tensor(sizes, [](O& o) { o.memory_id = 0; })},
      {"value 1: memory id 2; there are 1 to 1", Code::InvalidArgument,
       with_tensor(sizes, [](O& o) { o.memory_id = 2; })},
      {"value 1: 24 bytes at offset 240 leave memory 1 of 256", Code::MemoryAllocationFailed,
       with_tensor(sizes, [](O& o) { o.offset = 240; })},
      {"leave memory 1 of 256", Code::MemoryAllocationFailed,
       with_tensor(sizes, [](O& o) { o.offset = ~uint64_t{0} - 15; })},
      {"value 1: offset 2 is not aligned for float32", program,
       with_tensor(sizes, [](O& o) { o.offset = 2; })},
      {"value 1: there is no constant 3", Code::InvalidArgument,
       with_tensor(sizes,
                   [](O& o) {
                     o.constant = 3;
                     o.memory_id = -1;
                   })},
      {"value 1: there is no initial value 3", Code::InvalidArgument,
       with_tensor(sizes, [](O& o) { o.constant = 3; })},
      {"value 1: external data without a name", program,
       with_tensor(sizes,
                   [](O& o) {
                     o.external = true;
                     o.memory_id = -1;
                   })},
  };
}

std::vector<Case> plan_cases() {
  const Code program = Code::InvalidProgram;
  return {
      {"value 3: it is absent", program, [](Plan& p) { p.value(0, Table()); }},
      {"value 3: it is of kind 12", Code::NotSupported, [](Plan& p) { p.value(12, Table()); }},
      {"item 0 of the IntList, value 9", program, [](Plan& p) { p.int_list({9}); }},
      {"item 1 of the IntList, value 0, is not", program, [](Plan& p) { p.int_list({2, 0}); }},
      {"item 0 of the list, value 2, is not a Tensor", program,
       [](Plan& p) { p.tensor_list({2}); }},
      {"item 0 of the list, value 4", program, [](Plan& p) { p.tensor_list({4}); }},
      {"item 0 of the list, value -1", program, [](Plan& p) { p.tensor_list({-1}); }},
      {"item 0 of the list, value -2", program, [](Plan& p) { p.tensor_list({-2}, true); }},
      {"input 0 is value 3 of 3", program, [](Plan& p) { p.inputs = {3}; }},
      {"output 0 is value -1 of 3", program, [](Plan& p) { p.outputs = {-1}; }},
      {"memory 1 has the size -1", program, [](Plan& p) { p.arenas = {0, -1}; }},
      {"memory 2 has the size", program, [](Plan& p) { p.arenas = {0, INT64_MAX, INT64_MAX}; }},
      {"the list of buffer sizes is empty", program, [](Plan& p) { p.arenas = {}; }},
      {"instruction 1: argument 1 is value 7 of 3", program,
       [](Plan& p) { p.call("aten::add", {0, 7}); }},
      {"instruction 1: it calls operator 5 of 1", program,
       [](Plan& p) {
         p.instruction(1, Table().scalar<int32_t>(0, 5).ref(1, vector_of(std::vector<int32_t>())));
       }},
      {"instruction 1: it calls delegate 0 of 0", program, [](Plan& p) { p.delegate_call(0, {}); }},
      {"delegate 0: payload 3 of 0", program, [](Plan& p) { p.delegate("b", 3); }},
      {"instruction 1: what it moves is value 3", program, [](Plan& p) { p.move(3, 0); }},
      {"instruction 1: where it moves to is value -1", program, [](Plan& p) { p.move(0, -1); }},
      {"instruction 1: it moves value 0 to value 2", program, [](Plan& p) { p.move(0, 2); }},
      {"instruction 1: it moves value 3 to value 0", program,
       [](Plan& p) {
         TensorOptions options;
         options.dtype = 3;
         p.tensor({2, 3}, options);
         p.move(3, 0);
       }},
      {"instruction 1: the condition, value 0, is not a Bool", program,
       [](Plan& p) { p.jump_false(0, 0); }},
      {"instruction 1: it jumps to instruction 3 of 2", program,
       [](Plan& p) { p.jump_false(2, 3); }},
      {"instruction 1: it jumps to instruction -1 of 2", program,
       [](Plan& p) { p.jump_false(2, -1); }},
      {"instruction 1: the tensor to free is value 2", program, [](Plan& p) { p.free(2); }},
      {"instruction 1: there is none", program, [](Plan& p) { p.instruction(0, Table()); }},
      {"instruction 1: it is of kind 6", Code::NotSupported,
       [](Plan& p) { p.instruction(6, Table()); }},
      {"no kernel for aten::mul.out (instruction 1)", Code::OperatorMissing,
       [](Plan& p) { p.call("aten::mul", {0}); }},
      {"instruction 1 (aten::add.out): 2 arguments, but the operator takes 5", program,
       [](Plan& p) { p.call("aten::add", {0, 1}); }},
      {"instruction 1 (aten::add.out): argument 2 is Tensor, but the operator takes a number",
       program, [](Plan& p) { p.call("aten::add", {0, 0, 0, 1, 1}); }},
  };
}

void check_cases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    Plan plan = add_plan();
    c.spoil(plan);
    Loaded loaded(file_of(plan));
    CHECK(loaded.opened.ok());  // the file is valid; the method is not
    const Status status = loaded.load();
    if (status.code() != c.code)
      std::fprintf(stderr, "%s: got %s\n", c.says, code_name(status.code()));
    CHECK(status.code() == c.code);
    CHECK(says(loaded.message, "forward: ") && says(loaded.message, c.says));
  }
}

// One bad method leaves the others usable.
void test_other_methods_load() {
  ProgramFile file;
  file.plans = {add_plan(), add_plan()};
  file.plans[0].name = "bad";
  file.plans[0].inputs = {99};
  Loaded loaded(file.bytes());
  CHECK(loaded.opened.ok());
  CHECK(loaded.load("bad").code() == Code::InvalidProgram);
  Loaded again(file.bytes());
  CHECK(again.load("forward").ok());
  CHECK(again.load("backward").code() == Code::InvalidArgument);
  CHECK(says(again.message, "there is no method 'backward'; there are: bad forward"));
}

// All missing parts are reported at once.
void test_missing() {
  Plan plan = add_plan();
  plan.call("aten::mul", {0});
  plan.call("test::nothing", {}, "");
  plan.call("aten::sub", {0}, "");
  plan.delegate("SomeBackend", 0);
  ProgramFile file;
  file.plans = {plan};
  file.segments = {{1}};
  Loaded loaded(file.bytes());
  CHECK(loaded.load().code() == Code::OperatorMissing);
  CHECK(says(loaded.message,
             "forward: no kernel for aten::mul.out (instruction 1), aten::sub "
             "(instruction 3); no backend SomeBackend"));
  uint32_t cursor = 0;
  MissingOperator missing;
  char name[64];
  CHECK(loaded.method.next_missing_operator(&cursor, &missing));
  CHECK(missing.name.join(name, sizeof(name)) == "aten::mul.out" && missing.instruction == 1);
  CHECK(loaded.method.next_missing_operator(&cursor, &missing) && missing.instruction == 3);
  CHECK(missing.name.join(name, 6) == "aten:");
  CHECK(!loaded.method.next_missing_operator(&cursor, &missing));
  MissingBackend backend;
  cursor = 0;
  CHECK(loaded.method.next_missing_backend(&cursor, &backend));
  CHECK(backend.id == "SomeBackend" && backend.delegate == 0 && !backend.registered);
  CHECK(!loaded.method.next_missing_backend(&cursor, &backend));
}

// The memory that a method says it needs is exactly enough. Less is refused, and the message has
// the numbers.
void test_memory_is_exact() {
  const std::vector<uint8_t> file = file_of(add_plan());
  MemoryLoader loader(file.data(), file.size());
  Program program;
  CHECK(program.load(loader).ok());
  Result<MethodMeta> meta = program.method_meta("forward");
  CHECK(meta.ok() && meta->n_arenas() == 1 && meta->arena_bytes(0) == 256);
  CHECK(meta->input(0).tensor.nbytes == 24 && meta->total_arena_bytes() == 256);
  const size_t slack = Allocator::kAlignment - 1;
  const size_t bytes = Method::structure_bytes(meta.value()) - slack;
  alignas(16) uint8_t arena[256];
  const Span<uint8_t> arenas[] = {{arena, 256}};
  const Span<uint8_t> small_arenas[] = {{arena, 255}};
  std::vector<uint64_t> memory(bytes / 8 + 4);
  MethodOptions options = {};
  options.kernels = &test_kernels();
  for (const bool enough : {true, false}) {
    Allocator structures(memory.data(), enough ? bytes : bytes - 1);
    MethodMemory parts = {&structures, {arenas, 1}};
    Method method;
    CHECK(method.load(program, "forward", parts, options).ok() == enough);
    if (!enough) CHECK(says(method.message(), "forward: its structures take"));
  }
  Allocator structures(memory.data(), bytes);
  MethodMemory parts = {&structures, {small_arenas, 1}};
  Method method;
  CHECK(method.load(program, "forward", parts, options).code() == Code::MemoryAllocationFailed);
  CHECK(says(method.message(), "memory 1 takes 256 bytes; the arena given for it has 255"));
  CHECK(method.load(program, "forward", parts, options).code() == Code::AlreadyLoaded);
}

// Vectors that many tables share would make small files expensive.
void test_shared_vectors_are_bounded() {
  for (const bool is_shared : {false, true}) {
    Plan plan = add_plan();
    const NodePtr items = vector_of(std::vector<int64_t>(1000, 2));
    items->is_shared = is_shared;
    for (int i = 0; i < 50; ++i) plan.value(7, Table().ref(0, items));
    Loaded loaded(file_of(plan));
    CHECK(loaded.load().ok() == !is_shared);
    if (is_shared) CHECK(says(loaded.message, "its lists have more items than the file has bytes"));
  }
}

void test_shared_names_are_bounded() {
  for (const bool is_shared : {false, true}) {
    ProgramFile file;
    file.segments = {std::vector<uint8_t>(8)};
    file.shares_names = is_shared;
    for (int i = 0; i < 50; ++i) file.named.emplace_back(std::string(1000, 'k'), 0);
    Message message;
    CHECK(open(file.bytes(), &message).ok() == !is_shared);
    if (is_shared) CHECK(says(message, "the names of its data take more bytes than it has"));
  }
}

}  // namespace

int main() {
  test_not_a_program();
  test_headers();
  test_segments();
  test_named_data();
  test_sorted_keys();
  check_cases(tensor_cases());
  check_cases(plan_cases());
  test_other_methods_load();
  test_missing();
  test_memory_is_exact();
  test_shared_vectors_are_bounded();
  test_shared_names_are_bounded();
  return check_result();
}
