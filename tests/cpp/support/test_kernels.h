// For tests of the runtime: a few kernels, and a method with its memory.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "program_builder.h"
#include "rushlight/kernel/kernel.h"
#include "rushlight/method/method.h"

namespace rushlight {
namespace test {

// True if the message contains this text; prints the message otherwise.
inline bool says(const Message& message, const char* part) {
  const bool has_part = std::strstr(message.text(), part) != nullptr;
  if (!has_part) std::fprintf(stderr, "message: %s\n   wanted: %s\n", message.text(), part);
  return has_part;
}

inline float first(const EValue& value) { return value.tensor().as<float>()[0]; }

// out = self + other * alpha for float32 of equal sizes, in small pieces, so that threads share it.
inline Status add_out(KernelContext& context, EValue* const* args) {
  const Tensor& a = args[0]->tensor();
  const Tensor& b = args[1]->tensor();
  Tensor& out = args[3]->tensor();
  if (a.dtype != DType::Float32 || b.dtype != a.dtype || out.dtype != a.dtype) {
    return context.fail(Code::InvalidArgument, "float32 only");
  }
  if (!same_layout(a, b)) return context.fail(Code::InvalidArgument, "the sizes differ");
  RL_TRY(context.resize_like(out, a));
  const float alpha = static_cast<float>(args[2]->to_double());
  context.parallel(a.numel, 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out.as<float>()[i] = a.as<float>()[i] + alpha * b.as<float>()[i];
    }
  });
  return {};
}

// Copies bytes: aten::copy_(self, src, non_blocking).
inline Status copy_(KernelContext& context, EValue* const* args) {
  Tensor& self = args[0]->tensor();
  const Tensor& source = args[1]->tensor();
  RL_TRY(context.resize_like(self, self));
  if (!same_layout(self, source) || self.dtype != source.dtype) {
    return context.fail(Code::InvalidArgument, "the layouts differ");
  }
  copy_elements(source, self);
  return {};
}

inline Status scalar_add(KernelContext&, EValue* const* args) {
  args[2]->set_int(args[0]->to_int() + args[1]->to_int());
  return {};
}

inline Status scalar_eq(KernelContext&, EValue* const* args) {
  args[2]->set_bool(args[0]->to_int() == args[1]->to_int());
  return {};
}

inline Status nothing(KernelContext&, EValue* const*) { return {}; }

inline Status always_fails(KernelContext& context, EValue* const*) {
  return context.fail(Code::InvalidArgument, "it never works");
}

// Takes scratch memory and never frees it, since the runtime does that.
inline Status greedy(KernelContext& context, EValue* const*) {
  void* memory = context.scratch(context.scratch_left());
  const bool aligned = reinterpret_cast<uintptr_t>(memory) % KernelContext::kScratchAlignment == 0;
  return memory != nullptr && aligned ? Status() : context.fail(Code::OutOfResources, "no scratch");
}

// Makes `out` a view of the memory of `self`, with the sizes of the list.
inline Status et_view(KernelContext& context, EValue* const* args) {
  Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  std::vector<int32_t> sizes;
  for (size_t k = 0; k < args[1]->size(); ++k) {
    sizes.push_back(static_cast<int32_t>(args[1]->int_at(k)));
  }
  const bool is_static = out.dynamism == Dynamism::Static;
  if (self.dtype != out.dtype || (is_static && self.numel != out.numel)) {
    return context.fail(Code::InvalidArgument, "another number of elements");
  }
  out.data = self.data;
  out.capacity = self.capacity;
  out.read_only = false;
  if (!is_static) RL_TRY(out.resize({sizes.data(), sizes.size()}));
  out.read_only = self.read_only;
  return {};
}

inline const KernelTable& test_kernels() {
  static const Kernel kKernels[] = {
      {"aten::add.out", "ttsw=", add_out},
      {"aten::copy_", "wtb=", copy_},
      {"executorch_prim::add.Scalar", "ssr", scalar_add},
      {"executorch_prim::eq.Scalar", "ssr", scalar_eq},
      {"executorch_prim::et_view.default", "tIt", et_view},
      {"test::nothing", "", nothing},
      {"test::always_fails", "t", always_fails},
      {"test::greedy", "", greedy},
  };
  static KernelTable table;
  static const bool filled = table.add(kKernels).ok();
  (void)filled;
  return table;
}

