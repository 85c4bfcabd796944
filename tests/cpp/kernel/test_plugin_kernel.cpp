// Kernels of the C interface: which structs are refused, and signatures beside schemas.
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/kernel/plugin_kernel.h"
#include "rushlight/kernel/schema.h"
#include "test_kernels.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

int32_t never(void*, const rl_kernel_call_v1*) { return RL_INTERNAL; }

rl_kernel_v1 sound() {
  return {RL_KERNEL_V1_VERSION,
          sizeof(rl_kernel_v1),
          "acme::snake.out",
          "tdw=",
          nullptr,
          nullptr,
          never,
          0};
}

bool is_refused(const rl_kernel_v1& kernel, const char* why) {
  PluginKernel plugin;
  Message message;
  return plugin.adopt(&kernel, message).code() == Code::InvalidArgument && says(message, why);
}

void test_hostile_structs() {
  PluginKernel plugin;
  Message message;
  rl_kernel_v1 kernel = sound();
  CHECK(plugin.adopt(&kernel, message).ok());
  CHECK(plugin.adopt(nullptr, message).code() == Code::InvalidArgument);
  kernel.version = 2;
  CHECK(is_refused(kernel, "of version 2 of the interface; this runtime knows version 1"));
  kernel = sound();
  kernel.size = offsetof(rl_kernel_v1, run);
  CHECK(is_refused(kernel, "build it with this runtime's rl_kernel_v1.h"));
  kernel = sound();
  kernel.size += 64;  // a later version with fields at its end
  CHECK(plugin.adopt(&kernel, message).ok());
  kernel = sound();
  kernel.run = nullptr;
  CHECK(is_refused(kernel, "acme::snake.out has no run"));
  const std::string long_name = "a::" + std::string(253, 'b');
  for (const char* name : {static_cast<const char*>(nullptr), "", "snake", "::snake",
                           "acme::", "acme::snake.out(Tensor x)", long_name.c_str()}) {
    kernel = sound();
    kernel.name = name;
    CHECK(is_refused(kernel, "the name of a kernel is that of its operator"));
  }
  for (const char* signature : {static_cast<const char*>(nullptr), "", "=", "td=", "tdw", "tdw==",
                                "t=w=", "txw=", "?=", "tdw?", "td?", "tdw=w", "**", "*="}) {
    kernel = sound();
    kernel.signature = signature;
    CHECK(is_refused(kernel, "a letter for each argument"));
  }
  kernel = sound();
  const std::string long_key = "v1/" + std::string(253, '6');
  for (const char* key : {"", "6;0,1|6;0,1", "v1", "v1/f32", "v2/6;0", long_key.c_str()}) {
    kernel.key = key;
    CHECK(is_refused(kernel, "the key of acme::snake.out must be of the form"));
  }
  // A struct of an earlier version, which ends behind `run`, lies at the end of its memory.
  constexpr size_t kFirst = offsetof(rl_kernel_v1, run) + sizeof(rl_kernel_v1::run);
  kernel = sound();
  kernel.size = kFirst;
  std::vector<uint64_t> memory(kFirst / sizeof(uint64_t));
  std::memcpy(memory.data(), &kernel, kFirst);
  CHECK(plugin.adopt(reinterpret_cast<const rl_kernel_v1*>(memory.data()), message).ok());
  CHECK(!plugin.in_delegates);
  kernel = sound();
  kernel.flags = RL_KERNEL_IN_DELEGATES | uint64_t{1} << 63;  // and one of a later version
  CHECK(plugin.adopt(&kernel, message).ok() && plugin.in_delegates);
}

