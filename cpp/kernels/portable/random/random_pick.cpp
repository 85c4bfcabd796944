// Random choices: integers in a range, permutations, Bernoulli trials, and draws by weight.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/random/random.h"

namespace rushlight::kernels {
namespace {

// The range in which a type holds all integers without gaps, at most the range of int64.
struct Limits {
  int64_t low;
  int64_t high;
};

Limits limits_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
      return {0, 1};
    case DType::UInt8:
      return {0, UINT8_MAX};
    case DType::Int8:
      return {INT8_MIN, INT8_MAX};
    case DType::Int16:
      return {INT16_MIN, INT16_MAX};
    case DType::Int32:
      return {INT32_MIN, INT32_MAX};
    case DType::BFloat16:
      return {-(1 << 8), 1 << 8};
    case DType::Float16:
      return {-(1 << 11), 1 << 11};
    case DType::Float32:
      return {-(1 << 24), 1 << 24};
    case DType::Float64:
      return {-(INT64_C(1) << 53), INT64_C(1) << 53};
    default:
      return {INT64_MIN, INT64_MAX};
  }
}

Status check_bounds(KernelContext& ctx, int64_t low, int64_t high, const Tensor& out) {
  RL_TRY(check_real(ctx, "out", out));
  const Limits limits = limits_of(out.dtype);
  // For floating types eager accepts larger numbers and rounds them.
  const bool fits = is_floating(out.dtype) || (low >= limits.low && high - 1 <= limits.high);
  if (low < high && fits) return {};
  return ctx.fail(Code::InvalidArgument,
                  "low is %lld and high is %lld, but low must be below high, and all numbers "
                  "between must fit out, which is %s",
                  static_cast<long long>(low), static_cast<long long>(high), dtype_name(out.dtype));
}

Status fill_integers(KernelContext& ctx, int64_t low, int64_t high, const Shape& shape,
                     Tensor& out) {
  Generator* g = nullptr;
  RL_TRY(check_bounds(ctx, low, high, out));
  RL_TRY(generator_of(ctx, &g));
  RL_TRY(ctx.resize(out, shape.span()));
  const uint64_t first = static_cast<uint64_t>(low);
  const uint64_t range = static_cast<uint64_t>(high) - first;
  fill_drawn<int64_t>(out, DType::Int64,
                      [&] { return static_cast<int64_t>(first + below(*g, range)); });
  return {};
}

Status check_probability(KernelContext& ctx, const char* name, double p) {
  if (p >= 0.0 && p <= 1.0) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %g, but must be from 0 to 1", name, p);
}

// Writes 1 with the probabilities in `p`, which broadcasts to out's shape, and else 0.
Status toss(KernelContext& ctx, const Tensor& p, const Shape& shape, Tensor& out) {
  Generator* g = nullptr;
  RL_TRY(check_real(ctx, "out", out));
  RL_TRY(check_floating(ctx, "p", p));
  RL_TRY(generator_of(ctx, &g));
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  ElementReader checked(p, out);
  for (int64_t i = 0; i < out.numel; ++i) {
    RL_TRY(check_probability(ctx, "an element of p", checked.next()));
  }
  ElementReader reader(p, out);
  const bool wide = p.dtype == DType::Float64;
  fill_doubles(out, [&] {
    const double u = wide ? uniform_double(*g) : static_cast<double>(uniform_float(*g));
    return u < reader.next() ? 1.0 : 0.0;
  });
  return {};
}

// Exchanges each element i with a random one at i or later.
void shuffle(Generator& g, Tensor& out) {
  const size_t size = element_size(out.dtype);
  const int64_t n = out.numel;
  const bool wide = n >= UINT32_MAX / 20;  // beyond this, draws of 32 bits are not uniform enough
  uint8_t* items = out.as<uint8_t>();
  for (int64_t i = 0; i + 1 < n; ++i) {
    const uint64_t draw = wide ? g.random64() : g.random();
    const size_t distance = static_cast<size_t>(draw % static_cast<uint64_t>(n - i));
    uint8_t* a = items + static_cast<size_t>(i) * size;
    uint8_t* b = a + distance * size;
    uint8_t kept[sizeof(double)];
    std::memcpy(kept, a, size);
    std::memcpy(a, b, size);
    std::memcpy(b, kept, size);
  }
}

}  // namespace

