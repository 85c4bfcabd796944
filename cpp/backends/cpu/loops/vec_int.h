// Vectors of int32 beside vec.h: sums that wrap around, and single ones as bytes in memory (whole
// vectors of bytes: vec_bytes.h). Included by loops files only.
#pragma once

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::cpu::RL_ISA {

using ::rushlight::kernels::RL_ISA::IntVec;
using ::rushlight::kernels::RL_ISA::kLanes;
using ::rushlight::kernels::RL_ISA::Vec;

// kLanes bytes.
using ByteVec = uint8_t __attribute__((vector_size(kLanes)));
using ByteVecMemory = uint8_t __attribute__((vector_size(kLanes), aligned(1), may_alias));

// What is beyond 32 bits is cut off: constants of a file may be anything.
using UnsignedVec = uint32_t __attribute__((vector_size(kLanes * 4)));
static inline IntVec wrap_add(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(reinterpret_cast<UnsignedVec>(a) +
                                  reinterpret_cast<UnsignedVec>(b));
}
static inline IntVec wrap_multiply(IntVec a, IntVec b) {
  return reinterpret_cast<IntVec>(reinterpret_cast<UnsignedVec>(a) *
                                  reinterpret_cast<UnsignedVec>(b));
}

static inline Vec to_floats(IntVec v) { return __builtin_convertvector(v, Vec); }

static inline IntVec load_from_bytes(const uint8_t* p) {
  return __builtin_convertvector(*reinterpret_cast<const ByteVecMemory*>(p), IntVec);
}
// Of integers from 0 to 255.
static inline void store_as_bytes(uint8_t* p, IntVec v) {
  *reinterpret_cast<ByteVecMemory*>(p) = __builtin_convertvector(v, ByteVec);
}
// The first n, 0 or less or more than there are.
static inline IntVec load_some_from_bytes(const uint8_t* p, int64_t n) {
  if (n >= kLanes) return load_from_bytes(p);
  uint8_t bytes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) bytes[i] = p[i];
  return load_from_bytes(bytes);
}
static inline void store_some_as_bytes(uint8_t* p, IntVec v, int64_t n) {
  if (n >= kLanes) return store_as_bytes(p, v);
  uint8_t bytes[kLanes];
  store_as_bytes(bytes, v);
  for (int64_t i = 0; i < n; ++i) p[i] = bytes[i];
}

}  // namespace rushlight::cpu::RL_ISA
