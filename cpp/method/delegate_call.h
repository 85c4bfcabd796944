// Checks the calls of delegates. Backends are foreign code, so the arguments are checked after
// every call. On request, it is also checked that the backend wrote nothing but its outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rushlight/core/evalue.h"
#include "rushlight/core/message.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/kernel/arena_shadow.h"

namespace rushlight {

// The state of an argument before the call.
struct ArgumentSeal {
  EValue value;
  Tensor tensor;
  int32_t dims[2 * kMaxRank];  // its sizes, then its strides, as a method stores them
};

// Guards one call of a backend, between seal() and check().
class DelegateGuard {
 public:
  // `seals` must have room for all arguments.
  DelegateGuard(EValue* const* args, size_t n_args, size_t n_inputs, ArgumentSeal* seals,
                const ArenaShadow& shadow)
      : args_(args), n_args_(n_args), n_inputs_(n_inputs), seals_(seals), shadow_(shadow) {}

  void seal();
  // Returns Ok, or Internal and in `message` what the backend changed against the rules. Changes
  // that are found are undone. *resized becomes true if the number of elements of an output
  // changed.
  Status check(Message& message, bool* resized);

 private:
  bool is_unchanged(size_t i) const;
  const char* find_change(size_t i, const ArgumentSeal& seal) const;
  const char* find_change_of_sizes(const Tensor& now, const ArgumentSeal& seal, bool fixed) const;
  void restore(size_t i);
  Status check_memory(Message& message);
  Status fail_memory(ChangedByte byte, Message& message) const;

  EValue* const* args_;
  size_t n_args_;
  size_t n_inputs_;
  ArgumentSeal* seals_;
  ArenaShadow shadow_;
};

}  // namespace rushlight
