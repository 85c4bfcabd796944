// Well-formed files with senseless plans: random values, lists, arguments, moves and jumps for all
// kernels. Damaged files rarely pass the verifier. These files do, and test whether the loader and
// the kernels handle what it cannot refuse. Most useful with RUSHLIGHT_SANITIZE=ON.
//
// Usage: fuzz_plans ROUNDS: prints how many plans loaded and how many instructions succeeded.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "program_builder.h"
#include "rushlight/module/module.h"
#include "seed.h"
#include "test_kernels.h"

namespace {

using namespace rushlight;
using namespace rushlight::test;

constexpr int64_t kArena = 1 << 16;

class PlanMaker {
 public:
  PlanMaker(unsigned seed, const KernelTable& kernels) : random_(seed), kernels_(kernels) {}

  std::vector<uint8_t> make() {
    plan_ = Plan();
    plan_.arenas = {0, kArena};
    end_of_arena_ = 0;
    for (int i = 0; i < 3; ++i) tensor();
    const size_t n = 1 + below(6);
    for (size_t i = 0; i < n; ++i) instruction();
    for (size_t i = 0; i < 1 + below(3); ++i) plan_.outputs.push_back(any_value());
    ProgramFile file;
    file.plans = {plan_};
    file.segments = {std::vector<uint8_t>(256, 1)};
    file.constants = {0, 0};
    return file.bytes();
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  bool one_in(size_t n) { return below(n) == 0; }

  template <typename T>
  T pick(std::initializer_list<T> values) {
    return *(values.begin() + below(values.size()));
  }
  int32_t any_value() { return static_cast<int32_t>(below(plan_.values.size())); }

  // Tensors share a few shapes, so that some fit each other.
  int32_t tensor() {
    TensorOptions options;
    options.dtype = one_in(3) ? pick<int8_t>({0, 1, 3, 4, 5, 7, 11, 15}) : int8_t{6};
    options.dynamism = one_in(3);
    const size_t rank = one_in(4) ? below(6) : 2 + below(3);
    std::vector<int32_t> sizes;
    for (size_t i = 0; i < rank; ++i) sizes.push_back(pick<int32_t>({1, 2, 2, 3, 3, 4, 0}));
    if (rank == 4 && one_in(4)) options.dim_order = {0, 2, 3, 1};
    size_t bytes = element_size(static_cast<DType>(options.dtype));
    for (int32_t size : sizes) bytes *= static_cast<size_t>(size);
    if (one_in(5)) options.memory_id = -1;
    if (options.memory_id == -1 && bytes <= 256 && !one_in(3)) options.constant = 1;
    if (options.memory_id == -1 && options.constant == 0 && rank > 0 && one_in(2)) {
      options.dynamism = 2;
    }
    options.offset = one_in(6) ? 0 : end_of_arena_;
    end_of_arena_ = (end_of_arena_ + bytes + 15) / 16 * 16 % (kArena / 2);
    return remember(tensors_of_plan(), plan_.tensor(sizes, options));
  }
  std::vector<int32_t>& tensors_of_plan() {
    if (plan_.values.empty()) tensors_.clear();
    return tensors_;
  }
  static int32_t remember(std::vector<int32_t>& list, int32_t index) {
    list.push_back(index);
    return index;
  }
  int32_t some_tensor() { return one_in(2) ? tensor() : tensors_[below(tensors_.size())]; }
  int32_t number() {
    switch (below(4)) {
      case 0:
        return plan_.boolean(one_in(2));
      case 1:
        return plan_.real(pick<double>({0.0, 1.0, -1.0, 0.5, 1e300, -3.7}));
      default:
        return integer();
    }
  }
  int32_t integer() {
    return plan_.integer(pick<int64_t>({0, 1, 2, 3, -1, -2, 4, 6, 7, 100, INT64_MAX, INT64_MIN}));
  }
  int32_t list(char letter) {
    const size_t n = below(5);
    if (letter == 'I') {
      std::vector<int64_t> items;
      for (size_t i = 0; i < n; ++i) items.push_back(integer());
      return plan_.int_list(items);
    }
    if (letter == 'D') {
      const std::vector<double> items(n, 0.5);
      return plan_.value(8, Table().ref(0, vector_of(items)));
    }
    if (letter == 'B') {
      std::vector<uint8_t> items;
      for (size_t i = 0; i < n; ++i) items.push_back(static_cast<uint8_t>(below(3)));
      return plan_.value(9, Table().ref(0, vector_of(items)));
    }
    std::vector<int32_t> items;
    for (size_t i = 0; i < n; ++i) {
      items.push_back(letter == 'O' && one_in(3) ? -1 : some_tensor());
    }
    return plan_.tensor_list(items, letter == 'O');
  }
  int32_t argument(char letter) {
    switch (letter) {
      case 't':
      case 'w':
        return some_tensor();
      case 'T':
      case 'W':
      case 'O':
      case 'I':
      case 'D':
      case 'B':
        return list(letter);
      case 'S':
        return plan_.text(pick<const char*>({"", "none", "tanh", "trunc", "floor"}));
      case 'i':
        return one_in(10) ? number() : integer();
      case 'b':
        return plan_.boolean(one_in(2));
      case '=':
        return any_value();
      default:
        return number();
    }
  }
  void kernel_call() {
    const Kernel& kernel = kernels_[below(kernels_.size())];
    std::vector<int32_t> args;
    for (const char* at = kernel.signature; *at != '\0'; ++at) {
      const bool optional = *at == '?';
      if (optional) ++at;
      args.push_back(optional && one_in(2) ? plan_.none() : argument(*at));
    }
    plan_.call(kernel.name, args, "");  // the joined name can be used as well
  }
  void instruction() {
    const int32_t n = static_cast<int32_t>(plan_.instructions.size());
    switch (below(12)) {
      case 0:
        return plan_.move(any_value(), any_value());
      case 1:
        return plan_.jump_false(one_in(2) ? plan_.boolean(false) : any_value(),
                                static_cast<int32_t>(below(static_cast<size_t>(n) + 2)));
      case 2:
        return plan_.free(some_tensor());
      default:
        return kernel_call();
    }
  }

  std::mt19937 random_;
  const KernelTable& kernels_;
  Plan plan_;
  std::vector<int32_t> tensors_;
  size_t end_of_arena_ = 0;
};

struct Counts {
  size_t plans = 0;
  size_t loaded = 0;
  size_t instructions = 0;
  unsigned sum = 0;
};

void run_plan(const std::vector<uint8_t>& file, const KernelTable& kernels, Counts* counts) {
  ++counts->plans;
  ModuleOptions options;
  options.kernels = &kernels;
  options.memory_limit = uint64_t{4} << 20;
  options.scratch_bytes = 1 << 14;
  options.max_instructions = 30;
  Module module;
  if (!module.open_memory(file.data(), file.size(), options).ok()) return;
  Result<Method*> method = module.method("forward");
  if (!method.ok()) return;
  ++counts->loaded;
  Status status;
  while (status.ok()) {
    status = method.value()->step();
    counts->instructions += status.ok();
  }
  if (status.code() != Code::EndOfMethod) return;
  for (size_t i = 0; i < method.value()->n_outputs(); ++i) {
    const EValue& output = method.value()->output(i);
    if (!output.is_tensor()) continue;
    const Tensor& tensor = output.tensor();
    for (size_t k = 0; k < tensor.nbytes(); ++k) counts->sum += tensor.as<uint8_t>()[k];
  }
}

void run(const std::vector<uint8_t>& file, const KernelTable& kernels, Counts* counts) {
  const std::vector<uint8_t> before = file;
  run_plan(file, kernels, counts);
  if (file == before) return;
  std::fprintf(stderr, "plan %zu wrote to the program's constants\n", counts->plans);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  const size_t rounds = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1000;
  const KernelTable& kernels = default_kernels() != nullptr ? *default_kernels() : test_kernels();
  PlanMaker maker(seed_for(0), kernels);
  Counts counts;
  for (size_t round = 0; round < rounds; ++round) run(maker.make(), kernels, &counts);
  std::printf("%zu plans, %zu loaded, %zu instructions succeeded (%x)\n", counts.plans,
              counts.loaded, counts.instructions, counts.sum);
  return counts.loaded > 0 ? 0 : 1;
}
