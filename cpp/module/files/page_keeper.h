// Releases the pages that the tensors of a method have touched and no longer need, so that its
// memory follows the sizes of its tensors and not their bounds.
//
// Tensors lie where the plan of the bounds puts them, and a tensor of n bytes touches the first n
// bytes of its place. After a run with other sizes than the one before, the keeper adds up what the
// tensors cover now and what they have covered since it last gave pages back; if that is much more,
// it gives back all that no tensor covers now. A static tensor always covers its place, so state is
// never dropped, and nothing is done while sizes stay the same.
#pragma once

#include <cstddef>

#include "rushlight/method/method.h"
#include "rushlight/module/memory.h"

namespace rushlight {

class PageKeeper final : public SizesObserver {
 public:
  // Less than this is not worth the page faults of the next greater run.
  static constexpr size_t kWorthwhile = size_t{2} << 20;

  PageKeeper() = default;
  ~PageKeeper() { delete[] places_; }
  PageKeeper(const PageKeeper&) = delete;
  PageKeeper& operator=(const PageKeeper&) = delete;

  // Once per object, after `method` was loaded and before it runs: remembers its tensors that lie
  // in `pages`. Both must outlive the keeper. False if there is no memory for that.
  bool watch(const Method& method, Pages& pages);
  void sizes_changed() override;

 private:
  struct Place {
    const Tensor* tensor;
    size_t start;
    size_t touched;  // bytes, since pages were given back
  };

  size_t end_of(const Place& place, size_t bytes) const;
  void release(size_t begin, size_t end);

  const Method* method_ = nullptr;
  Pages* pages_ = nullptr;
  Place* places_ = nullptr;  // by their starts
  size_t n_places_ = 0;
};

}  // namespace rushlight
