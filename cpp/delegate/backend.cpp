#include "rushlight/delegate/backend.h"

namespace rushlight {

Status BackendTable::add(const char* id, Backend* backend) {
  if (find(id) != nullptr) return Code::RegistrationAlreadyRegistered;
  if (size_ == kCapacity) return Code::OutOfResources;
  entries_[size_].id = id;
  entries_[size_].backend = backend;
  ++size_;
  return {};
}

Backend* BackendTable::find(StringView id) const {
  for (size_t i = 0; i < size_; ++i) {
    if (id == StringView(entries_[i].id)) return entries_[i].backend;
  }
  return nullptr;
}

}  // namespace rushlight
