// Elements of quantised tensors.
#pragma once

#include <cstdint>

namespace executorch::runtime::etensor {

struct alignas(sizeof(int8_t)) qint8 {
  using underlying = int8_t;
  int8_t val_;
  qint8() = default;
  explicit qint8(int8_t value) : val_(value) {}
};
struct alignas(sizeof(uint8_t)) quint8 {
  using underlying = uint8_t;
  uint8_t val_;
  quint8() = default;
  explicit quint8(uint8_t value) : val_(value) {}
};
struct alignas(sizeof(int32_t)) qint32 {
  using underlying = int32_t;
  int32_t val_;
  qint32() = default;
  explicit qint32(int32_t value) : val_(value) {}
};
struct alignas(sizeof(uint8_t)) quint4x2 {
  using underlying = uint8_t;
  uint8_t val_;
  quint4x2() = default;
  explicit quint4x2(uint8_t value) : val_(value) {}
};
struct alignas(sizeof(uint8_t)) quint2x4 {
  using underlying = uint8_t;
  uint8_t val_;
  quint2x4() = default;
  explicit quint2x4(uint8_t value) : val_(value) {}
};

}  // namespace executorch::runtime::etensor

namespace torch::executor {
using ::executorch::runtime::etensor::qint32;
using ::executorch::runtime::etensor::qint8;
using ::executorch::runtime::etensor::quint2x4;
using ::executorch::runtime::etensor::quint4x2;
using ::executorch::runtime::etensor::quint8;
}  // namespace torch::executor
