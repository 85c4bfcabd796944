// The demo backend: the results of its instructions, and every kind of payload and argument that it
// must refuse. Most useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: test_demo_backend ROUNDS, the number of damaged payloads to run.
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "check.h"
#include "delegates.h"
#include "rushlight/backends/demo/demo_backend.h"
#include "rushlight/module/module.h"
#include "seed.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

class Named : public NamedData {
 public:
  std::map<std::string, std::vector<float>> data;
  size_t cut = 0;   // bytes that are missing at the end of every entry
  size_t skip = 0;  // bytes that are missing at its beginning

  Result<Span<const uint8_t>> get(StringView key) const override {
    const auto entry = data.find(std::string(key.data(), key.size()));
    if (entry == data.end()) return Code::NotFound;
    const auto* bytes = reinterpret_cast<const uint8_t*>(entry->second.data());
    return Span<const uint8_t>(bytes + skip, entry->second.size() * sizeof(float) - cut - skip);
  }
};

// A tensor with memory of exactly its size, so that a sanitizer sees writes beyond it.
struct Argument {
  explicit Argument(std::vector<int32_t> shape, std::vector<float> values = {},
                    DType dtype = DType::Float32)
      : sizes(std::move(shape)), strides(sizes.size() + 1), dims(sizes.size() + 1) {
    for (size_t d = 0; d < sizes.size(); ++d) dims[d] = static_cast<uint8_t>(d);
    const uint8_t rank = static_cast<uint8_t>(sizes.size());
    int64_t numel = 0;
    CHECK(count_elements({sizes.data(), rank}, &numel));
    CHECK(strides_of({sizes.data(), rank}, dims.data(), strides.data()));
    values.resize(static_cast<size_t>(numel), -77.0f);
    memory.reset(new float[values.size()]);
    std::copy(values.begin(), values.end(), memory.get());
    tensor.data = memory.get();
    tensor.sizes = sizes.data();
    tensor.strides = strides.data();
    tensor.dim_order = dims.data();
    tensor.numel = tensor.capacity = numel;
    tensor.dtype = dtype;
    tensor.dynamism = Dynamism::Bounded;
    tensor.rank = rank;
    value.tag = Tag::Tensor;
    value.t = &tensor;
  }
  std::vector<float> values() const {
    return {tensor.as<float>(), tensor.as<float>() + tensor.numel};
  }

  std::vector<int32_t> sizes, strides;
  std::vector<uint8_t> dims;
  std::unique_ptr<float[]> memory;
  Tensor tensor;
  EValue value;
};

// A delegate without a program. Its payload is in memory of exactly its size.
struct Delegate {
  explicit Delegate(const std::string& text, size_t bytes = 1 << 16,
                    Span<const BackendOption> options = {})
      : payload(text.begin(), text.end()), structures(bytes / 16 + 1) {
    named.data["w"] = {1, 2, 3, 4, 5, 6};
    named.data["b"] = {10, 20};
    allocator = Allocator(structures.data(), bytes);
    settings = BackendOptions({}, options);
  }
  Status init() {
    BackendInit in = {};
    in.method = "forward";
    in.payload = {payload.data(), payload.size()};
    in.options = settings;
    in.named_data = &named;
    in.allocator = &allocator;
    in.message = &message;
    in.place = &place;
    Result<void*> made = backend.init(in);
    if (!made.ok()) return made.status();
    CHECK(!in.keeps_payload);
    handle = made.value();
    payload = {};  // it will not be read again
    return {};
  }
  Status run(std::vector<Argument*> args, size_t n_outputs = 1) {
    BackendRun context = {};
    context.message = &message;
    context.place = &place;
    context.n_inputs = args.size() - n_outputs;
    std::vector<EValue*> values;
    for (Argument* arg : args) values.push_back(&arg->value);
    return backend.execute(context, handle, values.data(), values.size());
  }

