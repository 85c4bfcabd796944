// Complex numbers of any type of number, as pairs.
// Where code is compiled with PyTorch, the header is PyTorch's own.
#if defined(__has_include_next) && __has_include(<ATen/core/Tensor.h>)
#if __has_include_next(<torch/headeronly/util/complex.h>)
#include_next <torch/headeronly/util/complex.h>
#else
#include <torch/headeronly/util/complex.h>
#endif
#else
#pragma once

#include <torch/headeronly/util/Half.h>

#include <complex>

namespace c10 {

template <typename T>
struct alignas(sizeof(T) * 2) complex {
  using value_type = T;

  T real_ = T(0);
  T imag_ = T(0);

  constexpr complex() = default;
  constexpr complex(const T& real, const T& imag = T()) : real_(real), imag_(imag) {}
  template <typename U>
  explicit constexpr complex(const std::complex<U>& other)
      : real_(static_cast<T>(other.real())), imag_(static_cast<T>(other.imag())) {}
  template <typename U>
  explicit constexpr complex(const complex<U>& other)
      : real_(static_cast<T>(other.real_)), imag_(static_cast<T>(other.imag_)) {}
  template <typename U>
  explicit operator std::complex<U>() const {
    return {static_cast<U>(real_), static_cast<U>(imag_)};
  }

  constexpr T real() const { return real_; }
  constexpr T imag() const { return imag_; }
  constexpr void real(T value) { real_ = value; }
  constexpr void imag(T value) { imag_ = value; }

  friend constexpr complex operator-(const complex& a) { return {-a.real_, -a.imag_}; }
  friend constexpr complex operator+(const complex& a, const complex& b) {
    return {a.real_ + b.real_, a.imag_ + b.imag_};
  }
  friend constexpr complex operator-(const complex& a, const complex& b) {
    return {a.real_ - b.real_, a.imag_ - b.imag_};
  }
  friend constexpr complex operator*(const complex& a, const complex& b) {
    return {a.real_ * b.real_ - a.imag_ * b.imag_, a.real_ * b.imag_ + a.imag_ * b.real_};
  }
  friend constexpr complex operator/(const complex& a, const complex& b) {
    const T norm = b.real_ * b.real_ + b.imag_ * b.imag_;
    return {(a.real_ * b.real_ + a.imag_ * b.imag_) / norm,
            (a.imag_ * b.real_ - a.real_ * b.imag_) / norm};
  }
  complex& operator+=(const complex& other) { return *this = *this + other; }
  complex& operator-=(const complex& other) { return *this = *this - other; }
  complex& operator*=(const complex& other) { return *this = *this * other; }
  complex& operator/=(const complex& other) { return *this = *this / other; }
  friend constexpr bool operator==(const complex& a, const complex& b) {
    return a.real_ == b.real_ && a.imag_ == b.imag_;
  }
  friend constexpr bool operator!=(const complex& a, const complex& b) { return !(a == b); }
};

}  // namespace c10

#endif