// randint(high, size, *, out)
Status randint_out(KernelContext& ctx, EValue* const* args) {
  Shape shape;
  RL_TRY(shape_of_list(ctx, *args[1], &shape));
  return fill_integers(ctx, 0, args[0]->to_int(), shape, args[2]->tensor());
}

// randint(low, high, size, *, out)
Status randint_low_out(KernelContext& ctx, EValue* const* args) {
  Shape shape;
  RL_TRY(shape_of_list(ctx, *args[2], &shape));
  return fill_integers(ctx, args[0]->to_int(), args[1]->to_int(), shape, args[3]->tensor());
}

// randint_like(self, high, *, memory_format, out)
Status randint_like_out(KernelContext& ctx, EValue* const* args) {
  const Shape shape(args[0]->tensor().shape());
  return fill_integers(ctx, 0, args[1]->to_int(), shape, args[3]->tensor());
}

// randint_like(self, low, high, *, memory_format, out)
Status randint_like_low_out(KernelContext& ctx, EValue* const* args) {
  const Shape shape(args[0]->tensor().shape());
  return fill_integers(ctx, args[1]->to_int(), args[2]->to_int(), shape, args[4]->tensor());
}

// random(self, *, generator, out): for floating types from 0 to the greatest integer below which
// there are no gaps, for others from 0 to the greatest number.
Status random_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[2]->tensor();
  Generator* g = nullptr;
  RL_TRY(check_real(ctx, "out", out));
  RL_TRY(generator_of(ctx, &g));
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  const uint64_t range = static_cast<uint64_t>(limits_of(out.dtype).high) + 1;
  const bool wide = element_size(out.dtype) == sizeof(uint64_t);
  fill_drawn<int64_t>(out, DType::Int64, [&] {
    return static_cast<int64_t>((wide ? g->random64() : g->random()) % range);
  });
  return {};
}

// randperm(n, *, out): 0 to n - 1 in a random order.
Status randperm_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[1]->tensor();
  const int64_t n = args[0]->to_int();
  Generator* g = nullptr;
  RL_TRY(check_real(ctx, "out", out));
  RL_TRY(generator_of(ctx, &g));
  Shape shape;
  if (!shape.push(n) || n - 1 > limits_of(out.dtype).high) {
    return ctx.fail(Code::InvalidArgument,
                    "n is %lld, but must not be negative, and 0 to n - 1 must fit out, which is %s",
                    static_cast<long long>(n), dtype_name(out.dtype));
  }
  RL_TRY(ctx.resize(out, shape.span()));
  int64_t next = 0;
  fill_drawn<int64_t>(out, DType::Int64, [&] { return next++; });
  shuffle(*g, out);
  return {};
}

// bernoulli(self, *, generator, out): self holds the probabilities.
Status bernoulli_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  return toss(ctx, self, Shape(self.shape()), args[2]->tensor());
}

// bernoulli(self, p, *, generator, out) with a tensor of probabilities
Status bernoulli_tensor_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  const Tensor& p = args[1]->tensor();
  const Tensor* tensors[] = {&self, &p};
  Shape shape;
  RL_TRY(broadcast_shape(ctx, tensors, 2, &shape));
  const Span<const int32_t> sizes = self.shape();
  if (!std::equal(sizes.begin(), sizes.end(), shape.sizes, shape.sizes + shape.rank)) {
    return ctx.fail(Code::InvalidArgument, "p has shape %s, which does not broadcast to self's, %s",
                    ShapeText(p.shape()).text(), ShapeText(self.shape()).text());
  }
  return toss(ctx, p, shape, args[3]->tensor());
}

