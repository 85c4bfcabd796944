// Elements without a meaning.
#pragma once

#include <cstdint>

namespace executorch::runtime::etensor {

struct alignas(sizeof(uint8_t)) bits1x8 {
  using underlying = uint8_t;
  uint8_t val_;
  bits1x8() = default;
  explicit bits1x8(uint8_t value) : val_(value) {}
};
struct alignas(sizeof(uint8_t)) bits2x4 {
  using underlying = uint8_t;
  uint8_t val_;
  bits2x4() = default;
  explicit bits2x4(uint8_t value) : val_(value) {}
};
struct alignas(sizeof(uint8_t)) bits4x2 {
  using underlying = uint8_t;
  uint8_t val_;
  bits4x2() = default;
  explicit bits4x2(uint8_t value) : val_(value) {}
};
struct alignas(sizeof(uint8_t)) bits8 {
  using underlying = uint8_t;
  uint8_t val_;
  bits8() = default;
  explicit bits8(uint8_t value) : val_(value) {}
};
struct alignas(sizeof(uint16_t)) bits16 {
  using underlying = uint16_t;
  uint16_t val_;
  bits16() = default;
  explicit bits16(uint16_t value) : val_(value) {}
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::bits16;
using ::executorch::runtime::etensor::bits1x8;
using ::executorch::runtime::etensor::bits2x4;
using ::executorch::runtime::etensor::bits4x2;
using ::executorch::runtime::etensor::bits8;
}  // namespace torch::executor
