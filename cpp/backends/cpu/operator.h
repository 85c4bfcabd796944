// What an operator of the engine's graph is: prepared once when the graph is loaded, where all that
// can be wrong is found, and then run without a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

#include "rushlight/backends/cpu/cpu_engine_fb.h"
#include "rushlight/backends/cpu/view.h"
#include "rushlight/core/allocator.h"
#include "rushlight/core/message.h"
#include "rushlight/platform/workers.h"

namespace rushlight::cpu {

// What a run has at hand.
struct Frame {
  uint8_t* const* bases;  // of the memories that views lie in
  void* scratch;          // as much as prepare() asked for, aligned to 64
  size_t scratch_size;
  Workers* workers;  // may be nullptr
  Message* message;

  template <typename T = float>
  T* at(const View& view) const {
    return reinterpret_cast<T*>(bases[view.base] + view.offset);
  }
  template <typename T = float>
  T* at(const View* view) const {
    return view == nullptr ? nullptr : at<T>(*view);
  }
};

class Operator {
 public:
  // Fails only for values that only a run can know, such as indices.
  virtual Status run(const Frame& frame) const = 0;

 protected:
  ~Operator() = default;
};

// What an operator is made from.
class Setup {
 public:
  Setup(Span<const View> values, size_t first_writable, size_t threads, Allocator* allocator,
        Message* message)
      : threads(threads),
        allocator(allocator),
        message(message),
        values_(values),
        first_writable_(first_writable) {}

  // The next step. DelegateInvalidCompatibility if it names values that are not there, or writes
  // what nothing may write.
  Status begin(fb::cpu_engine::Step next);
  fb::cpu_engine::Step step() const { return step_; }

  // nullptr if it is left out.
  const View* input(size_t i) const { return named(step_.inputs(), i); }
  const View* output(size_t i) const { return named(step_.outputs(), i); }
  // The value of that number; nullptr if there is none.
  const View* value(size_t number) const {
    return number < values_.size() ? &values_[number] : nullptr;
  }
  // False for inputs and constants.
  bool may_write(const View& view) const { return view.base >= first_writable_; }

  // Ok if there are so many inputs and outputs at most, the first `needed` inputs and the first
  // output among them, and all are float32 without repeated elements.
  Status check_floats(size_t inputs, size_t needed, size_t outputs = 1) const;
  // DelegateInvalidCompatibility, with the reason.
  Status refuse(const char* why) const;
  // Memory that every run is given; the greatest wish of all operators counts.
  void want_scratch(size_t bytes) {
    if (bytes > scratch_) scratch_ = bytes;
  }
  size_t scratch() const { return scratch_; }

  // Room for `n` objects in the method's memory; nullptr if there is none.
  template <typename T>
  T* allocate(size_t n) {
    return allocator->allocate_array<T>(n);
  }
  // The operator, in the method's memory.
  template <typename T>
  Result<const Operator*> make(const T& from) {
    T* memory = allocate<T>(1);
    if (memory == nullptr) return out_of_memory();
    return static_cast<const Operator*>(new (memory) T(from));
  }
  Status out_of_memory() const;

  const size_t threads;
  Allocator* const allocator;
  Message* const message;

 private:
  const View* named(fb::Vector<int32_t> numbers, size_t i) const;

  fb::cpu_engine::Step step_;
  Span<const View> values_;
  size_t first_writable_;
  size_t scratch_ = 0;
};

// One for each operation of the schema, in operators/.
Result<const Operator*> make_product(Setup& setup);
Result<const Operator*> make_batch_product(Setup& setup);
Result<const Operator*> make_convolution(Setup& setup);
Result<const Operator*> make_pooling(Setup& setup);
Result<const Operator*> make_elementwise(Setup& setup);
Result<const Operator*> make_norm(Setup& setup);
Result<const Operator*> make_group_norm(Setup& setup);
Result<const Operator*> make_softmax(Setup& setup);
Result<const Operator*> make_reduction(Setup& setup);
Result<const Operator*> make_gather(Setup& setup);
Result<const Operator*> make_copy(Setup& setup);
Result<const Operator*> make_attention(Setup& setup);

}  // namespace rushlight::cpu
