// Pools over two dimensions.
#include "rushlight/backends/cpu/kernels/convolution.h"
#include "rushlight/backends/cpu/operators/geometry.h"

namespace rushlight::cpu {
namespace {

class PoolOperator final : public Operator {
 public:
  Status prepare(const PoolingParameters& given, Setup& setup) {
    RL_TRY(setup.check_floats(1, 1));
    in_ = setup.input(0);
    out_ = setup.output(0);
    RL_TRY(read_geometry(setup, *in_, *out_, given.window, false, &pooling_.geometry));
    if (!is_channels_last(*in_)) return setup.refuse("its image does not lie channels last");
    const ConvGeometry& g = pooling_.geometry;
    if (g.in_channels != g.out_channels || g.pad_top >= g.kernel_y || g.pad_left >= g.kernel_x) {
      return setup.refuse("its channels or its padding do not fit");
    }
    pooling_.kind = given.average ? Pool::Average : Pool::Max;
    pooling_.count_padding = given.count_padding;
    pooling_.divisor = given.divisor;
    return {};
  }

  Status run(const Frame& frame) const override {
    Pooling pooling = pooling_;
    pooling.in = frame.at(in_);
    pooling.out = frame.at(out_);
    pool(pooling, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Pooling pooling_;
};

}  // namespace

Result<Operator*> make_operator(const PoolingParameters& given, Setup& setup) {
  return setup.make<PoolOperator>(given);
}

}  // namespace rushlight::cpu
