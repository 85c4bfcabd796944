// Elementwise operators: a tile program on its own.
#include "rushlight/backends/cpu/operators/tile_program.h"

namespace rushlight::cpu {
namespace {

class Elementwise final : public Operator {
 public:
  Status prepare(Setup& setup) {
    return plan_.prepare(setup, setup.step().operation_as_Elementwise().program());
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

Result<const Operator*> make_elementwise(Setup& setup) {
  Elementwise made;
  RL_TRY(made.prepare(setup));
  return setup.make(made);
}

}  // namespace rushlight::cpu
