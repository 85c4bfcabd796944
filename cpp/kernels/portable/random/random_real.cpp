// Tensors of random real numbers: uniform, normal, and of other distributions.
#include <cmath>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/promote.h"
#include "rushlight/kernels/portable/random/random.h"

namespace rushlight::kernels {
namespace {

// Gives out the sizes of an `int[]` argument, and gets the generator.
Status begin_sized(KernelContext& ctx, const EValue& size, Tensor& out, Generator** generator) {
  Shape shape;
  RL_TRY(check_floating(ctx, "out", out));
  RL_TRY(generator_of(ctx, generator));
  RL_TRY(shape_of_list(ctx, size, &shape));
  return ctx.resize(out, shape.span());
}

// The same, with the sizes of self.
Status begin_like(KernelContext& ctx, const Tensor& self, Tensor& out, Generator** generator) {
  RL_TRY(check_floating(ctx, "out", out));
  RL_TRY(generator_of(ctx, generator));
  return ctx.resize_like(out, self);
}

Status check_range(KernelContext& ctx, const char* name, double value, bool allowed,
                   const char* must) {
  if (allowed) return {};
  return ctx.fail(Code::InvalidArgument, "%s is %g, but must be %s", name, value, must);
}

Status check_std(KernelContext& ctx, double std) {
  return check_range(ctx, "std", std, std >= 0.0, "0 or more");
}

// Poisson variates for a mean of at least 10: W. Hörmann, "The transformed rejection method for
// generating Poisson random variables", Insurance: Mathematics and Economics 12 (1993), algorithm
// PTRS.
double poisson_by_rejection(Generator& g, double mean) {
  const double log_mean = std::log(mean);
  const double b = 0.931 + 2.53 * std::sqrt(mean);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double limit = 0.9277 - 3.6224 / (b - 2.0);
  for (;;) {
    const double u = uniform_double(g) - 0.5;
    const double v = uniform_double(g);
    const double distance = 0.5 - std::fabs(u);
    const double k = std::floor((2.0 * a / distance + b) * u + mean + 0.43);
    if (distance >= 0.07 && v <= limit) return k;
    if (k < 0.0 || (distance < 0.013 && v > distance)) continue;
    const double left =
        std::log(v) + std::log(inverse_alpha) - std::log(a / (distance * distance) + b);
    if (left <= -mean + k * log_mean - std::lgamma(k + 1.0)) return k;
  }
}

double poisson(Generator& g, double mean) {
  if (!(mean > 0.0)) return 0.0;
  if (mean >= 10.0) return poisson_by_rejection(g, mean);
  const double least = std::exp(-mean);
  double product = 1.0;
  for (double count = 0.0;; count += 1.0) {
    product *= uniform_double(g);
    if (!(product > least)) return count;
  }
}

}  // namespace

// rand(size, *, out)
Status rand_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[1]->tensor();
  Generator* g = nullptr;
  RL_TRY(begin_sized(ctx, *args[0], out, &g));
  fill_uniform(*g, 0.0, 1.0, out);
  return {};
}

// rand_like(self, *, memory_format, out)
Status rand_like_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[2]->tensor();
  Generator* g = nullptr;
  RL_TRY(begin_like(ctx, args[0]->tensor(), out, &g));
  fill_uniform(*g, 0.0, 1.0, out);
  return {};
}

// uniform(self, from, to, *, generator, out)
Status uniform_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[4]->tensor();
  const double from = args[1]->to_double();
  const double to = args[2]->to_double();
  Generator* g = nullptr;
  if (!(from <= to)) {
    return ctx.fail(Code::InvalidArgument, "from is %g, but must not be above to, which is %g",
                    from, to);
  }
  RL_TRY(begin_like(ctx, args[0]->tensor(), out, &g));
  fill_uniform(*g, from, to, out);
  return {};
}

// randn(size, *, out)
Status randn_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[1]->tensor();
  Generator* g = nullptr;
  RL_TRY(begin_sized(ctx, *args[0], out, &g));
  fill_normal(*g, 0.0, 1.0, out);
  return {};
}