  struct alignas(16) Block {
    uint8_t bytes[16];
  };
  DemoBackend backend;
  std::vector<uint8_t> payload;
  std::vector<Block> structures;
  Allocator allocator;
  BackendOptions settings;
  Named named;
  Message message;
  DelegatePlace place;
  void* handle = nullptr;
};

const char kAll[] =
    "demo 1\nin 2\ndata %2 w 2 3\ndata %3 b 2\n%4 = linear %0 %2 %3 : 8\n%5 = sin %4 : 8\n"
    "%6 = add %5 %1 : 8\n%7 = mul %6 %6 : 8\n%8 = mm %7 %2 : 12\nout %8\nout %4\n";

void test_all_instructions() {
  Delegate delegate(kAll);
  CHECK(delegate.init().ok());
  Argument x({2, 3}, {1, 0, 0, 0, 1, 0}), one({1}, {2}), y({2, 3}), z({2, 2});
  CHECK(delegate.run({&x, &one, &y, &z}, 2).ok());
  const std::vector<float> linear = {11, 24, 12, 25};
  CHECK(z.values() == linear);
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < 3; ++c) {
      double sum = 0;
      for (int k = 0; k < 2; ++k) {
        const double v = std::sin(linear[r * 2 + k]) + 2;
        sum += v * v * (k * 3 + c + 1);
      }
      CHECK(std::fabs(sum - y.values()[r * 3 + c]) < 1e-4);
    }
  }
  // Again with other sizes: within the capacities, and beyond them.
  Argument x4({4, 3}), y4({4, 3}), z4({4, 2}), x5({5, 3}), y5({5, 3}), z5({5, 2});
  CHECK(delegate.run({&x4, &one, &y4, &z4}, 2).ok());
  CHECK(!delegate.run({&x5, &one, &y5, &z5}, 2).ok());
  CHECK(std::string(delegate.place.text()) == "0" && says(delegate.message, "linear: "));
}

std::string binary(const char* name) {
  return std::string("demo 1\nin 2\n%2 = ") + name + " %0 %1 : 6\nout %2\n";
}

void test_sizes_of_elements() {
  struct Case {
    std::vector<int32_t> x, y, result;
    bool fits;
  };
  const Case cases[] = {
      {{2, 3}, {2, 3}, {2, 3}, true},
      {{2, 3}, {1}, {2, 3}, true},
      {{}, {2, 3}, {2, 3}, true},
      {{1, 1}, {3}, {1, 3}, true},
      {{3}, {1, 1, 1}, {1, 1, 3}, true},
      {{1}, {1, 1}, {1, 1}, true},
      {{}, {}, {}, true},
      {{0, 3}, {1}, {0, 3}, true},
      {{1, 1, 1}, {0}, {1, 1, 0}, true},
      {{2, 3}, {3, 2}, {2, 3}, false},
      {{2, 3}, {3}, {2, 3}, false},
      {{2}, {0}, {2}, false},
      {{7}, {7}, {7}, false},  // more than its capacity
      {{1, 1, 1, 1, 1}, {1}, {1, 1, 1, 1, 1}, false},
  };
  for (const Case& one : cases) {
    Delegate delegate(binary("mul"));
    CHECK(delegate.init().ok());
    Argument x(one.x), y(one.y), result(one.result);
    CHECK(delegate.run({&x, &y, &result}).ok() == one.fits);
    if (one.fits && result.tensor.numel > 0) CHECK(result.values()[0] == 77.0f * 77.0f);
  }
}

