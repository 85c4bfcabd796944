#include "rushlight/kernel/plugin_kernel.h"

#include <cstddef>
#include <cstring>

#include "rushlight/kernel/c_values.h"

namespace rushlight {
namespace {

using namespace c_values;

constexpr size_t kMaxText = 255;  // bytes of a name, and letters of a signature
// What every maker of a kernel knows of the struct: fields that are added later lie behind.
constexpr size_t kMinStruct = offsetof(rl_kernel_v1, run) + sizeof(rl_kernel_v1::run);

// What `context` points to: one call.
struct Call {
  KernelContext* ctx;
  const char* signature;
  EValue* const* args;
  size_t n_args;
};

Call& call_of(void* context) { return *static_cast<Call*>(context); }

void explain(void* context, rl_text_v1 text) {
  const StringView words = view(text);
  (void)call_of(context).ctx->message().fail(Code::Internal, "%.*s", words.len(), words.data());
}

int32_t value(void* context, size_t index, rl_value_v1* to) {
  const Call& call = call_of(context);
  if (index >= call.n_args || to == nullptr || !is_struct(to, to->size)) return RL_INVALID_ARGUMENT;
  hand_over(value_of(*call.args[index]), to);
  return RL_OK;
}

rl_value_v1 item_of(const EValue& list, size_t k) {
  EValue item;
  if (list.tag == Tag::IntList) item.set_int(list.int_at(k));
  if (list.tag == Tag::DoubleList) item.set_double(list.double_at(k));
  if (list.tag == Tag::BoolList) item.set_bool(list.bool_at(k));
  if (list.tag == Tag::TensorList || list.tag == Tag::OptionalTensorList) {
    item.t = list.tensor_at(k);
    item.tag = item.t != nullptr ? Tag::Tensor : Tag::None;
  }
  return value_of(item);
}

bool is_list(const EValue& value) {
  return value.tag == Tag::IntList || value.tag == Tag::DoubleList || value.tag == Tag::BoolList ||
         value.tag == Tag::TensorList || value.tag == Tag::OptionalTensorList;
}

int32_t item(void* context, size_t index, size_t k, rl_value_v1* to) {
  const Call& call = call_of(context);
  if (index >= call.n_args || to == nullptr || !is_struct(to, to->size)) return RL_INVALID_ARGUMENT;
  const EValue& list = *call.args[index];
  if (!is_list(list) || k >= list.size()) return RL_INVALID_ARGUMENT;
  hand_over(item_of(list, k), to);
  return RL_OK;
}

bool is_tensor_list(Tag tag) { return tag == Tag::TensorList || tag == Tag::OptionalTensorList; }

// The letter of an argument.
char letter_of(const Call& call, size_t index) {
  const char* at = call.signature;
  if (*at == *kAnyArguments) {
    const Tag tag = call.args[index]->tag;
    return tag == Tag::Tensor ? 'w' : is_tensor_list(tag) ? 'W' : 's';
  }
  for (; *at == '?' || index > 0; ++at) {
    if (*at != '?') --index;
  }
  return *at;
}

int32_t resize(void* context, size_t index, size_t k, const int32_t* sizes, uint32_t rank) {
  const Call& call = call_of(context);
  if (!are_sizes(sizes, rank)) {
    explain(context, text_of("sizes are NULL, or more than the 16 that a tensor can have"));
    return RL_INVALID_ARGUMENT;
  }
  const char letter = index < call.n_args ? letter_of(call, index) : '\0';
  Tensor* tensor = nullptr;
  if (letter == 'w' && k == 0) tensor = call.args[index]->tensor_or_null();
  if (letter == 'W' && k < call.args[index]->size()) tensor = call.args[index]->tensor_at(k);
  if (tensor == nullptr) {
    explain(context, text_of("resize() is for tensors that the kernel writes"));
    return RL_INVALID_ARGUMENT;
  }
  return static_cast<int32_t>(call.ctx->resize(*tensor, {sizes, rank}).code());
}

void* scratch(void* context, size_t bytes) { return call_of(context).ctx->scratch(bytes); }

size_t scratch_left(void* context) { return call_of(context).ctx->scratch_left(); }

size_t threads(void* context) { return call_of(context).ctx->threads(); }

void parallel(void* context, int64_t items, int64_t grain, rl_kernel_body_v1 body, void* data) {
  if (items <= 0 || body == nullptr) return;
  call_of(context).ctx->parallel(items, grain > 0 ? grain : 1,
                                 [=](int64_t begin, int64_t end) { body(data, begin, end); });
}

constexpr rl_kernel_host_v1 kHost = {RL_KERNEL_V1_VERSION,
                                     sizeof(rl_kernel_host_v1),
                                     explain,
                                     value,
                                     item,
                                     resize,
                                     scratch,
                                     scratch_left,
                                     threads,
                                     parallel};

bool is_text(const char* text) {
  if (text == nullptr) return false;
  size_t n = 0;
  while (n <= kMaxText && text[n] != '\0') ++n;
  return n > 0 && n <= kMaxText;
}

bool has_constant(const EValue& value) {
  if (value.is_tensor()) return value.tensor().read_only;
  for (size_t k = 0; is_tensor_list(value.tag) && k < value.size(); ++k) {
    const Tensor* tensor = value.tensor_at(k);
    if (tensor != nullptr && tensor->read_only) return true;
  }
  return false;
}

// A tensor that the kernel writes may be a constant of a hostile program. Of a kernel that takes
// any arguments, only the last one is known to be written.
Status check_writable(const Call& call) {
  const bool any = *call.signature == *kAnyArguments;
  const char* at = call.signature;
  for (size_t i = 0; i < call.n_args; ++i) {
    if (!any && *at == '?') ++at;
    const char letter = !any ? *at++ : i + 1 == call.n_args ? 'w' : 't';
    if ((letter != 'w' && letter != 'W') || !has_constant(*call.args[i])) continue;
    return call.ctx->fail(Code::InvalidProgram,
                          "argument %zu, which the operator writes, is a constant of the program",
                          i);
  }
  return {};
}

// A namespace, "::" and a name.
bool is_name(const char* name) {
  if (!is_text(name)) return false;
  const char* colons = std::strstr(name, "::");
  return colons != nullptr && colons != name && colons[2] != '\0' &&
         std::strpbrk(name, " (\n") == nullptr;
}

// What KernelTable::find() can match: "v1/" and numbers.
bool is_key(const char* key) {
  if (!is_text(key) || std::strncmp(key, "v1/", 3) != 0) return false;
  return key[3 + std::strspn(key + 3, "0123456789;,|")] == '\0';
}

// Counts the arguments of a signature of letters; 0 if it is none. It ends with "=".
size_t count_arguments(const char* signature) {
  if (!is_text(signature)) return 0;
  size_t count = 0;
  bool writes = false;
  for (const char* at = signature; *at != '='; ++at, ++count) {
    if (*at == '?') ++at;
    if (*at == '\0' || std::strchr("twTWOidbsSIDB", *at) == nullptr) return 0;
    writes = writes || *at == 'w' || *at == 'W';
    if (at[1] == '=' && at[2] != '\0') return 0;
  }
  return writes ? count : 0;
}

}  // namespace

Status PluginKernel::adopt(const rl_kernel_v1* kernel, Message& message) {
  if (kernel == nullptr) return message.fail(Code::InvalidArgument, "its rl_kernel_v1 is NULL");
  if (kernel->version != RL_KERNEL_V1_VERSION) {
    return message.fail(Code::InvalidArgument,
                        "its kernel is of version %lu of the interface; this runtime knows version "
                        "%lu: install a build of the library for that",
                        static_cast<unsigned long>(kernel->version),
                        static_cast<unsigned long>(RL_KERNEL_V1_VERSION));
  }
  if (kernel->size < kMinStruct || kernel->size > kMaxStruct) {
    return message.fail(Code::InvalidArgument,
                        "its rl_kernel_v1 has %lu bytes, where %zu and more (at most %lu) are "
                        "allowed; build it with this runtime's rl_kernel_v1.h",
                        static_cast<unsigned long>(kernel->size), kMinStruct,
                        static_cast<unsigned long>(kMaxStruct));
  }
  if (!is_name(kernel->name)) {
    return message.fail(Code::InvalidArgument,
                        "the name of a kernel is that of its operator, as in acme::snake.out, of "
                        "at most %zu bytes",
                        kMaxText);
  }
  const size_t n_args = count_arguments(kernel->signature);
  const bool any =
      kernel->signature != nullptr && std::strcmp(kernel->signature, kAnyArguments) == 0;
  if (n_args == 0 && !any) {
    return message.fail(Code::InvalidArgument,
                        "the signature of %s must have a letter for each argument, one that is "
                        "written among them, and \"=\" behind them, as in \"tdw=\", or be \"*\"; "
                        "see rl_kernel_v1.h",
                        kernel->name);
  }
  if (kernel->key != nullptr && !is_key(kernel->key)) {
    return message.fail(
        Code::InvalidArgument,
        "the key of %s must be of the form \"v1/6;0,1|6;0,1\", of at most %zu bytes; "
        "see docs/custom-operators.md",
        kernel->name, kMaxText);
  }
  if (kernel->run == nullptr) {
    return message.fail(Code::InvalidArgument, "the kernel of %s has no run", kernel->name);
  }
  const size_t known = kernel->size < sizeof(kernel_) ? kernel->size : sizeof(kernel_);
  std::memcpy(&kernel_, kernel, known);
  n_args_ = n_args;
  in_delegates = (kernel_.flags & RL_KERNEL_IN_DELEGATES) != 0 && !any;
  entry_ = {kernel_.name, kernel_.signature, run, kernel_.key, this};
  return {};
}

bool PluginKernel::is_same(const Kernel& other) const {
  if (other.fn != run) return false;
  const auto& kernel = static_cast<const PluginKernel*>(other.self)->kernel_;
  return kernel.run == kernel_.run && kernel.self == kernel_.self &&
         std::strcmp(kernel.signature, kernel_.signature) == 0;
}

Status PluginKernel::run(KernelContext& ctx, EValue* const* args) {
  const auto& self = *static_cast<const PluginKernel*>(ctx.kernel()->self);
  const size_t n_args = takes_any(self.entry_) ? self.n_args() : self.n_args_;
  Call call = {&ctx, self.entry_.signature, args, n_args};
  RL_TRY(check_writable(call));
  rl_kernel_call_v1 to = {};
  to.size = sizeof(to);
  to.host = &kHost;
  to.context = &call;
  to.n_args = n_args;
  const Status status =
      status_of(self.kernel_.run(self.kernel_.self, &to), ctx.message(), "kernel");
  return status.code() == Code::EndOfMethod ? Status(Code::Internal) : status;
}

}  // namespace rushlight
