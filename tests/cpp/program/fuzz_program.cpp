// Damages program files and runs those that still load: nothing may crash, hang or read outside of
// the file. Most useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: fuzz_program ROUNDS FILE...: each file is truncated at every byte (at most ROUNDS times)
// and damaged ROUNDS times, with the same damage in every run of the test. Prints how many mutants
// loaded and ran. With 0 rounds the files are mutants themselves and run unchanged; none need to
// open. Otherwise the first program is created here: it has delegates whose backend reads and
// writes everything that it gets.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "delegates.h"
#include "rushlight/module/bundle.h"
#include "seed.h"
#include "test_kernels.h"

namespace {

using namespace rushlight;

constexpr uint64_t kMemoryLimit = uint64_t{64} << 20;
constexpr uint64_t kInstructions = 200;

unsigned sum_of(Span<const uint8_t> bytes) {
  unsigned sum = 0;
  for (const uint8_t byte : bytes) sum += byte;
  return sum;
}

unsigned sum_of(const Tensor* tensor) {
  if (tensor == nullptr || tensor->numel == 0) return 0;
  return sum_of({tensor->as<uint8_t>(), tensor->nbytes()});
}

// Reads every byte of its payload, specs and inputs, and writes every byte of its outputs.
class GreedyBackend : public Backend {
 public:
  bool available() const override { return true; }
  Result<void*> init(BackendInit& init) override {
    unsigned sum = sum_of(init.payload);
    for (const CompileSpec& spec : init.specs) {
      sum += sum_of(spec.value) + static_cast<unsigned>(spec.key.size());
    }
    const Result<Span<const uint8_t>> data = init.named_data->get("weights");
    if (data.ok()) sum += sum_of(data.value());
    init.keeps_payload = false;
    ++alive;
    return static_cast<void*>(new unsigned(sum));
  }
  Status execute(const BackendRun& run, void* handle, EValue* const* args, size_t n) override {
    unsigned sum = *static_cast<unsigned*>(handle);
    for (size_t i = 0; i < run.n_inputs; ++i) {
      const bool is_list = args[i]->tag == Tag::TensorList;
      for (size_t k = 0; is_list && k < args[i]->size(); ++k) sum += sum_of(args[i]->tensor_at(k));
      sum += sum_of(args[i]->tensor_or_null());
    }
    for (size_t i = run.n_inputs; i < n; ++i) {
      Tensor& output = args[i]->tensor();
      if (output.numel > 0) std::memset(output.data, static_cast<int>(sum), output.nbytes());
    }
    return {};
  }
  void destroy(void* handle) override {
    --alive;
    delete static_cast<unsigned*>(handle);
  }

  int alive = 0;
};

// Two delegates with a list, a constant, a dynamic size and named data.
std::vector<uint8_t> delegates_file() {
  using namespace rushlight::test;
  Plan plan;
  TensorOptions at, constant;
  at.dynamism = 1;
  const int32_t x = plan.tensor({4}, at);
  at.offset = 16;
  const int32_t y = plan.tensor({4}, at);
  at.offset = 32;
  const int32_t z = plan.tensor({4}, at);
  constant.memory_id = -1;
  constant.constant = 1;
  const int32_t weight = plan.tensor({4}, constant);
  const int32_t both = plan.tensor_list({x, weight});
  plan.delegate("Greedy", 1);
  plan.delegate("Greedy", 2);
  const Table spec = Table().ref(0, string_of("key")).ref(1, vector_of(std::vector<uint8_t>{7}));
  plan.delegates[1].ref(2, tables_of({spec}));
  plan.delegate_call(0, {both, x, y});
  plan.delegate_call(1, {y, weight, plan.integer(3), z});
  plan.inputs = {x};
  plan.outputs = {y, z};
  ProgramFile file;
  file.plans = {plan};
  file.segments = {std::vector<uint8_t>(16, 1), {1, 2, 3}, {4}, {5, 6}};
  file.constants = {0, 0};
  file.named = {{"weights", 3}};
  return file.bytes();
}

struct Counts {
  size_t mutants = 0;
  size_t opened = 0;
  size_t loaded = 0;
  size_t ran = 0;
  unsigned sum = 0;  // sum of all bytes of all outputs
};

// Reads every byte of the outputs, so that a sanitizer sees them.
unsigned read_outputs(const Method& method) {
  unsigned sum = 0;
  for (size_t i = 0; i < method.n_outputs(); ++i) {
    const EValue& output = method.output(i);
    if (!output.is_tensor()) continue;
    const Tensor& tensor = output.tensor();
    for (size_t k = 0; k < tensor.nbytes(); ++k) sum += tensor.as<uint8_t>()[k];
  }
  return sum;
}

// Sets ones of the maximum sizes; false if an input needs something else.
bool set_inputs(Method& method, std::vector<float>& ones) {
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const ValueMeta meta = method.meta().input(i);
    Status status = Code::InvalidArgument;
    if (meta.tag == Tag::Tensor && meta.tensor.nbytes <= kMemoryLimit) {
      if (ones.size() * sizeof(float) < meta.tensor.nbytes) {
        ones.resize(meta.tensor.nbytes / sizeof(float) + 1, 1.0f);
      }
    }
    if (meta.tag == Tag::Tensor && meta.tensor.nbytes <= ones.size() * sizeof(float)) {
      const HostTensor tensor(meta.tensor.dtype, meta.tensor.shape(), ones.data(),
                              meta.tensor.dim_order);
      status = method.set_input(i, tensor);
    }
    if (meta.tag == Tag::Int) status = method.set_input_int(i, meta.i);
    if (meta.tag == Tag::Double) status = method.set_input_double(i, meta.d);
    if (meta.tag == Tag::Bool) status = method.set_input_bool(i, meta.i != 0);
    if (meta.tag == Tag::String) status = method.set_input_string(i, meta.text);
    if (meta.tag == Tag::None) status = method.set_input_none(i);
    if (!status.ok()) return false;
  }
  return true;
}