// A kernel that asks for what it must not have, and that knows an earlier version of the structs.
int32_t probe(void* self, const rl_kernel_call_v1* call) {
  *static_cast<bool*>(self) = true;
  const rl_kernel_host_v1* host = call->host;
  void* context = call->context;
  rl_value_v1 value = {};
  CHECK(host->value(context, 0, &value) == RL_INVALID_ARGUMENT);  // size is 0
  CHECK(host->value(context, 0, nullptr) == RL_INVALID_ARGUMENT);
  value.size = offsetof(rl_value_v1, d);  // of a header that ends there
  value.d = 7;
  CHECK(host->value(context, 1, &value) == RL_OK);
  CHECK(value.kind == RL_DOUBLE && value.i == 2 && value.d == 7);
  value.size = sizeof(value);
  CHECK(call->n_args == 3 && host->value(context, 3, &value) == RL_INVALID_ARGUMENT);
  CHECK(host->item(context, 0, 0, &value) == RL_INVALID_ARGUMENT);
  CHECK(host->item(context, 9, 0, &value) == RL_INVALID_ARGUMENT);
  const int32_t sizes[] = {1};
  CHECK(host->resize(context, 0, 0, sizes, 1) == RL_INVALID_ARGUMENT);  // an input
  CHECK(host->resize(context, 2, 1, sizes, 1) == RL_INVALID_ARGUMENT);  // no list
  CHECK(host->resize(context, 9, 0, sizes, 1) == RL_INVALID_ARGUMENT);
  CHECK(host->resize(context, 2, 0, nullptr, 1) == RL_INVALID_ARGUMENT);
  CHECK(host->resize(context, 2, 0, sizes, 17) == RL_INVALID_ARGUMENT);
  CHECK(host->resize(context, 2, 0, sizes, 1) == RL_OK);
  CHECK(host->scratch(context, SIZE_MAX) == nullptr && host->threads(context) == 1);
  host->parallel(context, 3, 0, nullptr, nullptr);
  int64_t sum = 0;
  const auto add = [](void* data, int64_t begin, int64_t end) {
    for (; begin < end; ++begin) *static_cast<int64_t*>(data) += begin;
  };
  host->parallel(context, 4, 0, add, &sum);
  host->parallel(context, -4, 1, add, &sum);
  CHECK(sum == 6);
  host->explain(context, {nullptr, 9});
  return 77;
}

void test_calls() {
  bool called = false;
  rl_kernel_v1 kernel = sound();
  kernel.self = &called;
  kernel.run = probe;
  PluginKernel plugin;
  Message message;
  CHECK(plugin.adopt(&kernel, message).ok());
  float data[2] = {1, 2};
  int32_t sizes[] = {2}, strides[] = {1};
  const uint8_t order[] = {0};
  Tensor tensor;
  tensor.data = data;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = order;
  tensor.rank = 1;
  tensor.numel = tensor.capacity = 2;
  tensor.dynamism = Dynamism::Bounded;
  EValue x, a, out;
  x.tag = out.tag = Tag::Tensor;
  x.t = out.t = &tensor;
  a.set_double(2.5);
  EValue* args[] = {&x, &a, &out, &out};
  KernelContext context(message, nullptr);
  context.set_kernel(&plugin.kernel());
  CHECK(plugin.kernel().fn(context, args).code() == Code::Internal);
  CHECK(called && says(message, "the kernel returned 77") && tensor.numel == 1);
  called = false;
  tensor.read_only = true;
  CHECK(plugin.kernel().fn(context, args).code() == Code::InvalidProgram);
  CHECK(!called && says(message, "argument 2, which the operator writes, is a constant"));
}

// A kernel that takes any arguments, and looks at them all.
int32_t look(void* self, const rl_kernel_call_v1* call) {
  *static_cast<size_t*>(self) = call->n_args;
  rl_value_v1 value = {};
  value.size = sizeof(value);
  CHECK(call->host->value(call->context, 0, &value) == RL_OK);
  CHECK(value.kind == RL_LIST && value.i == RL_DOUBLE && value.n_items == 2);
  CHECK(call->host->value(call->context, 1, &value) == RL_OK && value.kind == RL_TENSOR);
  const int32_t sizes[] = {1};
  CHECK(call->host->resize(call->context, 0, 0, sizes, 1) == RL_INVALID_ARGUMENT);
  return call->host->resize(call->context, 1, 0, sizes, 1);
}

void test_any_arguments() {
  size_t n_args = 0;
  rl_kernel_v1 kernel = sound();
  kernel.signature = "*";
  kernel.flags = RL_KERNEL_IN_DELEGATES;  // where kinds must be known
  kernel.self = &n_args;
  kernel.run = look;
  PluginKernel plugin;
  Message message;
  CHECK(plugin.adopt(&kernel, message).ok() && !plugin.in_delegates);
  float data[2] = {1, 2};
  int32_t sizes[] = {2}, strides[] = {1};
  const uint8_t order[] = {0};
  Tensor tensor;
  tensor.data = data;
  tensor.sizes = sizes;
  tensor.strides = strides;
  tensor.dim_order = order;
  tensor.rank = 1;
  tensor.numel = tensor.capacity = 2;
  tensor.dynamism = Dynamism::Bounded;
  const double numbers[] = {0.5, 1.5};
  EValue list, out;
  list.tag = Tag::DoubleList;
  list.list = {numbers, 2};
  out.tag = Tag::Tensor;
  out.t = &tensor;
  EValue* args[] = {&list, &out, &out};
  CHECK(check_arguments(plugin.kernel(), args, 3, message).ok());
  CHECK(check_written(plugin.kernel(), args, 3, message).ok());
  CHECK(check_schema(plugin.kernel(), "acme::snake.out(Tensor x) -> ()", message).ok());
  CHECK(plugin.learn(3, message).ok() && plugin.learn(3, message).ok());
  CHECK(plugin.learn(4, message).code() == Code::InvalidProgram);
  CHECK(says(message, "4 arguments, but an earlier call had 3"));
  KernelContext context(message, nullptr);
  context.set_kernel(&plugin.kernel());
  CHECK(plugin.kernel().fn(context, args).ok());
  CHECK(n_args == 3 && tensor.numel == 1);
  n_args = 0;
  tensor.read_only = true;
  CHECK(plugin.kernel().fn(context, args).code() == Code::InvalidProgram && n_args == 0);
}

