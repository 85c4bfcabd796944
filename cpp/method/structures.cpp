#include "rushlight/method/structures.h"

namespace rushlight {
namespace {

class Carver {
 public:
  explicit Carver(uint8_t* base) : base_(base) {}

  template <typename T>
  void carve(size_t n, T** array) {
    const size_t start = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    const bool fits = start >= used_ && n <= (SIZE_MAX - start) / sizeof(T);
    overflow_ = overflow_ || !fits;
    used_ = fits ? start + n * sizeof(T) : used_;
    *array = base_ != nullptr ? reinterpret_cast<T*>(base_ + start) : nullptr;
  }
  size_t used() const { return overflow_ ? SIZE_MAX : used_; }

 private:
  uint8_t* base_;
  size_t used_ = 0;
  bool overflow_ = false;
};

}  // namespace

size_t lay_out(const PlanSizes& sizes, uint8_t* base, Structures* structures) {
  static_assert(alignof(EValue) <= Allocator::kAlignment, "the block is aligned for all");
  Carver carver(base);
  carver.carve(sizes.constant_copies, &structures->constants);  // first: aligned to the block
  carver.carve(sizes.values, &structures->values);
  carver.carve(sizes.doubles, &structures->doubles);
  carver.carve(sizes.tensors, &structures->tensors);
  carver.carve(sizes.instructions, &structures->instructions);
  carver.carve(sizes.instructions, &structures->kernels);
  carver.carve(sizes.args, &structures->args);
  carver.carve(sizes.list_items, &structures->list_items);
  carver.carve(sizes.inputs, &structures->inputs);
  carver.carve(sizes.outputs, &structures->outputs);
  carver.carve(sizes.views, &structures->views);
  carver.carve(sizes.delegates, &structures->delegates);
  carver.carve(sizes.specs, &structures->specs);
  carver.carve(sizes.delegate_args, &structures->seals);
  carver.carve(2 * sizes.dims, &structures->dims);
  carver.carve(sizes.chains, &structures->chain_ends);
  carver.carve(sizes.delegates > 0 ? sizes.values : 0, &structures->is_given);
  return carver.used();
}

}  // namespace rushlight
