// Each function of tile programs, compared with the C library's in double precision.
#include "cpu_kernels.h"
#include "tile_reference.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

// True if the error is within the relative or the absolute limit. Gates lose digits where they tend
// to 0, as eager's do.
bool near_enough(TileOp op, float value, double expected, double input, double product) {
  const double float_max = 3.4028235e38;
  if (std::fabs(expected) > float_max) expected = std::copysign(INFINITY, expected);
  // A product of 0 and infinity, where the limit is 0, and factors that overflow.
  const bool gate = op == TileOp::GELU || op == TileOp::GELU_TANH || op == TileOp::SILU ||
                    op == TileOp::MISH || op == TileOp::HARDSWISH;
  if (gate && std::fabs(input) > 1e12) {
    const bool limit = std::isnan(expected) && value == 0.0f;
    return std::isnan(value) || limit || close(value, expected, 1e-6, 1e38);
  }
  double absolute = 2e-38;
  if (op == TileOp::MUL_ADD) {
    if (std::fabs(product) > float_max) return true;  // without a fused variant it overflows
    absolute = std::fmax(absolute, 2e-7 * std::fabs(product));
  }
  if (gate) absolute = op == TileOp::GELU ? 1e-6 : 5e-7;  // some units of 1 + erf, times x / 2
  if (op == TileOp::SIN || op == TileOp::COS) absolute = 1e-7;
  if (op == TileOp::TANH || op == TileOp::ERF) absolute = 2e-7;
  if (std::isinf(expected) && std::fabs(value) > 3.39e38f) return (value < 0) == (expected < 0);
  const double parts = op == TileOp::FMOD || op == TileOp::REMAINDER ? 1e-6 : 5e-7;
  return close(value, expected, 1, absolute + parts * std::fabs(expected));
}

void check_function(TileOp op, Random& random) {
  constexpr int64_t n = 1237;
  std::vector<float> in[3] = {sample(random, n), sample(random, n), sample(random, n)};
  const TileInstruction call = {op, 3, 0, 1, 2, 0.75f};
  const TileInstruction program[] = {{TileOp::LOAD, 0, 0, 0, 0, 0},
                                     {TileOp::LOAD, 1, 1, 0, 0, 0},
                                     {TileOp::LOAD, 2, 2, 0, 0, 0},
                                     call,
                                     {TileOp::STORE, 3, 3, 0, 0, 0}};
  CHECK(tile_program_valid(program, 4));
  everywhere<float>(
      n,
      [&](float* out, Workers* workers) {
        TileOperand operands[4];
        for (size_t i = 0; i < 4; ++i) {
          operands[i].data = i < 3 ? in[i].data() : out;
          operands[i].strides[3] = 1;
        }
        TileRun run{program, operands, {1, 1, 1, n}};
        run_tiles(run, workers);
      },
      [&](const float* out) {
        for (int64_t i = 0; i < n; ++i) {
          const double x = static_cast<double>(in[0][i]);
          const double y = static_cast<double>(in[1][i]);
          const double expected = apply(call, x, y, static_cast<double>(in[2][i]));
          if (near_enough(op, out[i], expected, x, x * y)) continue;
          std::fprintf(stderr, "op %d on %s of %.9g, %.9g: %.9g, not %.9g\n", static_cast<int>(op),
                       kernels::isa_name(kernels::current_isa()), x, y, static_cast<double>(out[i]),
                       expected);
          CHECK(!"near enough");
        }
      });
}

}  // namespace

int main() {
  Random random(1);
  for (size_t op = static_cast<size_t>(TileOp::ADD); op < kTileOps; ++op) {
    check_function(static_cast<TileOp>(op), random);
  }
  return check_result();
}
