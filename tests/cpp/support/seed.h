// The seed of the random numbers of a C++ test: a number computed from the test's name, or the
// value of RUSHLIGHT_TEST_SEED. It is printed, so that a run can be repeated, or run with another
// seed.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifndef RL_TEST_NAME  // set by the build
#define RL_TEST_NAME "test"
#endif

namespace rushlight {
namespace test {

// The seed from which all random numbers of this process are derived.
inline uint32_t base_seed() {
  static const uint32_t seed = [] {
    uint32_t value = 2166136261u;
    for (const char* c = RL_TEST_NAME; *c != 0; ++c) {
      value = (value ^ static_cast<uint8_t>(*c)) * 16777619u;  // FNV-1a
    }
    const char* text = std::getenv("RUSHLIGHT_TEST_SEED");
    if (text != nullptr) value = static_cast<uint32_t>(std::strtoul(text, nullptr, 10));
    std::fprintf(stderr, "%s draws with RUSHLIGHT_TEST_SEED=%u\n", RL_TEST_NAME, value);
    return value;
  }();
  return seed;
}

// The seed of one of the test's generators, which are numbered.
inline uint32_t seed_for(uint64_t generator) {
  uint64_t mixed = (generator << 32 | base_seed()) * 0x9e3779b97f4a7c15u;
  mixed ^= mixed >> 29;
  return static_cast<uint32_t>((mixed * 0xbf58476d1ce4e5b9u) >> 32);
}

}  // namespace test
}  // namespace rushlight
