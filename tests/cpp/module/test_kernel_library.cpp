// Kernels of separately built libraries: a module that is given their path, or a table that is
// linked. Arguments: a library of kernels, one that is none, one that writes past its output, and
// one in plain C.
#include <cmath>
#include <string>

#include "check.h"
#include "rushlight/module/kernel_library.h"
#include "rushlight/module/module.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

std::string library_path, other_path, overrun_path, c_path;

constexpr char kSchema[] = "acme::snake.out(Tensor x, float a, *, Tensor(a!) out) -> Tensor(a!)\n";

// out = snake(x, a) for two numbers.
std::vector<uint8_t> snake_file(const std::string& schemas = kSchema) {
  Plan plan;
  const int32_t x = plan.tensor({2});
  const int32_t a = plan.real(2.0);
  TensorOptions after;
  after.offset = 64;
  const int32_t out = plan.tensor({2}, after);
  plan.inputs = {x};
  plan.outputs = {out};
  plan.call("acme::snake", {x, a, out, out});
  ProgramFile file;
  file.plans = {plan};
  if (!schemas.empty()) {
    file.segments = {{schemas.begin(), schemas.end()}};
    file.named = {{"rushlight/schemas", 0}};
  }
  return file.bytes();
}

bool computes(Module& module) {
  Result<Method*> method = module.method("forward");
  if (!method.ok()) return says(module.message(), "no failure");
  const float x[] = {0.5F, -1.0F};
  const HostTensor input(DType::Float32, {2}, x);
  CHECK((*method)->set_input(0, input).ok());
  if (!(*method)->execute().ok()) return says((*method)->message(), "no failure");
  const float* y = (*method)->output(0).tensor().as<float>();
  bool equal = true;
  for (size_t i = 0; i < 2; ++i) {
    const double sine = std::sin(2.0 * x[i]);
    equal = equal && std::fabs(y[i] - (x[i] + sine * sine / 2.0)) < 1e-6;
  }
  return equal;
}

void test_library() {
  for (const char* schemas : {kSchema, ""}) {
    const std::vector<uint8_t> file = snake_file(schemas);
    Module copy;
    {
      Module module;
      CHECK(module.open_memory(file.data(), file.size()).ok());
      CHECK(module.load("forward").code() == Code::OperatorMissing);
      CHECK(says(module.message(), "no kernel for acme::snake.out (instruction 0)"));
      CHECK(module.add_kernels(library_path.c_str()).ok() && computes(module));
      CHECK(module.add_kernels(library_path.c_str()).code() == Code::InvalidState);
      CHECK(module.clone(copy).ok());
    }
    CHECK(computes(copy));  // the library stays loaded
  }
}

void test_refusals() {
  const std::vector<uint8_t> file = snake_file();
  Module module;
  CHECK(module.add_kernels(library_path.c_str()).code() == Code::InvalidState);  // nothing is open
  CHECK(module.open_memory(file.data(), file.size()).ok());
  CHECK(module.add_kernels("no/such.so").code() == Code::AccessFailed);
  CHECK(says(module.message(), "no/such.so: the library cannot be loaded"));
  CHECK(module.add_kernels(other_path.c_str()).code() == Code::NotFound);
  CHECK(says(module.message(), "exports no rl_get_kernel_v1: it is not a library of kernels"));
  CHECK(module.add_kernels(library_path.c_str()).ok());
  CHECK(module.add_kernels(library_path.c_str()).ok());  // the same kernels
  CHECK(module.add_kernels(overrun_path.c_str()).code() == Code::RegistrationAlreadyRegistered);
  CHECK(says(module.message(), ": the kernel acme::snake.out cannot be added: there is one"));
  CHECK(computes(module));
}

void test_schema() {
  const std::vector<uint8_t> file =
      snake_file("acme::snake.out(Tensor x, int a, *, Tensor(a!) out) -> Tensor(a!)\n");
  Module module;
  CHECK(module.open_memory(file.data(), file.size()).ok());
  CHECK(module.add_kernels(library_path.c_str()).ok());
  CHECK(module.load("forward").code() == Code::InvalidType);
  CHECK(says(module.message(),
             "instruction 0 (acme::snake.out): the kernel does not fit the "
             "operator: argument 1 (a) is int in the program's schema"));
}

int32_t fill(void*, const rl_kernel_call_v1* call) {
  rl_value_v1 out = {};
  out.size = sizeof(out);
  (void)call->host->value(call->context, 2, &out);
  static_cast<float*>(out.data)[0] = 7;
  return RL_OK;
}

const rl_kernel_v1* linked(uint32_t index) {
  static constexpr rl_kernel_v1 kKernel = {RL_KERNEL_V1_VERSION,
                                           sizeof(rl_kernel_v1),
                                           "acme::snake.out",
                                           "tdw=",
                                           nullptr,
                                           nullptr,
                                           fill,
                                           0};
  return index == 0 ? &kKernel : nullptr;
}

const rl_kernel_v1* empty(uint32_t) { return nullptr; }

