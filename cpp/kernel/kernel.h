// A kernel is a name, the kinds of its arguments, and a function. Here is also the table that a
// method looks names up in. The table is filled by explicit calls (no static initialisers), has a
// fixed capacity, and refuses a second kernel of the same name and key.
//
// A signature has one letter per argument, in schema order, the out arguments where the schema has
// them; `?` before a letter allows None as well:
//   t Tensor    w Tensor that the kernel writes
//   T Tensor[]  W Tensor[] that the kernel writes  O Tensor?[]
//   i int       I int[]      d float       D float[]
//   b bool      B bool[]     S string      s Scalar (int, float or bool)
//   r a scalar that the kernel writes      = the return alias, which kernels ignore
// `aten::add.out(Tensor self, Tensor other, *, Scalar alpha, Tensor(a!) out)` is "ttsw=". A
// method's loader refuses an instruction whose arguments do not fit, so a kernel may read pointers
// by kind without a test; dtypes, shapes and values it must check by itself.
//
// A key narrows a kernel to dtypes and dim orders of its tensor arguments, in ExecuTorch's form
// ("v1/6;0,1|6;0,1|6;0,1"); a kernel without one serves what no key matches.
//
// A tensor may be a constant of the program (Tensor::read_only), also where a hostile program names
// one as an output: resize() refuses those, so every kernel calls it before it writes, in-place
// operators with the sizes that the tensor has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/allocator.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/core/tensor_blocks.h"
#include "rushlight/kernel/generator.h"
#include "rushlight/platform/workers.h"

namespace rushlight {

struct ForeignKernel;
struct Kernel;

// What a kernel may ask of the runtime during one call.
class KernelContext {
 public:
  static constexpr size_t kScratchAlignment = 64;

  KernelContext(Message& message, Allocator* scratch, Workers* workers = nullptr,
                TensorBlocks* blocks = nullptr, Generator* generator = nullptr)
      : message_(&message),
        scratch_(scratch),
        workers_(workers),
        blocks_(blocks),
        generator_(generator) {}

  // Says why the call fails; the runtime adds the method, the instruction and the operator.
  [[gnu::format(printf, 3, 4)]] Status fail(Code code, const char* format, ...);

  // Gives `out` the sizes of the result, and memory if it has no bound; fails with both shapes in
  // the message.
  Status resize(Tensor& out, Span<const int32_t> sizes);
  // True once a result had another number of elements than its output had before.
  bool resized() const { return resized_; }
  Status resize_like(Tensor& out, const Tensor& like) { return resize(out, like.shape()); }

  // Scratch memory until the call returns, 64-byte aligned; nullptr if so much is not there.
  // A kernel asks once for what it would like and falls back to less, down to a few KiB on its
  // own stack.
  void* scratch(size_t bytes);
  // Bytes that scratch() can still give.
  size_t scratch_left() const;

  // The same with other scratch memory, for parts of a kernel that use theirs in turn.
  KernelContext with_scratch(Allocator* scratch) const {
    KernelContext ctx = *this;
    ctx.scratch_ = scratch;
    return ctx;
  }

  // The kernel that is called, for functions that serve several.
  const Kernel* kernel() const { return kernel_; }
  void set_kernel(const Kernel* kernel) { kernel_ = kernel; }
  Message& message() const { return *message_; }

  // What random operators draw from; nullptr if the caller gave none.
  Generator* generator() const { return generator_; }

  // How many threads parallel() may use.
  size_t threads() const { return workers_ != nullptr ? workers_->count() : 1; }
  // Calls body(begin, end) for runs of `grain` items that together are 0..items-1, maybe on several
  // threads at once. The runs depend on `items` and `grain` alone: choose a grain of some
  // kGrain elements' work, never one by the number of threads, and results do not depend on that
  // number. The body must not fail, nor use this context for anything but parallel(), which then
  // runs in place; scratch is taken before.
  template <class Body>
  void parallel(int64_t items, int64_t grain, Body&& body) {
    share_out(workers_, items, grain, body);
  }

 private:
  Status grow(Tensor& out, Span<const int32_t> sizes);

  Message* message_;
  Allocator* scratch_;
  Workers* workers_;
  TensorBlocks* blocks_;
  Generator* generator_;
  const Kernel* kernel_ = nullptr;
  bool resized_ = false;
};

// The grain of parallel(): a run has about this many elements.
constexpr int64_t kGrain = int64_t{1} << 15;

using KernelFn = Status (*)(KernelContext& ctx, EValue* const* args);

struct Kernel {
  const char* name;       // "aten::add.out"
  const char* signature;  // "ttsw="
  KernelFn fn;
  const char* key = nullptr;
  // What `fn` belongs to (foreign_kernel.h); nullptr for a kernel of the runtime itself.
  const ForeignKernel* self = nullptr;
};

// The first argument of a call that is one of its results: the return alias, or what a kernel that
// returns nothing writes first. The number of arguments if there is none.
size_t first_result(const Kernel& kernel);

class KernelTable {
 public:
  static constexpr size_t kCapacity = 1024;

  // RegistrationAlreadyRegistered, RegistrationExceedingMaxKernels; none of `kernels` is added
  // then. `kernels` must outlive the table.
  Status add(Span<const Kernel> kernels);
  void remove(Span<const Kernel> kernels);
  // The kernel whose key fits `args`, else the one without key; nullptr if neither is there.
  const Kernel* find(StringView name, EValue* const* args, size_t n_args) const;
  bool has(StringView name) const;
  size_t size() const { return size_; }
  const Kernel& operator[](size_t i) const { return *kernels_[i]; }

 private:
  size_t lower_bound(StringView name) const;  // of the kernels of this name

  const Kernel* kernels_[kCapacity] = {};  // sorted by name
  size_t size_ = 0;
};

// Ok, or InvalidProgram with the argument that does not fit in `message`.
Status check_arguments(const Kernel& kernel, EValue* const* args, size_t n_args, Message& message);

// Ok, or InvalidProgram if the kernel would write to memory that it reads to decide: an output
// whose sizes may change that is an input as well, or one that shares bytes with an input of
// integers or bools, which kernels check as indices before they use them. The arguments must have
// passed check_arguments. Kernels that work in place, and those that return nothing (views), are
// written for it.
Status check_written(const Kernel& kernel, EValue* const* args, size_t n_args, Message& message);

}  // namespace rushlight
