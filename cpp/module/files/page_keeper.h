// Releases the pages that the tensors of a method have used and no longer need, so that its memory
// follows the sizes of its tensors and not their bounds.
//
// Tensors are at the offsets that were planned for the bounds, and a tensor of n bytes uses the
// first n bytes of its place. After a run with other sizes than the one before, the keeper compares
// the bytes that tensors cover now with those that they have covered since pages were last
// released. If these are much more, it releases all pages that no tensor covers now. A static
// tensor always covers its place, so state is never lost, and nothing is done while sizes stay the
// same.
#pragma once

#include <cstddef>

#include "rushlight/method/method.h"
#include "rushlight/module/memory.h"

namespace rushlight {

class PageKeeper final : public SizesObserver {
 public:
  // Releasing less than this is not worth the page faults of the next larger run.
  static constexpr size_t kWorthwhile = size_t{2} << 20;

  PageKeeper() = default;
  ~PageKeeper() { delete[] places_; }
  PageKeeper(const PageKeeper&) = delete;
  PageKeeper& operator=(const PageKeeper&) = delete;

  // May be called once for each object, after `method` was loaded and before it runs. Stores which
  // tensors are in `pages`. Both must outlive the keeper. Returns false if there is not enough
  // memory.
  bool watch(const Method& method, Pages& pages);
  void sizes_changed() override;

 private:
  struct Place {
    const Tensor* tensor;
    size_t start;
    size_t touched;  // bytes used since pages were released
  };

  size_t end_of(const Place& place, size_t bytes) const;
  void release(size_t begin, size_t end);

  const Method* method_ = nullptr;
  Pages* pages_ = nullptr;
  Place* places_ = nullptr;  // sorted by start
  size_t n_places_ = 0;
};

}  // namespace rushlight