void test_linked() {
  const std::vector<uint8_t> file = snake_file();
  Module module;
  CHECK(module.open_memory(file.data(), file.size()).ok());
  CHECK(module.add_kernels(empty).code() == Code::NotFound);
  CHECK(says(module.message(), "the linked library has no kernel"));
  CHECK(module.add_kernels(linked).ok());
  Result<Method*> method = module.method("forward");
  CHECK(method.ok());
  const float x[] = {0, 0};
  const HostTensor input(DType::Float32, {2}, x);
  CHECK((*method)->set_input(0, input).ok() && (*method)->execute().ok());
  CHECK(first((*method)->output(0)) == 7);
}

// A library of another processor, as far as its header says.
void test_processor() {
  const std::string path = "kernels_of_another_processor.so";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  CHECK(file != nullptr);
  if (file == nullptr) return;
  unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  head[16] = 3;
  head[18] = 0xf7;  // BPF
  std::fwrite(head, 1, sizeof(head), file);
  std::fclose(file);
  KernelLibrary library;
  Message message;
  CHECK(library.open(path.c_str(), message).code() == Code::AccessFailed);
  CHECK(says(message, "the library is built for another processor, and this process runs on"));
  std::remove(path.c_str());
}

void test_overrun() {
  const std::vector<uint8_t> file = snake_file();
  for (const bool is_sound : {true, false}) {
    Module module;
    ModuleOptions options;
    options.check_backends = true;
    CHECK(module.open_memory(file.data(), file.size(), options).ok());
    CHECK(module.add_kernels((is_sound ? library_path : overrun_path).c_str()).ok());
    if (is_sound) {
      CHECK(computes(module));
      continue;
    }
    Result<Method*> method = module.method("forward");
    const float x[] = {0, 0};
    const HostTensor input(DType::Float32, {2}, x);
    CHECK((*method)->set_input(0, input).ok());
    CHECK((*method)->execute().code() == Code::Internal);
    CHECK(says((*method)->message(),
               "instruction 0 (acme::snake.out): the kernel wrote past the "
               "end of argument 2: 2 bytes behind it"));
  }
}

// y = the operator of x, a tensor of 2 dimensions.
Plan unary_plan(const char* op, int8_t dtype, const std::vector<uint8_t>& dim_order) {
  TensorOptions at;
  at.dtype = dtype;
  at.dim_order = dim_order;
  Plan plan;
  const int32_t x = plan.tensor({2, 3}, at);
  at.offset = 64;
  const int32_t y = plan.tensor({2, 3}, at);
  plan.call(op, {x, y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  return plan;
}

// A method takes the kernel of the library whose key fits its tensors.
void test_keys() {
  const struct {
    int8_t dtype;
    std::vector<uint8_t> dim_order;
    double number;
  } cases[] = {{6, {0, 1}, 1}, {6, {1, 0}, 2}, {7, {0, 1}, 3}, {7, {1, 0}, 0}};
  for (const auto& c : cases) {
    const std::vector<uint8_t> file = file_of(unary_plan("acme::which", c.dtype, c.dim_order));
    Module module;
    CHECK(module.open_memory(file.data(), file.size()).ok());
    CHECK(module.add_kernels(library_path.c_str()).ok());
    Result<Method*> method = module.method("forward");
    CHECK(method.ok());
    const double zeros[6] = {};
    const HostTensor input(static_cast<DType>(c.dtype), {2, 3}, zeros);
    CHECK((*method)->set_input(0, input).ok() && (*method)->execute().ok());
    const Tensor& y = (*method)->output(0).tensor();
    CHECK((c.dtype == 6 ? y.as<float>()[5] : y.as<double>()[5]) == c.number);
  }
}

// A library in C, by its path and as a list of its structs.
void test_plain_c() {
  const std::vector<uint8_t> file = file_of(unary_plan("acme::twice", 6, {0, 1}));
  const std::vector<uint8_t> columns = file_of(unary_plan("acme::twice", 6, {1, 0}));
  SharedLibrary library;  // outlives the modules
  Message message;
  CHECK(library.open(c_path.c_str(), RL_KERNEL_V1_SYMBOL, "kernels", message).ok());
  const auto get = reinterpret_cast<rl_get_kernel_v1_fn>(library.symbol());
  const rl_kernel_v1* const list[] = {get(0), get(1)};
  for (const bool by_path : {true, false}) {
    Module module, other;
    CHECK(module.open_memory(file.data(), file.size()).ok());
    CHECK(other.open_memory(columns.data(), columns.size()).ok());
    for (Module* one : {&module, &other}) {
      CHECK(by_path ? one->add_kernels(c_path.c_str()).ok() : one->add_kernels(list).ok());
    }
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const HostTensor input(DType::Float32, {2, 3}, x);
    Result<Method*> method = module.method("forward");
    CHECK(method.ok() && (*method)->set_input(0, input).ok() && (*method)->execute().ok());
    CHECK((*method)->output(0).tensor().as<float>()[5] == 12);
    method = other.method("forward");
    CHECK(method.ok() && (*method)->set_input(0, input).ok());
    CHECK((*method)->execute().code() == Code::NotSupported);
    CHECK(says((*method)->message(), "(acme::twice.out): x must be a float32 matrix by rows"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  library_path = argv[1];
  other_path = argv[2];
  overrun_path = argv[3];
  c_path = argv[4];
  test_library();
  test_refusals();
  test_schema();
  test_linked();
  test_processor();
  test_overrun();
  test_keys();
  test_plain_c();
  return check_result();
}
