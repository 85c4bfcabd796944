#include "rushlight/kernels/portable/loops/spectral/fft.h"

#include "rushlight/kernel/loops/vec.h"

namespace rushlight::kernels::RL_ISA {
namespace {

void radix2(const FftPass& f) {
  for (int64_t p = 0; p < f.m; ++p) {
    const float w_re = f.w_re[p * f.stride];
    const float w_im = f.w_im[p * f.stride];
    const float* a_re = f.x_re + f.s * p;
    const float* a_im = f.x_im + f.s * p;
    const float* b_re = a_re + f.s * f.m;
    const float* b_im = a_im + f.s * f.m;
    float* y_re = f.y_re + f.s * 2 * p;
    float* y_im = f.y_im + f.s * 2 * p;
    RL_VECTORIZE
    for (int64_t q = 0; q < f.s; ++q) {
      const float d_re = a_re[q] - b_re[q];
      const float d_im = a_im[q] - b_im[q];
      y_re[q] = a_re[q] + b_re[q];
      y_im[q] = a_im[q] + b_im[q];
      y_re[q + f.s] = d_re * w_re - d_im * w_im;
      y_im[q + f.s] = d_re * w_im + d_im * w_re;
    }
  }
}

void radix4(const FftPass& f) {
  const int64_t s = f.s;
  for (int64_t p = 0; p < f.m; ++p) {
    float w_re[4];
    float w_im[4];
    for (int k = 1; k < 4; ++k) {
      w_re[k] = f.w_re[p * k * f.stride];
      w_im[k] = f.w_im[p * k * f.stride];
    }
    const float* x_re = f.x_re + s * p;
    const float* x_im = f.x_im + s * p;
    float* y_re = f.y_re + s * 4 * p;
    float* y_im = f.y_im + s * 4 * p;
    const int64_t j = s * f.m;
    RL_VECTORIZE
    for (int64_t q = 0; q < s; ++q) {
      const float a_re = x_re[q] + x_re[q + 2 * j];
      const float a_im = x_im[q] + x_im[q + 2 * j];
      const float b_re = x_re[q] - x_re[q + 2 * j];
      const float b_im = x_im[q] - x_im[q + 2 * j];
      const float c_re = x_re[q + j] + x_re[q + 3 * j];
      const float c_im = x_im[q + j] + x_im[q + 3 * j];
      const float d_re = x_im[q + j] - x_im[q + 3 * j];
      const float d_im = x_re[q + 3 * j] - x_re[q + j];
      y_re[q] = a_re + c_re;
      y_im[q] = a_im + c_im;
      const float e_re = b_re + d_re;
      const float e_im = b_im + d_im;
      y_re[q + s] = e_re * w_re[1] - e_im * w_im[1];
      y_im[q + s] = e_re * w_im[1] + e_im * w_re[1];
      const float g_re = a_re - c_re;
      const float g_im = a_im - c_im;
      y_re[q + 2 * s] = g_re * w_re[2] - g_im * w_im[2];
      y_im[q + 2 * s] = g_re * w_im[2] + g_im * w_re[2];
      const float h_re = b_re - d_re;
      const float h_im = b_im - d_im;
      y_re[q + 3 * s] = h_re * w_re[3] - h_im * w_im[3];
      y_im[q + 3 * s] = h_re * w_im[3] + h_im * w_re[3];
    }
  }
}

// Cosines and (negative) sines of the angle 2 pi j k / r.
template <int r>
struct Rotations {
  float cosine[r / 2 + 1][r / 2 + 1];
  float sine[r / 2 + 1][r / 2 + 1];

