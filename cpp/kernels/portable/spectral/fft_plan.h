// The fast Fourier transform of rows of any length: passes of radix 4, 2, 3, 5, 7, 11 and 13, and
// Bluestein's algorithm for lengths with other prime factors (L. Bluestein, "A linear filtering
// approach to the computation of discrete Fourier transform", 1970).
//
// Several rows are transformed together ("lanes"): element i of lane b has index i * lanes + b, so
// that every pass processes long runs. Roots of unity are computed in float64 and rounded once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rushlight::kernels {

struct Complex {
  float re;
  float im;
};

// Roots of unity exp(-2 pi i k / order) for k < count, with real and imaginary parts in separate
// arrays.
struct Roots {
  const float* re = nullptr;
  const float* im = nullptr;
};
void fill_roots(int64_t order, int64_t count, float* re, float* im);

// The real and imaginary parts of the lanes' elements.
struct Lanes {
  float* re = nullptr;
  float* im = nullptr;

  Lanes swapped() const { return {im, re}; }
};

class FftPlan {
 public:
  explicit FftPlan(int64_t length);

  // The memory that all rows share, and the memory for each group of `lanes` rows in progress.
  size_t shared_bytes() const;
  size_t work_bytes(int64_t lanes) const;
  // Initialises the shared memory, which must be kept. The work memory is for one lane. Both must
  // be aligned to 64 bytes.
  void prepare(void* shared, void* work);

  // The memory for the elements of a group, which must be filled before run().
  Lanes input(void* work, int64_t lanes) const;
  // Computes the transform, without a factor. `forward` has the sign -1 in the exponent. The result
  // is in the work memory.
  Lanes run(void* work, int64_t lanes, bool forward) const;

 private:
  Lanes buffer(void* work, int64_t lanes, size_t number) const;
  Lanes passes(Lanes from, Lanes to, int64_t lanes) const;
  Lanes convolve(Lanes a, Lanes b, int64_t lanes) const;
  void fill_chirp(float* memory, void* work);

  int64_t length_;
  int64_t inner_;  // length of the passes: length_, or a power of two for Bluestein's algorithm
  Roots roots_;    // of order inner_
  Roots chirp_;    // exp(-pi i k * k / length_)
  Roots filter_;   // transform of the chirp's inverse, of length inner_
};

}  // namespace rushlight::kernels
