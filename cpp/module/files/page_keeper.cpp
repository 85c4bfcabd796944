#include "rushlight/module/files/page_keeper.h"

#include <algorithm>
#include <new>

namespace rushlight {
namespace {

// The number of bytes that places cover; they must be added in the order of their starts.
struct Cover {
  size_t bytes = 0;
  size_t end = 0;

  void add(size_t begin, size_t to) {
    if (to <= end) return;
    bytes += to - std::max(begin, end);
    end = to;
  }
};

}  // namespace

bool PageKeeper::watch(const Method& method, Pages& pages) {
  method_ = &method;
  pages_ = &pages;
  places_ = new (std::nothrow) Place[method.n_values()];
  if (places_ == nullptr) return false;
  for (size_t i = 0; i < method.n_values(); ++i) {
    const Tensor* tensor = method.value(i).tensor_or_null();
    if (tensor == nullptr || tensor->data == nullptr) continue;
    const uintptr_t start =
        reinterpret_cast<uintptr_t>(tensor->data) - reinterpret_cast<uintptr_t>(pages.data());
    if (start < pages.size()) places_[n_places_++] = {tensor, start, 0};
  }
  std::sort(places_, places_ + n_places_,
            [](const Place& a, const Place& b) { return a.start < b.start; });
  return true;
}

// A view may have more bytes than its own place; it does not use its place then.
size_t PageKeeper::end_of(const Place& place, size_t bytes) const {
  return place.start + std::min(bytes, pages_->size() - place.start);
}

void PageKeeper::sizes_changed() {
  Cover touched;
  Cover needed;
  for (size_t i = 0; i < n_places_; ++i) {
    Place& place = places_[i];
    place.touched = std::max(place.touched, place.tensor->nbytes());
    touched.add(place.start, end_of(place, place.touched));
    needed.add(place.start, end_of(place, place.tensor->nbytes()));
  }
  if (touched.bytes < kWorthwhile + needed.bytes || touched.bytes / 2 < needed.bytes) return;
  size_t end = 0;
  for (size_t i = 0; i < n_places_; ++i) {
    Place& place = places_[i];
    if (place.start > end) release(end, place.start);
    place.touched = place.tensor->nbytes();
    end = std::max(end, end_of(place, place.touched));
  }
  release(end, pages_->size());
}

// Releases pages, unless an output is a view of memory there.
void PageKeeper::release(size_t begin, size_t end) {
  for (size_t i = 0; i < method_->n_outputs(); ++i) {
    const Tensor* output = method_->output(i).tensor_or_null();
    if (output == nullptr || output->data == nullptr) continue;
    const uintptr_t start =
        reinterpret_cast<uintptr_t>(output->data) - reinterpret_cast<uintptr_t>(pages_->data());
    if (start < end && start + output->nbytes() > begin) return;
  }
  pages_->release(begin, end);
}

}  // namespace rushlight