  explicit Rotations(const FftPass& f) {
    for (int k = 1; k <= r / 2; ++k) {
      for (int j = 1; j <= r / 2; ++j) {
        cosine[k][j] = f.w_re[j * k % r * f.m * f.stride];
        sine[k][j] = f.w_im[j * k % r * f.m * f.stride];
      }
    }
  }
};

// Outputs k and r - k share sums of the pairs x[j] + x[r - j] and x[j] - x[r - j].
template <int r>
void odd_radix(const FftPass& f) {
  constexpr int kHalf = r / 2;
  const int64_t s = f.s;
  const int64_t j_stride = s * f.m;
  const Rotations<r> rotations(f);
  for (int64_t p = 0; p < f.m; ++p) {
    float w_re[r];
    float w_im[r];
    for (int k = 1; k < r; ++k) {
      w_re[k] = f.w_re[p * k * f.stride];
      w_im[k] = f.w_im[p * k * f.stride];
    }
    const float* x_re = f.x_re + s * p;
    const float* x_im = f.x_im + s * p;
    float* y_re = f.y_re + s * r * p;
    float* y_im = f.y_im + s * r * p;
    RL_VECTORIZE
    for (int64_t q = 0; q < s; ++q) {
      float sum_re[kHalf + 1];
      float sum_im[kHalf + 1];
      float dif_re[kHalf + 1];
      float dif_im[kHalf + 1];
      float all_re = x_re[q];
      float all_im = x_im[q];
      for (int j = 1; j <= kHalf; ++j) {
        sum_re[j] = x_re[q + j * j_stride] + x_re[q + (r - j) * j_stride];
        sum_im[j] = x_im[q + j * j_stride] + x_im[q + (r - j) * j_stride];
        dif_re[j] = x_re[q + j * j_stride] - x_re[q + (r - j) * j_stride];
        dif_im[j] = x_im[q + j * j_stride] - x_im[q + (r - j) * j_stride];
        all_re += sum_re[j];
        all_im += sum_im[j];
      }
      y_re[q] = all_re;
      y_im[q] = all_im;
      for (int k = 1; k <= kHalf; ++k) {
        float a_re = x_re[q];
        float a_im = x_im[q];
        float b_re = 0;
        float b_im = 0;
        for (int j = 1; j <= kHalf; ++j) {
          a_re += rotations.cosine[k][j] * sum_re[j];
          a_im += rotations.cosine[k][j] * sum_im[j];
          b_re -= rotations.sine[k][j] * dif_im[j];
          b_im += rotations.sine[k][j] * dif_re[j];
        }
        const float c_re = a_re + b_re;
        const float c_im = a_im + b_im;
        const float d_re = a_re - b_re;
        const float d_im = a_im - b_im;
        y_re[q + s * k] = c_re * w_re[k] - c_im * w_im[k];
        y_im[q + s * k] = c_re * w_im[k] + c_im * w_re[k];
        y_re[q + s * (r - k)] = d_re * w_re[r - k] - d_im * w_im[r - k];
        y_im[q + s * (r - k)] = d_re * w_im[r - k] + d_im * w_re[r - k];
      }
    }
  }
}

constexpr int64_t kPairs = kLanes / 2;

// Transposes squares of kLanes floats by kLanes rows; their columns alternate between real and
// imaginary parts. Returns the number of elements of the rows that were read.
int64_t read_squares(const FftRows& f) {
  const int64_t whole = f.lanes % kLanes == 0 ? f.n / kPairs * kPairs : 0;
  for (int64_t i = 0; i < whole; i += kPairs) {
    for (int64_t b = 0; b < f.lanes; b += kLanes) {
      Vec square[kLanes];
      for (int64_t k = 0; k < kLanes; ++k) square[k] = load(f.rows[b + k] + 2 * i);
      transpose(square);
      for (int64_t k = 0; k < kPairs; ++k) {
        store(f.re + (i + k) * f.lanes + b, square[2 * k]);
        store(f.im + (i + k) * f.lanes + b, square[2 * k + 1]);
      }
    }
  }
  return whole;
}

void read_rows(const FftRows& f) {
  const int64_t whole = read_squares(f);
  for (int64_t b = 0; b < f.lanes; ++b) {
    for (int64_t i = whole; i < f.n; ++i) {
      f.re[i * f.lanes + b] = f.rows[b][2 * i];
      f.im[i * f.lanes + b] = f.rows[b][2 * i + 1];
    }
  }
}

int64_t write_squares(const FftRows& f, float factor) {
  const int64_t whole = f.lanes % kLanes == 0 ? f.n / kPairs * kPairs : 0;
  const Vec factors = splat(factor);
  for (int64_t i = 0; i < whole; i += kPairs) {
    for (int64_t b = 0; b < f.lanes; b += kLanes) {
      Vec square[kLanes];
      for (int64_t k = 0; k < kPairs; ++k) {
        square[2 * k] = load(f.re + (i + k) * f.lanes + b) * factors;
        square[2 * k + 1] = load(f.im + (i + k) * f.lanes + b) * factors;
      }
      transpose(square);
      for (int64_t k = 0; k < kLanes; ++k) store(f.rows[b + k] + 2 * i, square[k]);
    }
  }
  return whole;
}

void write_rows(const FftRows& f, float factor) {
  const int64_t whole = write_squares(f, factor);
  for (int64_t b = 0; b < f.lanes; ++b) {
    for (int64_t i = whole; i < f.n; ++i) {
      f.rows[b][2 * i] = f.re[i * f.lanes + b] * factor;
      f.rows[b][2 * i + 1] = f.im[i * f.lanes + b] * factor;
    }
  }
}

// Replaces real part 0 of each lane by the sum of real and imaginary part 0, and imaginary part 0
// by their difference.
void butterfly(const FftHalves& f) {
  RL_VECTORIZE
  for (int64_t b = 0; b < f.lanes; ++b) {
    const float re = f.re[b];
    const float im = f.im[b];
    f.re[b] = re + im;
    f.im[b] = re - im;
  }
}

// Element k is the transform of the even elements plus the rotated transform of the odd elements.
// Element h - k is the conjugate of their difference.
void to_spectrum(const FftHalves& f) {
  butterfly(f);
  for (int64_t k = 1; k <= f.h - k; ++k) {
    const float c = f.turn_re[k] * 0.5F;
    const float s = f.turn_im[k] * 0.5F;
    float* re = f.re + k * f.lanes;
    float* im = f.im + k * f.lanes;
    float* mirror_re = f.re + (f.h - k) * f.lanes;
    float* mirror_im = f.im + (f.h - k) * f.lanes;
    RL_VECTORIZE
    for (int64_t b = 0; b < f.lanes; ++b) {
      const float even_re = (re[b] + mirror_re[b]) * 0.5F;
      const float even_im = (im[b] - mirror_im[b]) * 0.5F;
      const float odd_re = im[b] + mirror_im[b];
      const float odd_im = mirror_re[b] - re[b];
      const float rotated_re = odd_re * c - odd_im * s;
      const float rotated_im = odd_re * s + odd_im * c;
      re[b] = even_re + rotated_re;
      im[b] = even_im + rotated_im;
      mirror_re[b] = even_re - rotated_re;
      mirror_im[b] = rotated_im - even_im;
    }
  }
}

void from_spectrum(const FftHalves& f) {
  butterfly(f);
  for (int64_t k = 1; k <= f.h - k; ++k) {
    const float c = f.turn_re[k];
    const float s = f.turn_im[k];
    float* re = f.re + k * f.lanes;
    float* im = f.im + k * f.lanes;
    float* mirror_re = f.re + (f.h - k) * f.lanes;
    float* mirror_im = f.im + (f.h - k) * f.lanes;
    RL_VECTORIZE
    for (int64_t b = 0; b < f.lanes; ++b) {
      const float even_re = re[b] + mirror_re[b];
      const float even_im = im[b] - mirror_im[b];
      const float odd_re = re[b] - mirror_re[b];
      const float odd_im = im[b] + mirror_im[b];
      const float rotated_re = odd_re * s - odd_im * c;
      const float rotated_im = odd_re * c + odd_im * s;
      re[b] = even_re + rotated_re;
      im[b] = even_im + rotated_im;
      mirror_re[b] = even_re - rotated_re;
      mirror_im[b] = rotated_im - even_im;
    }
  }
}

}  // namespace

const FftLoops fft_loops = {radix2,       odd_radix<3>,  radix4,        odd_radix<5>,
                            odd_radix<7>, odd_radix<11>, odd_radix<13>, read_rows,
                            write_rows,   to_spectrum,   from_spectrum};

}  // namespace rushlight::kernels::RL_ISA
