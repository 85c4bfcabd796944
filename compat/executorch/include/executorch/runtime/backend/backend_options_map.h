// The options of one load, by backend.
#pragma once

#include <executorch/runtime/backend/options.h>
#include <executorch/runtime/core/error.h>
#include <executorch/runtime/core/span.h>
#include <executorch/runtime/platform/assert.h>

#include <cstring>

namespace executorch::runtime {

// The options are not copied: they must outlive the map and what is loaded with it.
class LoadBackendOptionsMap final {
 public:
  struct EntryView {
    const char* backend_id = nullptr;
    Span<const BackendOption> options;
  };

  // Replaces the options of the same backend. InvalidArgument for an id that is empty or too long,
  // and for too many backends.
  Error set_options(const char* backend_id, Span<BackendOption> options) {
    if (backend_id == nullptr || backend_id[0] == '\0') return Error::InvalidArgument;
    const size_t length = std::strlen(backend_id);
    if (length >= sizeof(Entry::id)) return Error::InvalidArgument;
    size_t at = find(backend_id);
    if (at == kMaxBackends) return Error::InvalidArgument;
    if (at == size_) std::memcpy(entries_[size_++].id, backend_id, length + 1);
    entries_[at].options = options;
    return Error::Ok;
  }
  // From an object with the functions backend_id() and view().
  template <typename Builder>
  Error set_options(Builder& builder) {
    return set_options(builder.backend_id(), builder.view());
  }

  // Empty for a backend without options.
  Span<const BackendOption> get_options(const char* backend_id) const {
    if (!has_options(backend_id)) return {};
    return entry_at(find(backend_id)).options;
  }
  bool has_options(const char* backend_id) const {
    return backend_id != nullptr && find(backend_id) < size_;
  }
  size_t size() const { return size_; }
  EntryView entry_at(size_t index) const {
    ET_DCHECK_MSG(index < size_, "there is no entry %zu among %zu", index, size_);
    const Entry& entry = entries_[index];
    return {entry.id, {entry.options.data(), entry.options.size()}};
  }

 private:
  static constexpr size_t kMaxBackends = 8;

  struct Entry {
    char id[64] = {};
    Span<BackendOption> options;
  };

  size_t find(const char* id) const {
    size_t at = 0;
    while (at < size_ && std::strcmp(entries_[at].id, id) != 0) ++at;
    return at;
  }

  Entry entries_[kMaxBackends];
  size_t size_ = 0;
};

}  // namespace executorch::runtime
