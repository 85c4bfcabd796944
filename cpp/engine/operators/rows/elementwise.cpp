// Elementwise operators: a tile program on its own.
#include "rushlight/engine/operators/tile_program.h"

namespace rushlight::engine {
namespace {

class Elementwise final : public Operator {
 public:
  Status prepare(const ElementwiseParameters& parameters, Setup& setup) {
    return plan_.prepare(setup, parameters.program);
  }
  Status run(const Frame& frame) const override {
    BoundTiles bound;
    plan_.bind(frame, bound);
    run_tiles(bound.run, frame.workers);
    return {};
  }

 private:
  TilePlan plan_;
};

}  // namespace

Result<Operator*> make_operator(const ElementwiseParameters& parameters, Setup& setup) {
  return setup.make<Elementwise>(parameters);
}

}  // namespace rushlight::engine