void test_sizes_of_products() {
  struct Case {
    const char* name;
    std::vector<int32_t> x, y, result;
    bool fits;
  };
  const Case cases[] = {
      {"mm", {2, 3}, {3, 2}, {2, 2}, true},
      {"mm", {2, 3}, {2, 3}, {2, 3}, false},
      {"mm", {3}, {3, 2}, {2}, false},
      {"mm", {2, 0}, {0, 3}, {2, 3}, true},
      {"mm", {2, 3}, {3, 0}, {2, 0}, true},
      {"linear", {3}, {2, 3}, {2}, true},
      {"linear", {1, 2, 3}, {2, 3}, {1, 2, 2}, true},
      {"linear", {2, 3}, {3, 2}, {2, 3}, false},
      {"linear", {2, 3}, {3}, {2}, false},
      {"linear", {}, {2, 3}, {2}, false},
      {"linear", {5, 3}, {2, 3}, {5, 2}, false},
  };
  for (const Case& one : cases) {
    Delegate delegate(binary(one.name));
    CHECK(delegate.init().ok());
    Argument x(one.x), y(one.y), result(one.result);
    CHECK(delegate.run({&x, &y, &result}).ok() == one.fits);
  }
  Delegate bias("demo 1\nin 3\n%3 = linear %0 %1 %2 : 6\nout %3\n");
  CHECK(bias.init().ok());
  Argument x({2, 3}), y({2, 3}), three({3}), result({2, 2});
  CHECK(!bias.run({&x, &y, &three, &result}).ok() && says(bias.message, "sizes of its operands"));
}

void test_arguments() {
  Delegate delegate(binary("add"));
  CHECK(delegate.init().ok());
  Argument x({2}), y({2}), ints({2}, {}, DType::Int32), wide({3}), narrow({1}), flat({1, 2});
  CHECK(delegate.run({&x, &y}).code() == Code::DelegateInvalidHandle);
  CHECK(says(delegate.message, "has 2 arguments, its payload 3"));
  CHECK(delegate.run({&x, &y, &x, &y}, 2).code() == Code::DelegateInvalidHandle);
  CHECK(!delegate.run({&x, &ints, &y}).ok() && says(delegate.message, "input 1 is not a dense"));
  CHECK(!delegate.run({&x, &y, &ints}).ok() && says(delegate.message, "output 0 is not a float32"));
  CHECK(!delegate.run({&x, &y, &narrow}).ok() && says(delegate.message, "no room for more"));
  CHECK(!delegate.run({&x, &y, &flat}).ok() && says(delegate.message, "that rank"));
  CHECK(delegate.run({&x, &y, &wide}).ok() && wide.tensor.numel == 2);
  Argument number({1}), transposed({2, 3}), nowhere({2}), result({2, 3});
  number.value.set_int(3);
  CHECK(!delegate.run({&number, &y, &x}).ok() && !delegate.run({&x, &y, &number}).ok());
  transposed.dims = {1, 0, 0};
  transposed.tensor.dim_order = transposed.dims.data();
  transposed.strides = {1, 2};
  transposed.tensor.strides = transposed.strides.data();
  CHECK(!delegate.run({&transposed, &transposed, &result}).ok() &&
        says(delegate.message, "row-major"));
  Argument square({2, 3});
  CHECK(!delegate.run({&square, &square, &transposed}).ok());
  CHECK(says(delegate.message, "output 0 is not row-major"));
  nowhere.tensor.data = nullptr;
  CHECK(!delegate.run({&nowhere, &y, &x}).ok());
}

// An output in the memory of an input, and an input that is passed through.
void test_shared_memory() {
  Delegate delegate("demo 1\nin 1\n%1 = add %0 %0 : 2\n%2 = sin %1 : 2\nout %1\nout %0\n");
  CHECK(delegate.init().ok());
  Argument x({2}, {1, 2}), y({2}), z({2});
  CHECK(delegate.run({&x, &y, &z}, 2).ok());
  CHECK(y.values() == std::vector<float>({2, 4}) && z.values() == x.values());
  z.tensor.data = x.tensor.data;
  CHECK(delegate.run({&x, &y, &z}, 2).ok() && x.values() == std::vector<float>({1, 2}));
}