// bernoulli(self, p, *, generator, out) with one probability
Status bernoulli_float_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[3]->tensor();
  const double p = args[1]->to_double();
  Generator* g = nullptr;
  RL_TRY(check_probability(ctx, "p", p));
  RL_TRY(check_real(ctx, "out", out));
  RL_TRY(generator_of(ctx, &g));
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  fill_doubles(out, [&] { return uniform_double(*g) < p ? 1.0 : 0.0; });
  return {};
}

// native_dropout(input, p, train, *, out0, out1): out1 is the mask of the elements that are kept.
Status native_dropout_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& input = args[0]->tensor();
  Tensor& out = args[3]->tensor();
  Tensor& mask = args[4]->tensor();
  const bool train = args[2]->is_none() || args[2]->to_bool();
  const double p = args[1]->to_double();
  Generator* g = nullptr;
  RL_TRY(check_floating(ctx, "input", input));
  RL_TRY(check_dtype(ctx, "out0", out, input.dtype));
  RL_TRY(check_dtype(ctx, "out1", mask, DType::Bool));
  RL_TRY(check_probability(ctx, "p", p));
  if (train) RL_TRY(generator_of(ctx, &g));
  RL_TRY(ctx.resize_like(out, input));
  RL_TRY(ctx.resize_like(mask, input));
  if (out.numel == 0) return {};
  if (!same_layout(out, mask)) {
    return ctx.fail(Code::InvalidArgument, "the two outputs have different orders of dimensions");
  }
  ElementReader reader(input, out);
  const double kept = 1.0 - p;
  double scale = 1.0;
  if (train) scale = kept == 0.0 ? 0.0 : 1.0 / kept;
  uint8_t rounded[sizeof(double)];  // the scale in the input's type
  convert(&scale, DType::Float64, rounded, input.dtype, 1);
  convert(rounded, input.dtype, &scale, DType::Float64, 1);
  uint8_t* flag = mask.as<uint8_t>();
  fill_doubles(out, [&] {
    *flag = !train || uniform_double(*g) < kept ? 1 : 0;
    return reader.next() * *flag++ * scale;  // NaN and infinities propagate, as in eager
  });
  return {};
}

namespace {

// The weights of one row of multinomial.
struct Weights {
  const Tensor* self;
  int64_t offset;
  int64_t stride;
  int64_t n;