void run_methods(Module& module, Counts* counts) {
  for (size_t i = 0; i < module.program().n_methods() && i < 8; ++i) {
    Result<Method*> method = module.method(module.program().method_name(i));
    if (!method.ok()) continue;
    ++counts->loaded;
    std::vector<float> ones(256, 1.0f);
    if (!set_inputs(*method.value(), ones)) continue;
    for (int again = 0; again < 2; ++again) {
      if (!method.value()->execute().ok()) break;
      ++counts->ran;
      counts->sum += read_outputs(*method.value());
    }
  }
}

// The test cases of a bundled program, and one more than there are.
void run_cases(Module& module, Counts* counts) {
  const Bundle* bundle = module.bundle();
  for (size_t i = 0; bundle != nullptr && i < bundle->n_suites() && i < 8; ++i) {
    for (size_t k = 0; k <= bundle->n_cases(i) && k < 8; ++k) {
      CaseReport report;
      if (!verify(module, bundle->method(i), k, report).ok()) continue;
      ++counts->ran;
      counts->sum += static_cast<unsigned>(report.n_wrong);
    }
  }
}

void run(const std::vector<uint8_t>& file, Counts* counts) {
  ++counts->mutants;
  // A heap block of exactly the file's size, so that reads beyond it are detected.
  std::vector<uint8_t> exact(file);
  exact.shrink_to_fit();
  ModuleOptions options;
  options.memory_limit = kMemoryLimit;
  options.scratch_bytes = 1 << 16;
  options.max_instructions = kInstructions;
  if (default_kernels() == nullptr) options.kernels = &rushlight::test::test_kernels();
  GreedyBackend backend;
  BackendTable table;
  (void)table.add("Greedy", &backend);
  options.backends = &table;
  options.check_backends = counts->mutants % 2 == 0;
  {
    Module module;
    if (!module.open_memory(exact.data(), exact.size(), options).ok()) return;
    ++counts->opened;
    run_methods(module, counts);
    run_cases(module, counts);
  }
  if (exact == file && backend.alive == 0) return;
  std::fprintf(stderr, "mutant %zu wrote to the program's constants, or left delegates behind\n",
               counts->mutants);
  std::abort();
}

// Changes bits, bytes, and numbers to values that are critical for indices and sizes.
void damage(std::vector<uint8_t>& file, std::mt19937& random) {
  static constexpr int32_t kNumbers[] = {
      0, 1, -1, 2, 127, 255, 0x7fff, 0x7fffffff, -2147483647 - 1};
  const unsigned n = 1 + random() % 4;
  for (unsigned i = 0; i < n; ++i) {
    const size_t at = random() % file.size();
    switch (random() % 4) {
      case 0:
        file[at] ^= static_cast<uint8_t>(1u << random() % 8);
        break;
      case 1:
        file[at] = static_cast<uint8_t>(random());
        break;
      case 2: {
        const int32_t number = kNumbers[random() % (sizeof(kNumbers) / sizeof(kNumbers[0]))];
        if (at + 4 <= file.size()) std::memcpy(&file[at / 4 * 4], &number, 4);
        break;
      }
      default: {  // four bytes from another place: an offset, an index, a size
        const size_t from = random() % file.size() / 4 * 4;
        if (at + 4 <= file.size() && from + 4 <= file.size()) {
          std::memmove(&file[at / 4 * 4], &file[from], 4);
        }
      }
    }
  }
}

bool read_file(const char* path, std::vector<uint8_t>* bytes) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  uint8_t buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    bytes->insert(bytes->end(), buffer, buffer + n);
  }
  std::fclose(file);
  return !bytes->empty();
}

// False if the undamaged file does not open although it must.
bool fuzz(const char* name, const std::vector<uint8_t>& file, size_t rounds) {
  Counts whole;
  run(file, &whole);
  Counts counts;
  const size_t stride = file.size() / (rounds + 1) + 1;
  for (size_t size = 0; rounds > 0 && size < file.size(); size += stride) {
    run({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}, &counts);
  }
  std::mt19937 random(test::seed_for(0));
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<uint8_t> mutant = file;
    damage(mutant, random);
    run(mutant, &counts);
  }
  const Counts& told = rounds > 0 ? counts : whole;
  std::printf("%s: %zu mutants, %zu opened, %zu methods loaded, %zu runs (%x)\n", name,
              told.mutants, told.opened, told.loaded, told.ran, told.sum);
  if (rounds == 0 || whole.opened > 0) return true;
  std::fprintf(stderr, "%s: does not open undamaged\n", name);
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: fuzz_program ROUNDS FILE...\n");
    return 2;
  }
  const size_t rounds = std::strtoul(argv[1], nullptr, 10);
  Counts whole;
  run(delegates_file(), &whole);
  if (whole.ran != 2) return 1;
  if (rounds > 0 && !fuzz("delegates", delegates_file(), 10 * rounds)) return 1;
  for (int i = 2; i < argc; ++i) {
    std::vector<uint8_t> file;
    if (!read_file(argv[i], &file)) {
      std::fprintf(stderr, "%s: cannot be read\n", argv[i]);
      return 1;
    }
    if (!fuzz(argv[i], file, rounds)) return 1;
  }
  return 0;
}