// randn_like(self, *, memory_format, out)
Status randn_like_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[2]->tensor();
  Generator* g = nullptr;
  RL_TRY(begin_like(ctx, args[0]->tensor(), out, &g));
  fill_normal(*g, 0.0, 1.0, out);
  return {};
}

// normal(mean, std, size, *, generator, out)
Status normal_float_float_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[4]->tensor();
  Generator* g = nullptr;
  RL_TRY(check_std(ctx, args[1]->to_double()));
  RL_TRY(begin_sized(ctx, *args[2], out, &g));
  fill_normal(*g, args[0]->to_double(), args[1]->to_double(), out);
  return {};
}

// log_normal(self, mean, std, *, generator, out)
Status log_normal_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[4]->tensor();
  const double mean = args[1]->to_double();
  const double std = args[2]->to_double();
  Generator* g = nullptr;
  RL_TRY(check_range(ctx, "std", std, std > 0.0, "above 0"));
  RL_TRY(begin_like(ctx, args[0]->tensor(), out, &g));
  fill_doubles(out, [&] { return std::exp(normal_double(*g, mean, std)); });
  return {};
}

// exponential(self, lambd, *, generator, out)
Status exponential_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[3]->tensor();
  const double rate = args[1]->to_double();
  Generator* g = nullptr;
  RL_TRY(check_range(ctx, "lambd", rate, rate > 0.0, "above 0"));
  RL_TRY(begin_like(ctx, args[0]->tensor(), out, &g));
  fill_doubles(out, [&] { return -1.0 / rate * std::log1p(-uniform_double(*g)); });
  return {};
}

// cauchy(self, median, sigma, *, generator, out)
Status cauchy_out(KernelContext& ctx, EValue* const* args) {
  constexpr double kPi = 3.141592653589793;
  Tensor& out = args[4]->tensor();
  const double median = args[1]->to_double();
  const double sigma = args[2]->to_double();
  Generator* g = nullptr;
  RL_TRY(check_range(ctx, "sigma", sigma, sigma > 0.0, "above 0"));
  RL_TRY(begin_like(ctx, args[0]->tensor(), out, &g));
  fill_doubles(out, [&] { return median + sigma * std::tan(kPi * (uniform_double(*g) - 0.5)); });
  return {};
}

// geometric(self, p, *, generator, out)
Status geometric_out(KernelContext& ctx, EValue* const* args) {
  Tensor& out = args[3]->tensor();
  const double p = args[1]->to_double();
  Generator* g = nullptr;
  RL_TRY(check_range(ctx, "p", p, p > 0.0 && p < 1.0, "between 0 and 1"));
  RL_TRY(check_real(ctx, "out", out));
  RL_TRY(generator_of(ctx, &g));
  RL_TRY(ctx.resize_like(out, args[0]->tensor()));
  const double scale = std::log1p(-p);
  fill_doubles(out, [&] { return std::ceil(std::log(uniform_double(*g)) / scale); });
  return {};
}

// poisson(self, *, generator, out): self has the means.
Status poisson_out(KernelContext& ctx, EValue* const* args) {
  const Tensor& self = args[0]->tensor();
  Tensor& out = args[2]->tensor();
  Generator* g = nullptr;
  RL_TRY(check_floating(ctx, "self", self));
  RL_TRY(begin_like(ctx, self, out, &g));
  if (out.numel == 0) return {};
  ElementReader checked(self, out);
  for (int64_t i = 0; i < out.numel; ++i) {
    const double mean = checked.next();
    const bool allowed = mean >= 0.0 && std::isfinite(mean);
    RL_TRY(check_range(ctx, "an element of self", mean, allowed, "finite and 0 or more"));
  }
  ElementReader means(self, out);
  fill_doubles(out, [&] { return poisson(*g, means.next()); });
  return {};
}

}  // namespace rushlight::kernels