// A program in memory, and one method of it with exactly the memory that it says it needs.
class Loaded {
 public:
  explicit Loaded(const std::vector<uint8_t>& file) : bytes_((file.size() + 15) / 16 * 2) {
    std::memcpy(bytes_.data(), file.data(), file.size());
    loader_ = MemoryLoader(bytes_.data(), file.size());
    opened = program.load(loader_);
  }
  // Memory for backends, in addition to what the method says that it needs.
  void allow_structures(size_t bytes) { more_structures_ = bytes; }
  Status load(StringView name = "forward", MethodOptions options = {}) {
    Result<MethodMeta> meta = program.method_meta(name, &message);
    if (!meta.ok()) return meta.status();
    if (options.kernels == nullptr) options.kernels = &test_kernels();
    // Aligned, so the bound is met exactly.
    const size_t bytes =
        Method::structure_bytes(meta.value()) - (Allocator::kAlignment - 1) + more_structures_;
    structures_.resize(bytes / 16 + 1);
    allocator_ = Allocator(structures_.data(), bytes);
    for (size_t k = 0; k < meta->n_arenas(); ++k) {
      arena_bytes_.emplace_back(meta->arena_bytes(k) / 8 + 2, uint64_t{0xaaaaaaaaaaaaaaaa});
      uint8_t* start = reinterpret_cast<uint8_t*>(arena_bytes_.back().data());
      start += (0 - reinterpret_cast<uintptr_t>(start)) % Allocator::kAlignment;
      arenas_.push_back(Span<uint8_t>(start, meta->arena_bytes(k)));
    }
    scratch_.resize(1024);
    scratch_allocator_ = Allocator(scratch_.data(), scratch_.size());
    MethodMemory memory = {};
    memory.structures = &allocator_;
    memory.arenas = {arenas_.data(), arenas_.size()};
    memory.scratch = &scratch_allocator_;
    const Status status = method.load(program, name, memory, options);
    message = method.message();
    return status;
  }

  Program program;
  Status opened;
  Message message;

 private:
  std::vector<uint64_t> bytes_;
  struct alignas(16) Block {
    uint8_t bytes[16];
  };
  std::vector<Block> structures_;
  size_t more_structures_ = 0;
  std::vector<std::vector<uint64_t>> arena_bytes_;
  std::vector<Span<uint8_t>> arenas_;
  std::vector<uint8_t> scratch_;
  Allocator allocator_;
  Allocator scratch_allocator_;
  MemoryLoader loader_{nullptr, 0};

 public:
  Method method;  // destroyed before its memory
};

// y = x + 2 * x over float32 [2, 3], all planned.
inline Plan add_plan() {
  Plan plan;
  const int32_t x = plan.tensor({2, 3});
  TensorOptions second;
  second.offset = 32;
  const int32_t y = plan.tensor({2, 3}, second);
  const int32_t alpha = plan.integer(2);
  plan.call("aten::add", {x, x, alpha, y, y});
  plan.inputs = {x};
  plan.outputs = {y};
  return plan;
}

inline std::vector<uint8_t> file_of(const Plan& plan) {
  ProgramFile file;
  file.plans = {plan};
  return file.bytes();
}

// state += 1, with the state in memory 2, which both methods plan with 64 bytes.
inline Plan counting_plan(const char* name, uint32_t initial, const char* state_name = "") {
  Plan plan;
  plan.name = name;
  plan.arenas = {0, 64, 64};
  TensorOptions at;
  at.memory_id = 2;
  at.constant = initial;
  at.name = state_name;
  const int32_t state = plan.tensor({1}, at);
  TensorOptions constant;
  constant.memory_id = -1;
  constant.constant = 1;
  const int32_t one = plan.tensor({1}, constant);
  const int32_t sum = plan.tensor({1});
  plan.call("aten::add", {state, one, plan.integer(1), sum, sum});
  plan.call("aten::copy_", {state, sum, plan.boolean(false), state}, "");
  plan.outputs = {state};
  return plan;
}

// Both start at 10, a value that only the second method has in the file.
inline std::vector<uint8_t> counting_file(const char* state_name = "") {
  ProgramFile file;
  file.plans = {counting_plan("up", 0, state_name), counting_plan("also_up", 1, state_name)};
  const float one = 1, start = 10;
  file.segments = {std::vector<uint8_t>(4), std::vector<uint8_t>(4)};
  std::memcpy(file.segments[0].data(), &one, 4);
  std::memcpy(file.segments[1].data(), &start, 4);
  file.constants = {0, 0};
  file.states = {0, 0};
  return file.bytes();
}

}  // namespace test
}  // namespace rushlight
