#include "rushlight/backends/cpu/kernels/unpacked.h"

#include "rushlight/backends/cpu/kernels/dot_product.h"
#include "rushlight/backends/cpu/kernels/row_blocks.h"
#include "rushlight/backends/cpu/loops/unpack.h"

namespace rushlight::cpu {
namespace {

// Terms that are unpacked at once: two panels of them stay in the first-level cache.
constexpr int64_t kTerms = 256;
constexpr int64_t kMostRows = 512;  // of an item, of which so many terms stay in the second level
constexpr int64_t kLeastRows = 64;  // beside which unpacking is little
constexpr int64_t kItemsPerThread = 4;
static_assert(kTerms % kOct == 0, "groups of terms start within");

// For each thread, whatever the instruction set.
int64_t buffer_floats(const Product& p) {
  return (p.rows <= kNarrowRows ? 1 : kMaxPanels) * kPanel * least(p.depth, kTerms);
}

// Of one item: `width` panels and `group` blocks of rows.
struct Plan {
  const Product& product;
  const RowBlocks* rows;  // nullptr of few rows
  int64_t width;
  int64_t row_blocks, group, groups;
  float* buffers;  // for each thread

  int64_t panels() const { return panels_of(product.columns); }
  int64_t items() const { return (panels() + width - 1) / width * groups; }
};

struct Place {
  const RowBlocks* rows;
  int64_t term;
};

int64_t place_block(const void* data, int64_t block, GemmTile* tile) {
  const Place& place = *static_cast<const Place*>(data);
  return place.rows->place(block, place.term, tile);
}

class Worker {
 public:
  Worker(const Plan& plan, int64_t thread)
      : plan_(plan), buffer_(plan.buffers + thread * buffer_floats(plan.product)) {}

  void run(int64_t item) const {
    const Product& p = plan_.product;
    const int64_t panel = item / plan_.groups * plan_.width;
    const int64_t count = least(plan_.panels() - panel, plan_.width);
    const int64_t first = item % plan_.groups * plan_.group;
    const int64_t column = panel * kPanel;
    Product part;
    part.rows = p.rows;
    part.columns = least(p.columns - column, count * kPanel);
    part.a_step = p.a_step;
    part.panels = buffer_;
    part.c = p.c + column;
    part.c_step = p.c_step;
    for (int64_t term = 0; term == 0 || term < p.depth; term += kTerms) {
      part.depth = least(p.depth - term, kTerms);
      const PartFinish finish = {finish_after(term), 0, column};
      part.finish = finish.part();
      for (int64_t i = 0; i < count; ++i) unpack(panel + i, term, part.depth, i);
      if (plan_.rows == nullptr) {
        part.a = p.a + term;
        multiply_narrow(part, 0, count);
      } else {
        multiply(part, term, first, count);
      }
    }
  }

 private:
  // Sums up to a term are in the result when the following terms are added.
  Finish finish_after(int64_t term) const {
    const Product& p = plan_.product;
    Finish finish = p.finish;
    if (term > 0) {
      finish.bias = nullptr;
      finish.residual = p.c;
      finish.residual_step = p.c_step;
    }
    if (term + kTerms >= p.depth) return finish;
    finish.low = Finish().low;
    finish.high = Finish().high;
    finish.block = nullptr;
    return finish;
  }

  void unpack(int64_t panel, int64_t term, int64_t terms, int64_t at) const {
    const Product& p = plan_.product;
    const int32_t bits = p.type == PanelType::Int8 ? 8 : 4;
    const int64_t quad_terms = bits == 8 ? kQuad : kOct;
    PanelTerms of;
    of.packed = static_cast<const char*>(p.panels) +
                (panel * panel_quads(p.depth, bits) + term / quad_terms) * kQuadBytes;
    const int64_t scale_bytes = p.scales.halves ? 2 : 4;
    of.scales =
        static_cast<const char*>(p.scales.scales) + panel * p.scales.groups * kPanel * scale_bytes;
    of.halves = p.scales.halves;
    of.group_size = p.depth / p.scales.groups;
    of.first = term;
    of.terms = terms;
    of.out = buffer_ + at * terms * kPanel;
    const UnpackLoops& loops = unpack_loops();
    (bits == 8 ? loops.bytes : loops.nibbles)(of);
  }

  void multiply(const Product& part, int64_t term, int64_t first, int64_t count) const {
    const Place place = {plan_.rows, term};
    GemmGrid grid(part.depth, PanelType::Float32);
    grid.tile.depth = part.depth;
    grid.rows = part.rows;
    grid.columns = part.columns;
    grid.row_blocks = plan_.row_blocks;
    grid.panels = part.panels;
    grid.fetches = false;
    grid.c = part.c;
    grid.c_step = part.c_step;
    grid.finish = part.finish;
    grid.place = place_block;
    grid.data = &place;
    grid.column(grid, first, least(first + plan_.group, plan_.row_blocks), 0, count);
  }

  const Plan& plan_;
  float* buffer_;
};

}  // namespace

size_t unpacked_scratch(const Product& product, size_t threads) {
  return threads * static_cast<size_t>(buffer_floats(product)) * sizeof(float) + kCacheLine;
}

void multiply_unpacked(const Product& product, void* scratch, size_t scratch_size,
                       Workers* workers) {
  if (product.rows <= 0 || product.columns <= 0) return;
  workers = workers_for(work_of({product.rows, product.depth, product.columns}), workers);
  const size_t threads = workers == nullptr ? 1 : workers->count();
  const size_t used = unpacked_scratch(product, threads);
  Plan plan = {product, nullptr, 1, 1, 1, 1, align<float>(scratch)};
  const auto run = [&] {
    run_items(plan.items(), workers, [&](int64_t thread) { return Worker(plan, thread); });
  };
  if (product.rows <= kNarrowRows) return run();
  const RowBlocks rows(product, RowRuns(), static_cast<char*>(scratch) + used, scratch_size - used,
                       workers);
  const int64_t height = gemm_loops().rows;
  plan.rows = &rows;
  plan.width = gemm_loops().panels;
  plan.row_blocks = rows.blocks().blocks;
  // Fewer rows for an item where there are too few panels for all threads.
  const int64_t wanted = static_cast<int64_t>(threads) * kItemsPerThread;
  const int64_t share = plan.row_blocks * plan.items() / (threads == 1 ? 1 : wanted);
  plan.group = least(kMostRows / height, share < kLeastRows / height ? kLeastRows / height : share);
  plan.groups = (plan.row_blocks + plan.group - 1) / plan.group;
  run();
}

}  // namespace rushlight::cpu