  double at(int64_t i) const { return double_at(*self, offset + i * stride); }
};

Status check_weights(KernelContext& ctx, const Weights& weights, bool replacement,
                     int64_t samples) {
  double sum = 0.0;
  int64_t possible = 0;
  for (int64_t i = 0; i < weights.n; ++i) {
    const double weight = weights.at(i);
    if (!(weight >= 0.0) || std::isinf(weight)) {
      return ctx.fail(Code::InvalidArgument,
                      "self holds the weight %g, but weights must be finite "
                      "and 0 or more",
                      weight);
    }
    sum += weight;
    possible += weight > 0.0;
  }
  if (possible == 0 || std::isinf(sum)) {
    return ctx.fail(Code::InvalidArgument, "the weights of a row of self add up to %g", sum);
  }
  if (!replacement && samples > possible) {
    return ctx.fail(Code::InvalidArgument,
                    "num_samples is %lld, but a row of self has only %lld "
                    "weights above 0",
                    static_cast<long long>(samples), static_cast<long long>(possible));
  }
  return {};
}

// Sums are computed in the type of the weights, one weight after the other, as in eager. `memory`
// has room for one sum per weight; if it is nullptr, the sums are computed again for every sample.
template <typename T>
void pick_with_replacement(Generator& g, const Weights& weights, int64_t samples, int64_t* picked,
                           int64_t stride, void* memory) {
  T* shares = static_cast<T*>(memory);
  T sum = 0;
  for (int64_t i = 0; i < weights.n; ++i) sum += static_cast<T>(weights.at(i));
  T running = 0;
  for (int64_t i = 0; shares != nullptr && i + 1 < weights.n; ++i) {
    running += static_cast<T>(weights.at(i));
    shares[i] = running / sum;
  }
  for (int64_t k = 0; k < samples; ++k) {
    const double u = uniform_double(g);
    int64_t i = 0;
    if (shares != nullptr) {
      i = std::lower_bound(shares, shares + weights.n - 1, u) - shares;
    } else {
      running = 0;
      for (; i + 1 < weights.n; ++i) {
        running += static_cast<T>(weights.at(i));
        if (static_cast<double>(running / sum) >= u) break;
      }
    }
    picked[k * stride] = i;
  }
}

// The key of a category is its weight divided by an exponential variate. The categories with the
// greatest keys are picked, the greatest first. Keys are drawn again for every pick from a copy of
// the generator, so no memory is needed.
template <typename T>
void pick_without_replacement(Generator& g, const Weights& weights, int64_t samples,
                              int64_t* picked, int64_t stride, void*) {
  T last = std::numeric_limits<T>::infinity();
  int64_t last_index = -1;
  Generator after = g;
  for (int64_t k = 0; k < samples; ++k) {
    Generator row = g;
    T best = -1;
    int64_t best_index = 0;
    for (int64_t i = 0; i < weights.n; ++i) {
      const T variate = static_cast<T>(-std::log1p(-uniform_double(row)));
      const T key = static_cast<T>(weights.at(i)) / variate;
      const bool left = key < last || (key == last && i > last_index);
      if (left && key > best) {
        best = key;
        best_index = i;
      }
    }
    picked[k * stride] = best_index;
    last = best;
    last_index = best_index;
    after = row;
  }
  g = after;
}

}  // namespace

// multinomial(self, num_samples, replacement, *, generator, out): rows of indices, drawn by weight.
Status multinomial_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[4]->tensor();
  const int64_t samples = args[1]->to_int();
  Generator* g = nullptr;
  RL_TRY(check_floating(ctx, "self", self));
  RL_TRY(check_dtype(ctx, "out", out, DType::Int64));
  RL_TRY(generator_of(ctx, &g));
  if (self.rank != 1 && self.rank != 2) {
    return ctx.fail(Code::InvalidArgument, "self has shape %s, but must have one or two dimensions",
                    ShapeText(self.shape()).text());
  }
  const bool replacement = args[2]->to_bool();
  const size_t dim = self.rank - 1U;
  Shape shape(self.shape());
  const int64_t n = self.sizes[dim];
  if (samples <= 0 || samples > INT32_MAX || (!replacement && samples > n)) {
    return ctx.fail(Code::InvalidArgument, "num_samples is %lld, but must be 1 or more%s",
                    static_cast<long long>(samples),
                    replacement ? "" : ", and without replacement no more than there are weights");
  }
  shape.sizes[dim] = static_cast<int32_t>(samples);
  const int64_t rows = self.rank == 2 ? self.sizes[0] : 1;
  const auto weights_of = [&](int64_t row) {
    return Weights{&self, self.rank == 2 ? row * self.strides[0] : 0, self.strides[dim], n};
  };
  for (int64_t row = 0; row < rows; ++row) {
    RL_TRY(check_weights(ctx, weights_of(row), replacement, samples));
  }
  RL_TRY(ctx.resize(out, shape.span()));
  // A single sample is the same with and without replacement; eager draws it as without.
  const bool again = replacement && samples > 1;
  const bool wide = self.dtype == DType::Float64;
  const auto run =
      again ? (wide ? pick_with_replacement<double> : pick_with_replacement<float>)
            : (wide ? pick_without_replacement<double> : pick_without_replacement<float>);
  void* memory = again ? ctx.scratch(static_cast<size_t>(n) * sizeof(double)) : nullptr;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t* picked = out.as<int64_t>() + (self.rank == 2 ? row * out.strides[0] : 0);
    run(*g, weights_of(row), samples, picked, out.strides[dim], memory);
  }
  return {};
}

}  // namespace rushlight::kernels
