// An operator of the engine's graph. It is prepared when the graph is loaded and again when sizes
// change, which checks everything; runs check nothing.
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

namespace rushlight {
class ArenaShadow;  // kernel/arena_shadow.h
class KernelTable;  // kernel/kernel.h
struct KvCache;     // delegate/kv_cache.h
}  // namespace rushlight

namespace rushlight::engine {

// The memory that kernels take in a run, one after the other, from what the run's scratch has left.
class KernelScratch {
 public:
  explicit KernelScratch(Allocator* run);
  Allocator& memory() { return memory_; }
  // After each call.
  void reset();
  // Lets the run's scratch count what the greatest call took.
  void count();

 private:
  Allocator* run_;
  Allocator memory_;
  size_t most_ = 0;
};

// What an operator may use in a run.
struct Frame {
  uint8_t* const* bases;  // of the memories that views lie in
  void* scratch;          // as much as prepare() asked for, aligned to 64
  size_t scratch_size;
  Workers* workers;  // may be nullptr
  Message* message;
  const KvCache* kv_cache = nullptr;
  KernelScratch* kernel_scratch = nullptr;
  const ArenaShadow* shadow = nullptr;  // if kernels are checked

  template <typename T = float>
  T* at(const View& view) const {
    // The offset of an empty view may lie beyond its memory.
    return reinterpret_cast<T*>(bases[view.base] + (view.numel > 0 ? view.offset : 0));
  }
  template <typename T = float>
  T* at(const View* view) const {
    return view == nullptr ? nullptr : at<T>(*view);
  }
  template <typename T>
  void place(const View* view, T** pointer) const {
    *pointer = at<T>(view);
  }
};

class Operator {
 public:
  // Fails only because of values that are known at run time alone, such as indices.
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

  // Starts with the next node. DelegateInvalidCompatibility if it names values that are not there,
  // or writes inputs or constants. `former` is the operator made from that node before, or nullptr:
  // the new one takes its memory.
  Status begin(const Node& next, Operator* former);

  size_t n_inputs() const { return node_->inputs.size(); }
  size_t n_outputs() const { return node_->outputs.size(); }
  // nullptr if it is left out.
  const View* input(size_t i) const { return named(node_->inputs, i); }
  const View* output(size_t i) const { return named(node_->outputs, i); }
  // The value of that number; nullptr if there is none.
  const View* value(size_t number) const {
    return number < values_.size() ? &values_[number].view : nullptr;
  }
  // False for inputs and constants.
  bool may_write(const View& view) const { return view.base >= first_writable_; }

  // Ok if there are at most `inputs` inputs and `outputs` outputs, the first `needed` inputs and
  // the first output are present, and all are float32 without repeated elements. `weights` is the
  // index of an input that may also have a half type; 0 for none.
  Status check_floats(size_t inputs, size_t needed, size_t outputs = 1, size_t weights = 0) const;
  // Ok if inputs and outputs have exactly these dtypes, and no output repeats elements. The last
  // `optional` inputs may be left out.
  Status check_dtypes(std::initializer_list<DType> inputs, std::initializer_list<DType> outputs,
                      size_t optional = 0) const;
  Status check_dtypes(std::initializer_list<DType> inputs, DType output) const {
    return check_dtypes(inputs, {output});
  }
  // Ok if there are at most so many inputs and outputs.
  Status check_at_most(size_t inputs, size_t outputs) const;
  // Ok if an input or output is left out, or has that dtype.
  Status check_input(size_t i, DType dtype) const;
  Status check_output(size_t i, DType dtype) const;
  // Ok if the first `inputs` inputs and the first `outputs` outputs are present.
  Status check_present(size_t inputs, size_t outputs = 1) const;
  // Ok if no element of the value is in two places. `kind` is "input" or "output".
  Status check_no_repeats(const char* kind, size_t i, const View& view) const;
  // Reads a value as rows, whose elements must be neighbours.
  Status read_rows(const char* name, const View& view, Rows* rows) const;
  // Ok if `view` is dense and has so many elements. `name` names it in the error ("its bias"); a
  // `numel` of -1 stands for more elements than a value may have.
  Status check_elements(const char* name, const View& view, int64_t numel) const;
  // Ok if both values have the same sizes.
  Status check_same_sizes(const char* name, const View& view, const char* other_name,
                          const View& other) const;
  // DelegateInvalidCompatibility, with the reason.
  [[gnu::format(printf, 2, 3)]] Status refuse(const char* format, ...) const;
  // Asks for scratch memory in every run; operators share it, so the greatest request counts.
  void want_scratch(size_t bytes) {
    if (bytes > scratch_) scratch_ = bytes;
  }
  size_t scratch() const { return scratch_; }

  // An operator of type T in the method's memory, prepared from its parameters. Nothing is
  // allocated if there is a former one.
  template <typename T, typename P>
  Result<Operator*> make(const P& parameters) {
    static_assert(std::is_trivially_destructible<T>::value, "it is replaced and dropped as it is");
    T made;
    RL_TRY(made.prepare(parameters, *this));
    T* memory = static_cast<T*>(former_);
    if (memory == nullptr) memory = allocator->allocate_array<T>(1);
    if (memory == nullptr) return out_of_memory();
    return static_cast<Operator*>(new (memory) T(made));
  }
  // The operator of type T that was made from the node before; nullptr for the first one.
  template <typename T>
  const T* former() const {
    return static_cast<const T*>(former_);
  }
  Status out_of_memory() const;

  // What calls of kernels are looked up in, and the schemas that these must fit; for loads alone.
  const KernelTable* kernels = nullptr;
  Span<const uint8_t> schemas;
  Span<const int64_t> numbers;  // of each expression

  const size_t threads;
  Allocator* const allocator;
  Message* const message;

 private:
  Status missing(const char* kind, size_t i) const;
  Status check_dtype(const char* kind, size_t i, const View& view, DType dtype) const;
  const View* named(Span<const int32_t> numbers, size_t i) const;

  const Node* node_ = nullptr;
  Operator* former_ = nullptr;
  Span<const Value> values_;
  size_t first_writable_;
  size_t scratch_ = 0;
};

// The type of scales of integers; false if they have no such dtype.
bool read_scale_type(const View& scales, ScaleType* type);

// One for each kind of parameters, in operators/. DelegateInvalidCompatibility if the operator
// cannot run with the values or parameters.
Result<Operator*> make_operator(const ProductParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const BatchProductParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const ConvolutionParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const PoolingParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const ArgMaxParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const ResizeParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const ElementwiseParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const NormParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const GroupNormParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const SoftmaxParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const ReductionParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const GatherParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const CopyParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const AttentionParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const QuantizedBinaryParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const LookupParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const QuantizedPoolingParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const QuantizedConvolutionParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const ConvertParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const QuantizeRowsParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const QuantizedProductParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const DynamicProductParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const RecurrentParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const CachedAttentionParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const AdapterParameters& parameters, Setup& setup);
Result<Operator*> make_operator(const KernelCallParameters& parameters, Setup& setup);

}  // namespace rushlight::engine