Status check(const char* signature, const char* schema, Message& message) {
  const Kernel kernel = {"acme::snake.out", signature, nothing};
  return check_schema(kernel, StringView(schema), message);
}

bool fits(const char* signature, const char* schema) {
  Message message;
  return check(signature, schema, message).ok();
}

bool differs(const char* signature, const char* schema, const char* why) {
  Message message;
  return check(signature, schema, message).code() == Code::InvalidType && says(message, why);
}

void test_schemas() {
  CHECK(fits("tdw=", "a::b.out(Tensor x, float a, *, Tensor(a!) out) -> Tensor(a!)"));
  CHECK(fits("?tI?i?DSsBOTW=",
             "a::b.out(Tensor? x, SymInt[2] k=[1, 2], int? n=None, float[]? f=None, str m=\"a,)\", "
             "Scalar s=1, bool[] b=[], Tensor?[] o, Tensor[] l, *, Tensor(a!)[] out) -> ()"));
  CHECK(fits("wt=", "a::b(Tensor(a!) state, Tensor x) -> ()"));
  CHECK(fits("w=", "a::b.out(*, Tensor(a!) out) -> Tensor(a!)"));
  CHECK(differs("tiw=", "a::b.out(Tensor x, float a, *, Tensor(a!) out) -> Tensor(a!)",
                "argument 1 (a) is float in the program's schema a::b.out(Tensor x, float a, *, "
                "Tensor(a!) out) -> Tensor(a!), and int in the kernel"));
  CHECK(differs("ttw=", "a::b.out(Tensor x, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)",
                "argument 1 (b) is Tensor? in"));
  CHECK(differs("t?iw=", "a::b.out(Tensor x, int b, *, Tensor(a!) out) -> Tensor(a!)",
                "and int? in the kernel"));
  CHECK(differs("tw=", "a::b.out(Tensor x, *, Tensor(a!) o, Tensor(b!) p) -> ()",
                "argument 2 (p) is Tensor(b!) in the program's schema"));
  CHECK(differs("tw=", "a::b.out(Tensor x, *, Tensor(a!) o, Tensor(b!) p) -> ()", "and absent in"));
  CHECK(differs("tdww=", "a::b.out(Tensor x, float a, *, Tensor(a!) out) -> Tensor(a!)",
                "it takes 4 arguments, and the program's schema"));
  CHECK(differs("tw=", "a::b.out(Device x, *, Tensor(a!) out) -> Tensor(a!)", "(x) is Device"));
  // What is no schema at all is read to its end, and no further.
  for (const char* text :
       {"", "(", "a::b", "a::b(", "a::b(Tensor", "a::b(Tensor x", "a::b(\"", "()", "a::b('\\",
        "a(((((", "a::b(,,,)", "a::b(*, *)", "a::b(=)", "a::b(?[!)"}) {
    CHECK(!fits("tdw=", text));
  }
}

void test_lines() {
  const std::string text =
      "a::b.out(Tensor x) -> ()\nacme::snake.out(int) -> ()\nacme::snake.out_too(int) -> ()\nlast(";
  const Span<const uint8_t> lines(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  CHECK(find_schema(lines, "acme::snake.out") == StringView("acme::snake.out(int) -> ()"));
  CHECK(find_schema(lines, "a::b.out") == StringView("a::b.out(Tensor x) -> ()"));
  CHECK(find_schema(lines, "last") == StringView("last("));
  CHECK(find_schema(lines, "acme::snake").empty() && find_schema(lines, "b.out").empty());
  CHECK(find_schema({}, "a::b.out").empty());
}

}  // namespace

int main() {
  test_hostile_structs();
  test_calls();
  test_any_arguments();
  test_schemas();
  test_lines();
  return check_result();
}