void test_options() {
  const BackendOption at_run[] = {BackendOption::of_int("fail_at", 3)};
  Delegate runs(kAll, 1 << 16, at_run);
  CHECK(runs.init().ok());
  Argument x({2, 3}), one({1}), y({2, 3}), z({2, 2});
  CHECK(!runs.run({&x, &one, &y, &z}, 2).ok());
  CHECK(says(runs.message, "mul: it was told to fail") && runs.place.text()[0] == '3');
  CHECK(y.values()[0] == -77 && z.values()[0] == -77);
  const BackendOption at_init[] = {BackendOption::of_int("fail_init_at", 4)};
  Delegate inits(kAll, 1 << 16, at_init);
  CHECK(inits.init().code() == Code::DelegateInvalidCompatibility);
  CHECK(says(inits.message, "mm: it was told to fail") && inits.place.text()[0] == '4');
  const BackendOption beyond[] = {BackendOption::of_int("fail_init_at", 5),
                                  BackendOption::of_text("fail_at", "1")};
  Delegate neither(kAll, 1 << 16, beyond);
  CHECK(neither.init().ok() && neither.run({&x, &one, &y, &z}, 2).ok());
}

void test_payloads_that_are_none() {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"", "line 1 of the payload: it is not of version 1"},
      {"demo 1", "line 1 of the payload: the text is cut"},
      {"demo 2\nin 0\n", "line 1 of the payload: it is not of version 1"},
      {"demo 1\nin\n", "line 2 of the payload: \"in N\" is missing"},
      {"demo 1\nin x\n", "\"in N\" is missing"},
      {"demo 1\nin 99999999999\n", "\"in N\" is missing"},
      {"demo 1\nin 40000\n", "\"in N\" is missing"},
      {"demo 1\nin 1 2\n", "more than belongs there"},
      {"demo 1\nin 1\n", "it has no output"},
      {"demo 1\nin 1\nout %1\n", "line 3 of the payload: the output is a value"},
      {"demo 1\nin 1\nout 0\n", "the output is a value"},
      {"demo 1\nin 1\nout %0 %0\n", "more than belongs there"},
      {"demo 1\nin 1\n\n", "counted in order"},
      {"demo 1\nin 1\n%2 = sin %0 : 1\n", "counted in order"},
      {"demo 1\nin 1\n%1 sin %0 : 1\n", "\"=\" is missing"},
      {"demo 1\nin 1\n%1 = cos %0 : 1\n", "no such instruction"},
      {"demo 1\nin 1\n%1 = sin %1 : 1\n", "an operand is not there yet"},
      {"demo 1\nin 1\n%1 = sin : 1\n", "an operand is missing"},
      {"demo 1\nin 1\n%1 = sin %0 1\n", "an operand is missing"},
      {"demo 1\nin 1\n%1 = sin %0 %0 : 1\n", "too many operands"},
      {"demo 1\nin 1\n%1 = sin %0 :\n", "number of elements"},
      {"demo 1\nin 1\n%1 = sin %0 : -1\n", "number of elements"},
      {"demo 1\nin 1\n%1 = sin %0 : 1 1\n", "more than belongs there"},
      {"demo 1\nin 1\ndata %2 w 6\n", "counted in order"},
      {"demo 1\nin 1\ndata %1 v 6\n", "not in the program"},
      {"demo 1\nin 1\ndata %1\n", "not in the program"},
      {"demo 1\nin 1\ndata %1 w 2 -3\n", "a size is not a number"},
      {"demo 1\nin 1\ndata %1 w 1 1 1 2 3\n", "one too many"},
      {"demo 1\nin 1\ndata %1 w 7\n", "another size"},
      {"demo 1\nin 1\ndata %1 w\n", "another size"},
      {"demo 1\nin 1\ndata %1 w 65536 65536 65536 65536\n", "another size"},
  };
  for (const Case& one : cases) {
    Delegate delegate(one.text);
    const Code code = delegate.init().code();
    CHECK(code == Code::DelegateInvalidCompatibility && says(delegate.message, one.message));
  }
  Delegate cut(kAll), shifted(kAll);
  cut.named.cut = 1;
  shifted.named.skip = 2;
  shifted.named.cut = 2;
  CHECK(!cut.init().ok() && says(cut.message, "line 3 of the payload: its named data has another"));
  CHECK(!shifted.init().ok());
  Delegate placed("demo 1\nin 1\n%1 = sin %0 : 1\n%2 = cos %1 : 1\nout %2\n");
  CHECK(!placed.init().ok() && std::string(placed.place.text()) == "1");
}

