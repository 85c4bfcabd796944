#include "rushlight/delegate/options.h"

namespace rushlight {
namespace {

const BackendOption* find_key(Span<const BackendOption> options, StringView key) {
  for (const BackendOption& option : options) {
    if (option.key == key) return &option;
  }
  return nullptr;
}

Status check_option(StringView backend, const BackendOption& option, Message& message) {
  if (option.key.empty() || option.key.size() > BackendOption::kMaxKey) {
    return message.fail(Code::InvalidArgument,
                        "an option for %.*s has a key of %zu bytes; 1 to %zu are allowed",
                        backend.len(), backend.data(), option.key.size(), BackendOption::kMaxKey);
  }
  if (option.kind != BackendOption::Kind::String || option.text.size() <= BackendOption::kMaxText) {
    return {};
  }
  return message.fail(Code::InvalidArgument,
                      "the option '%.*s' for %.*s has a text of %zu bytes; at most %zu are allowed",
                      option.key.len(), option.key.data(), backend.len(), backend.data(),
                      option.text.size(), BackendOption::kMaxText);
}

Status check_options(StringView backend, Span<const BackendOption> options, Message& message) {
  for (const BackendOption& option : options) {
    RL_TRY(check_option(backend, option, message));
    if (find_key(options, option.key) == &option) continue;
    return message.fail(Code::InvalidArgument, "the option '%.*s' for %.*s is there twice",
                        option.key.len(), option.key.data(), backend.len(), backend.data());
  }
  return {};
}

}  // namespace

const BackendOption* BackendOptions::find(StringView key) const {
  const BackendOption* option = find_key(of_method_, key);
  return option != nullptr ? option : find_key(of_backend_, key);
}

const BackendOptionsMap::Entry* BackendOptionsMap::find(StringView backend,
                                                        StringView method) const {
  for (size_t i = 0; i < size_; ++i) {
    if (entries_[i].backend == backend && entries_[i].method == method) return &entries_[i];
  }
  return nullptr;
}

// How many backends there are, `with` among them.
size_t BackendOptionsMap::count_backends(StringView with) const {
  size_t n = 1;
  for (size_t i = 0; i < size_; ++i) {
    bool is_new = entries_[i].backend != with;
    for (size_t k = 0; k < i && is_new; ++k) is_new = entries_[k].backend != entries_[i].backend;
    n += is_new ? 1 : 0;
  }
  return n;
}

Status BackendOptionsMap::set(StringView backend, Span<const BackendOption> options,
                              Message& message, StringView method) {
  if (backend.empty() || backend.size() > kMaxId) {
    return message.fail(Code::InvalidArgument,
                        "the id of a backend has 1 to %zu bytes; options were given for one of %zu",
                        kMaxId, backend.size());
  }
  RL_TRY(check_options(backend, options, message));
  const Entry* entry = find(backend, method);
  const size_t at = entry != nullptr ? static_cast<size_t>(entry - entries_) : size_;
  if (count_backends(backend) > kMaxBackends || at == kMaxEntries) {
    return message.fail(Code::InvalidArgument,
                        "options for %.*s: there are options for %zu backends or %zu pairs of "
                        "backend and method already, and no more are allowed",
                        backend.len(), backend.data(), kMaxBackends, kMaxEntries);
  }
  entries_[at] = {backend, method, options};
  size_ += entry != nullptr ? 0 : 1;
  return {};
}

BackendOptions BackendOptionsMap::of(StringView backend, StringView method) const {
  const Entry* of_method = find(backend, method);
  const Entry* of_backend = find(backend, StringView());
  return {of_method != nullptr ? of_method->options : Span<const BackendOption>(),
          of_backend != nullptr ? of_backend->options : Span<const BackendOption>()};
}

}  // namespace rushlight
