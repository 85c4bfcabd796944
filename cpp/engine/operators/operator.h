// What an operator of the engine's graph is: prepared when the graph is loaded, and again when
// sizes have changed, where all that can be wrong is found; and then run without a check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <type_traits>

#include "rushlight/core/allocator.h"
#include "rushlight/core/message.h"
#include "rushlight/engine/types/graph_parts.h"
#include "rushlight/platform/workers.h"

namespace rushlight::engine {

// What a run has at hand.
struct Frame {
  uint8_t* const* bases;  // of the memories that views lie in
  void* scratch;          // as much as prepare() asked for, aligned to 64
  size_t scratch_size;
  Workers* workers;  // may be nullptr
  Message* message;

  template <typename T = float>
  T* at(const View& view) const {
    // Of an empty view, the offset may be beyond its memory.
    return reinterpret_cast<T*>(bases[view.base] + (view.numel > 0 ? view.offset : 0));
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
  Setup(Span<const Value> values, size_t first_writable, size_t threads, Allocator* allocator,
        Message* message)
      : threads(threads),
        allocator(allocator),
        message(message),
        values_(values),
        first_writable_(first_writable) {}

  // The next step. DelegateInvalidCompatibility if it names values that are not there, or writes
  // what nothing may write.
  // `former` is what was made from that step before: the next operator takes its place.
  Status begin(const Step& next, Operator* former);

  // nullptr if it is left out.
  const View* input(size_t i) const { return named(step_->inputs, i); }
  const View* output(size_t i) const { return named(step_->outputs, i); }
  // The value of that number; nullptr if there is none.
  const View* value(size_t number) const {
    return number < values_.size() ? &values_[number].view : nullptr;
  }
  // False for inputs and constants.
  bool may_write(const View& view) const { return view.base >= first_writable_; }

  // Whether there are so many inputs and outputs at most.
  bool has_values(size_t inputs, size_t outputs) const {
    return step_->inputs.size() <= inputs && step_->outputs.size() <= outputs;
  }
  // Ok if there are so many inputs and outputs at most, the first `needed` inputs and the first
  // output among them, and all are float32 without repeated elements. `weights` is the number of
  // an input that may be of a half type, too; 0 for none.
  Status check_floats(size_t inputs, size_t needed, size_t outputs = 1, size_t weights = 0) const;
  // Ok if there are just these inputs, of which the last `optional` ones may be left out, and these
  // outputs, of these dtypes, and no output repeats elements.
  Status check_dtypes(std::initializer_list<DType> inputs, std::initializer_list<DType> outputs,
                      size_t optional = 0) const;
  Status check_dtypes(std::initializer_list<DType> inputs, DType output) const {
    return check_dtypes(inputs, {output});
  }
  // DelegateInvalidCompatibility, with the reason.
  Status refuse(const char* why) const;
  // Memory that every run is given; the greatest wish of all operators counts.
  void want_scratch(size_t bytes) {
    if (bytes > scratch_) scratch_ = bytes;
  }
  size_t scratch() const { return scratch_; }

  // An operator of type T in the method's memory, prepared from its parameters. Nothing is
  // allocated if there is a former one.
  template <typename T, typename Given>
  Result<Operator*> make(const Given& given) {
    static_assert(std::is_trivially_destructible<T>::value, "it is replaced and dropped as it is");
    T made;
    RL_TRY(made.prepare(given, *this));
    T* memory = static_cast<T*>(former_);
    if (memory == nullptr) memory = allocator->allocate_array<T>(1);
    if (memory == nullptr) return out_of_memory();
    return static_cast<Operator*>(new (memory) T(made));
  }
  Status out_of_memory() const;

  const size_t threads;
  Allocator* const allocator;
  Message* const message;

 private:
  const View* named(Span<const int32_t> numbers, size_t i) const;

  const Step* step_ = nullptr;
  Operator* former_ = nullptr;
  Span<const Value> values_;
  size_t first_writable_;
  size_t scratch_ = 0;
};

// One for each kind of parameters, in operators/. DelegateInvalidCompatibility if the values or the
// parameters are none that the operator can run with.
Result<Operator*> make_operator(const ProductParameters& given, Setup& setup);
Result<Operator*> make_operator(const BatchProductParameters& given, Setup& setup);
Result<Operator*> make_operator(const ConvolutionParameters& given, Setup& setup);
Result<Operator*> make_operator(const PoolingParameters& given, Setup& setup);
Result<Operator*> make_operator(const ArgMaxParameters& given, Setup& setup);
Result<Operator*> make_operator(const ResizeParameters& given, Setup& setup);
Result<Operator*> make_operator(const ElementwiseParameters& given, Setup& setup);
Result<Operator*> make_operator(const NormParameters& given, Setup& setup);
Result<Operator*> make_operator(const GroupNormParameters& given, Setup& setup);
Result<Operator*> make_operator(const SoftmaxParameters& given, Setup& setup);
Result<Operator*> make_operator(const ReductionParameters& given, Setup& setup);
Result<Operator*> make_operator(const GatherParameters& given, Setup& setup);
Result<Operator*> make_operator(const CopyParameters& given, Setup& setup);
Result<Operator*> make_operator(const AttentionParameters& given, Setup& setup);
Result<Operator*> make_operator(const QuantizedBinaryParameters& given, Setup& setup);
Result<Operator*> make_operator(const LookupParameters& given, Setup& setup);
Result<Operator*> make_operator(const QuantizedPoolingParameters& given, Setup& setup);
Result<Operator*> make_operator(const QuantizedConvolutionParameters& given, Setup& setup);
Result<Operator*> make_operator(const ConvertParameters& given, Setup& setup);
Result<Operator*> make_operator(const QuantizeRowsParameters& given, Setup& setup);
Result<Operator*> make_operator(const QuantizedProductParameters& given, Setup& setup);
Result<Operator*> make_operator(const DynamicProductParameters& given, Setup& setup);
Result<Operator*> make_operator(const RecurrentParameters& given, Setup& setup);

}  // namespace rushlight::engine