void test_too_little_memory() {
  Delegate enough(kAll);
  CHECK(enough.init().ok());
  const size_t bytes = enough.allocator.used();
  for (size_t less = 0; less < bytes; less += 1) {
    Delegate delegate(kAll, less);
    CHECK(delegate.init().code() == Code::DelegateMemoryAllocationFailed);
    CHECK(says(delegate.message, "the method's memory has no room"));
  }
  Delegate huge("demo 1\nin 1\n%1 = sin %0 : 2147483647\nout %1\n");
  CHECK(huge.init().code() == Code::DelegateMemoryAllocationFailed);
  CHECK(std::string(huge.place.text()) == "0");
}

// Runs a damaged payload, if it loads, with arguments that may fit it.
bool survives(const std::string& text) {
  Delegate delegate(text, 1 << 14);
  if (!delegate.init().ok()) return false;
  Argument x({2, 3}), one({1}), y({2, 3}), z({2, 2});
  (void)delegate.run({&x, &one, &y, &z}, 2).ok();
  (void)delegate.run({&x, &y}).ok();
  return true;
}

void test_damage(int rounds) {
  const std::string whole = kAll;
  size_t loaded = 0;
  for (size_t n = 0; n < whole.size(); ++n) {
    // Text that ends after the line of an output is a program with one output.
    CHECK(survives(whole.substr(0, n)) == (n == whole.rfind("out")));
  }
  std::minstd_rand random(seed_for(0));
  const std::string letters = "%=: \n0123456789abdeimnostuwx\xff" + std::string(1, '\0');
  for (int i = 0; i < rounds; ++i) {
    std::string text = whole;
    for (unsigned k = 0; k <= random() % 3; ++k) {
      const size_t at = random() % text.size();
      const char letter = letters[random() % letters.size()];
      if (random() % 3 == 0)
        text.erase(at, 1 + random() % 9);
      else if (random() % 2 == 0)
        text.insert(at, 1, letter);
      else
        text[at] = letter;
      if (text.empty()) text = "\n";
    }
    loaded += survives(text) ? 1 : 0;
  }
  CHECK(rounds < 100 || loaded > 0);  // otherwise execute was not tested
}

// In a program, called by a method.
void test_in_a_method() {
  const std::string text = "demo 1\nin 1\n%1 = sin %0 : 2\n%2 = mul %1 %1 : 2\nout %2\n";
  DemoBackend backend;
  BackendTable table;
  CHECK(table.add(DemoBackend::kId, &backend).ok());
  Loaded loaded(one_delegate_file(DemoBackend::kId, {text.begin(), text.end()}));
  MethodOptions options = {};
  options.backends = &table;
  options.check_backends = true;
  loaded.allow_structures(4096);
  CHECK(loaded.load("forward", options).ok() && run_on(loaded.method, {1, 2}).ok());
  CHECK(std::fabs(first(loaded.method.output(0)) - std::sin(1.0f) * std::sin(1.0f)) < 1e-6f);
}

}  // namespace

int main(int argc, char** argv) {
  test_all_instructions();
  test_sizes_of_elements();
  test_sizes_of_products();
  test_arguments();
  test_shared_memory();
  test_options();
  test_payloads_that_are_none();
  test_too_little_memory();
  test_damage(argc > 1 ? std::atoi(argv[1]) : 200);
  test_in_a_method();
  return check_result();
}
