// What is known of a method before it is loaded: its inputs and outputs, the memory that it will
// use, and the operators and backends that it needs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/dtype.h"
#include "rushlight/core/evalue.h"
#include "rushlight/core/span.h"
#include "rushlight/core/tensor.h"

namespace rushlight {

class Program;
namespace fb {
class ExecutionPlan;
}

struct TensorMeta {
  DType dtype = DType::Float32;
  Dynamism dynamism = Dynamism::Static;
  uint8_t rank = 0;
  bool planned = false;          // its memory is in an arena
  bool constant = false;         // its bytes are in the program or in external data
  int32_t sizes[kMaxRank] = {};  // for a bounded tensor the bounds, without bounds INT32_MAX
  uint8_t dim_order[kMaxRank] = {};
  size_t nbytes = 0;  // size in bytes for `sizes`; SIZE_MAX if it does not fit

  Span<const int32_t> shape() const { return {sizes, rank}; }
};

struct ValueMeta {
  Tag tag = Tag::None;
  int64_t i = 0;      // Int, and Bool as 0 or 1: the traced value
  double d = 0.0;     // Double: the traced value
  StringView text;    // String: the traced value
  TensorMeta tensor;  // Tensor
};

// The two parts of an operator's name; the runtime's name is "name" or "name.overload".
struct OperatorName {
  StringView name;
  StringView overload;

  // Writes "aten::add.out" and a closing NUL, truncated to `size`. Returns a view of what was
  // written.
  StringView join(char* buffer, size_t size) const;
};

// Numbers of all objects in a checked plan, from which the size of a method's structures is
// computed.
struct PlanSizes {
  size_t values = 0;
  size_t tensors = 0;
  size_t dims = 0;        // of all tensors
  size_t list_items = 0;  // of all lists whose items are values
  size_t doubles = 0;     // of all DoubleLists
  size_t inputs = 0;
  size_t outputs = 0;
  size_t chains = 0;
  size_t instructions = 0;
  size_t args = 0;   // arguments of all instructions
  size_t views = 0;  // calls of the operator that creates a view at run time
  size_t delegates = 0;
  size_t specs = 0;            // of all delegates
  size_t delegate_args = 0;    // maximum number of arguments of a delegate call
  size_t value_flags = 0;      // one for each value, if there are delegates
  size_t constant_copies = 0;  // bytes of constants that are misaligned in the image, padded
};

// A view of a checked plan. It is valid as long as its program, and can be copied freely.
class MethodMeta {
 public:
  MethodMeta() = default;

  StringView name() const;  // empty for a default-constructed MethodMeta
  size_t n_inputs() const;
  size_t n_outputs() const;
  // `i` must be in range.
  ValueMeta input(size_t i) const;
  ValueMeta output(size_t i) const;
  ValueMeta value(size_t i) const;
  // The name of the buffer that value `i` is, if that is a tensor in an arena and the file has
  // its name; else empty.
  StringView state_name(size_t i) const;
  // Parts of the same, of tensors: less code where no more is wanted. `bounds` has room for
  // kMaxRank sizes.
  TensorMeta output_tensor(size_t i) const;
  void copy_input_bounds(size_t i, int32_t* bounds) const;

  // Arena k is for memory id k + 1.
  size_t n_arenas() const;
  size_t arena_bytes(size_t k) const;
  // The sum of all arenas.
  uint64_t total_arena_bytes() const;
  size_t n_values() const;
  size_t n_instructions() const;  // of all chains
  size_t n_operators() const;
  OperatorName operator_name(size_t i) const;
  // The backend ids of the method's delegates, one for each delegate.
  size_t n_delegates() const;
  StringView delegate_id(size_t i) const;

  // For the loader of methods (the view is in program_fb.h).
  const Program& program() const { return *program_; }
  fb::ExecutionPlan plan() const;
  const PlanSizes& sizes() const { return sizes_; }

 private:
  friend class Program;

  const Program* program_ = nullptr;
  uint32_t index_ = 0;
  PlanSizes sizes_;
};

}  // namespace rushlight
