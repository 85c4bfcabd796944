#include "rushlight/engine/kernels/products/unpacked.h"

#include "rushlight/engine/kernels/products/row_blocks.h"
#include "rushlight/engine/loops/products/unpack.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kTerms = 256;  // terms that are unpacked at once: in two panels, 32 KiB
constexpr int64_t kMaxRows =
    512;  // rows of an item; kTerms terms of them stay in the second-level cache
constexpr int64_t kLeastRows = 64;  // rows of an item beside which unpacking costs little
constexpr int64_t kItemsPerThread = 4;
static_assert(kTerms % kOct == 0, "groups of terms start within");

// The floats of one thread's buffer, enough for every instruction set.
int64_t buffer_floats(const Product& p) {
  return (p.rows <= kNarrowRows ? 1 : kMaxPanels) * kPanel * least(p.depth, kTerms);
}

// How the work is divided: an item has `width` panels and `group` blocks of rows.
struct Plan {
  const Product& product;
  float* buffers;                   // for each thread
  const RowBlocks* rows = nullptr;  // nullptr if there are few rows
  int64_t width = 1;
  int64_t row_blocks = 1, group = 1, groups = 1;

  Plan(const Product& whole, void* scratch) : product(whole), buffers(align<float>(scratch)) {}
  // The panel's layout: together() terms lie together in the bytes that bytes_of() gives.
  int64_t together() const {
    return product.type == PanelType::Int4 ? kOct : (product.type == PanelType::Int8 ? kQuad : 1);
  }
  int64_t bytes_of(int64_t terms) const {
    const int64_t bytes = has_scales(product.type) ? kQuadBytes : 2 * kPanel;
    return (terms + together() - 1) / together() * bytes;
  }
  // The address of a term of a panel; also valid for the panel after the last one.
  const char* at(int64_t panel, int64_t term) const {
    const int64_t offset = panel * bytes_of(product.depth) + bytes_of(term);
    const auto address = reinterpret_cast<uintptr_t>(product.panels);
    return reinterpret_cast<const char*>(address + static_cast<uintptr_t>(offset));
  }
  // Whether tiles prefetch what is unpacked next. They do if there are many, so that not too much
  // is fetched at once.
  bool tiles_fetch() const { return rows != nullptr && group > 1; }
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
    const int64_t group = item % plan_.groups;
    const int64_t first = group * plan_.group;
    const int64_t after = group + 1 < plan_.groups ? panel : panel + count;  // of the next item
    const int64_t column = panel * kPanel;
    Product part;
    part.rows = p.rows;
    part.columns = least(p.columns - column, count * kPanel);
    part.a_stride = p.a_stride;
    part.panels = buffer_;
    part.c = p.c + column;
    part.c_stride = p.c_stride;
    for (int64_t term = 0; term == 0 || term < p.depth; term += kTerms) {
      part.depth = least(p.depth - term, kTerms);
      const PartEpilogue epilogue = {epilogue_after(term), 0, column};
      part.epilogue = epilogue.part();
      const bool is_last = term + kTerms >= p.depth;
      const char* next[kMaxPanels];
      for (int64_t i = 0; i < count; ++i) {
        next[i] = is_last ? plan_.at(after + i, 0) : plan_.at(panel + i, term + kTerms);
        unpack(panel + i, term, part.depth, next[i], buffer_ + i * part.depth * kPanel);
      }
      if (plan_.rows == nullptr) {
        part.a = p.a + term;
        multiply_narrow(part, 0, count, false);
      } else {
        multiply(part, term, first, count, next);
      }
    }
  }

 private:
  // The epilogue of kTerms terms from `term` on. From the second part on, the sums so far, which
  // are in the result, are its residual; the last part alone clamps.
  Epilogue epilogue_after(int64_t term) const {
    const Product& p = plan_.product;
    Epilogue epilogue = p.epilogue;
    if (term > 0) {
      epilogue.bias = nullptr;
      epilogue.residual = p.c;
      epilogue.residual_stride = p.c_stride;
    }
    if (term + kTerms >= p.depth) return epilogue;
    epilogue.low = Epilogue().low;
    epilogue.high = Epilogue().high;
    epilogue.block = nullptr;
    return epilogue;
  }

  void unpack(int64_t panel, int64_t term, int64_t terms, const char* next, float* out) const {
    const Product& p = plan_.product;
    const UnpackLoops& loops = unpack_loops();
    PanelTerms panel_terms;
    panel_terms.packed = plan_.at(panel, term);
    panel_terms.next = plan_.tiles_fetch() ? panel_terms.packed : next;
    panel_terms.terms = terms;
    panel_terms.out = out;
    if (p.type == PanelType::BFloat16) return loops.bfloat16(panel_terms);
    if (p.type == PanelType::Float16) return loops.float16(panel_terms);
    panel_terms.scales = static_cast<const char*>(p.scales.scales) + panel * p.scales.panel_bytes();
    panel_terms.scale_type = p.scales.type;
    panel_terms.group_size = p.depth / p.scales.groups;
    panel_terms.first = term;
    (p.type == PanelType::Int8 ? loops.bytes : loops.nibbles)(panel_terms);
  }

  void multiply(const Product& part, int64_t term, int64_t first, int64_t count,
                const char* const* next) const {
    const Place place = {plan_.rows, term};
    GemmGrid grid(part.depth);
    grid.tile.depth = part.depth;
    grid.rows = part.rows;
    grid.columns = part.columns;
    grid.row_blocks = plan_.row_blocks;
    grid.group = plan_.group;
    grid.panels = part.panels;
    for (int64_t i = 0; i < count; ++i) grid.next[i] = next[i];
    grid.next_bytes = plan_.tiles_fetch() ? plan_.bytes_of(part.depth) : 0;
    grid.c = part.c;
    grid.c_stride = part.c_stride;
    grid.epilogue = part.epilogue;
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
  Plan plan(product, scratch);
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
  // If there are too few panels for all threads, items have fewer rows.
  const int64_t wanted = static_cast<int64_t>(threads) * kItemsPerThread;
  int64_t share = plan.row_blocks;
  if (threads > 1) share = share * plan.items() / wanted;
  if (share < kLeastRows / height) share = kLeastRows / height;
  plan.group = least(least(share, kMaxRows / height), plan.row_blocks);
  plan.groups = (plan.row_blocks + plan.group - 1) / plan.group;
  run();
}

}  // namespace rushlight::engine
