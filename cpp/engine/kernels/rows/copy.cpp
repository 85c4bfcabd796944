// Copies with any strides: dimensions are put in the order of the output's memory, dense neighbours
// are merged, and the rest is copied in blocks of the last two. Elements may be converted to floats
// of another width.
#include <cstring>

#include "rushlight/engine/kernels/products/blocks.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/loops/rows/copy.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kGrainBytes = int64_t{1} << 17;
// Blocks of transpositions: whole cache lines both ways, and few enough pages.
constexpr int64_t kBlockRows = 64;
constexpr int64_t kBlockColumns = 512;

enum class Kind : uint8_t { Runs, Lines, Transpose, Convert };

struct Plan {
  size_t rank = 0;
  int64_t sizes[kCopyRank + 2] = {};
  int64_t in[kCopyRank + 2] = {};  // strides in elements
  int64_t out[kCopyRank + 2] = {};
  int64_t element = 4;      // bytes that are read
  int64_t out_element = 4;  // and written
  Conversion conversion = Conversion::None;
  Kind kind = Kind::Lines;
  int64_t block_rows = 0, block_columns = 0;
  int64_t row_blocks = 0, column_blocks = 0;

  void set(size_t d, int64_t size, int64_t in_stride, int64_t out_stride) {
    sizes[d] = size;
    in[d] = in_stride;
    out[d] = out_stride;
  }
  void move(size_t from, size_t to) { set(to, sizes[from], in[from], out[from]); }
};

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

// Takes the dimensions of more than one element, in descending order of the output's strides.
void sort_dimensions(const Copy& copy, Plan* plan) {
  for (size_t d = 0; d < copy.rank; ++d) {
    if (copy.sizes[d] == 1) continue;
    size_t at = plan->rank++;
    for (; at > 0 && magnitude(plan->out[at - 1]) < magnitude(copy.out_strides[d]); --at) {
      plan->move(at - 1, at);
    }
    plan->set(at, copy.sizes[d], copy.in_strides[d], copy.out_strides[d]);
  }
}

void merge_dimensions(Plan* plan) {
  size_t kept = 0;
  for (size_t d = 0; d < plan->rank; ++d) {
    const bool behind = kept > 0 && plan->in[kept - 1] == plan->in[d] * plan->sizes[d] &&
                        plan->out[kept - 1] == plan->out[d] * plan->sizes[d];
    if (behind) {
      plan->set(kept - 1, plan->sizes[kept - 1] * plan->sizes[d], plan->in[d], plan->out[d]);
    } else {
      plan->move(d, kept++);
    }
  }
  plan->rank = kept;
}

bool pairs_fit(const Plan& plan) {
  const size_t last = plan.rank - 1;
  if (plan.in[last] != 1 || plan.out[last] != 1 || plan.sizes[last] % 2 != 0) return false;
  for (size_t d = 0; d < last; ++d) {
    if (plan.in[d] % 2 != 0 || plan.out[d] % 2 != 0) return false;
  }
  return true;
}

// Treats short runs as single elements, so that they can be transposed.
void widen_elements(Plan* plan) {
  while (plan->rank > 1 && plan->element < 8 && pairs_fit(*plan)) {
    const size_t last = plan->rank - 1;
    for (size_t d = 0; d < last; ++d) {
      plan->in[d] /= 2;
      plan->out[d] /= 2;
    }
    plan->sizes[last] /= 2;
    plan->element *= 2;
    plan->out_element *= 2;
    if (plan->sizes[last] == 1) --plan->rank;
  }
}

// The two last dimensions become those of a block.
void choose_kind(Plan* plan) {
  while (plan->rank < 2) {
    for (size_t d = plan->rank++; d > 0; --d) plan->move(d - 1, d);
    plan->set(0, 1, 0, 0);
  }
  const size_t last = plan->rank - 1;
  const bool converts = plan->conversion != Conversion::None;
  if (plan->in[last] == 1 && plan->out[last] == 1) plan->kind = Kind::Runs;
  if (converts) plan->kind = Kind::Convert;
  for (size_t d = 0; d < last && !converts && plan->out[last] == 1 && plan->in[last] > 1; ++d) {
    if (plan->in[d] != 1) continue;
    plan->kind = Kind::Transpose;
    const int64_t size = plan->sizes[d];
    const int64_t out = plan->out[d];
    for (size_t k = d; k + 1 < last; ++k) plan->move(k + 1, k);
    plan->set(last - 1, size, 1, out);
  }
  const int64_t elements = kGrainBytes / plan->element;
  const int64_t columns = plan->sizes[last];
  plan->block_rows = kBlockRows;
  plan->block_columns = kBlockColumns;
  if (plan->kind != Kind::Transpose) {
    plan->block_columns = columns < elements ? columns : elements;
    plan->block_rows = elements / plan->block_columns;
  }
  plan->row_blocks = (plan->sizes[last - 1] + plan->block_rows - 1) / plan->block_rows;
  plan->column_blocks = (columns + plan->block_columns - 1) / plan->block_columns;
}

void copy_block(const Plan& plan, const char* in, char* out, int64_t rows, int64_t columns) {
  const CopyLoops& loops = copy_loops();
  const size_t last = plan.rank - 1;
  const size_t size = plan.element == 8 ? 3 : static_cast<size_t>(plan.element / 2);
  const int64_t in_row = plan.in[last - 1] * plan.element;
  const int64_t out_row = plan.out[last - 1] * plan.out_element;
  switch (plan.kind) {
    case Kind::Runs:
      return loops.runs(in, in_row, out, out_row, rows, columns * plan.element);
    case Kind::Transpose:
      return loops.transpose[size](in, plan.in[last], out, plan.out[last - 1], rows, columns);
    case Kind::Lines:
      for (int64_t i = 0; i < rows; ++i) {
        loops.line[size](in + i * in_row, plan.in[last], out + i * out_row, plan.out[last],
                         columns);
      }
      return;
    case Kind::Convert:
      for (int64_t i = 0; i < rows; ++i) {
        loops.convert[static_cast<size_t>(plan.conversion)](
            in + i * in_row, plan.in[last], out + i * out_row, plan.out[last], columns);
      }
  }
}

int64_t bytes_of_result(const Copy& copy) {
  const bool widens =
      copy.conversion == Conversion::HalfToFloat || copy.conversion == Conversion::BFloatToFloat;
  if (copy.conversion == Conversion::None) return static_cast<int64_t>(copy.element_size);
  return widens ? 4 : 2;
}

// Blocks begin..end-1 of all, the last dimension's innermost.
void copy_blocks(const Plan& plan, const char* in, char* out, int64_t begin, int64_t end) {
  const size_t last = plan.rank - 1;
  for (int64_t block = begin; block < end; ++block) {
    const int64_t column = block % plan.column_blocks * plan.block_columns;
    int64_t rest = block / plan.column_blocks;
    const int64_t row = rest % plan.row_blocks * plan.block_rows;
    rest /= plan.row_blocks;
    int64_t in_at = row * plan.in[last - 1] + column * plan.in[last];
    int64_t out_at = row * plan.out[last - 1] + column * plan.out[last];
    for (size_t d = last - 1; d-- > 0; rest /= plan.sizes[d]) {
      in_at += rest % plan.sizes[d] * plan.in[d];
      out_at += rest % plan.sizes[d] * plan.out[d];
    }
    copy_block(plan, in + in_at * plan.element, out + out_at * plan.out_element,
               least(plan.block_rows, plan.sizes[last - 1] - row),
               least(plan.block_columns, plan.sizes[last] - column));
  }
}

}  // namespace

void copy(const Copy& copy, Workers* workers) {
  for (size_t d = 0; d < copy.rank; ++d) {
    if (copy.sizes[d] <= 0) return;
  }
  Plan plan;
  plan.element = static_cast<int64_t>(copy.element_size);
  plan.out_element = bytes_of_result(copy);
  plan.conversion = copy.conversion;
  sort_dimensions(copy, &plan);
  merge_dimensions(&plan);
  if (plan.conversion == Conversion::None) widen_elements(&plan);
  if (plan.rank == 0) plan.set(plan.rank++, 1, 1, 1);
  choose_kind(&plan);
  const size_t last = plan.rank - 1;
  int64_t blocks = plan.row_blocks * plan.column_blocks;
  for (size_t d = 0; d + 1 < last; ++d) blocks *= plan.sizes[d];
  const int64_t rows = least(plan.block_rows, plan.sizes[last - 1]);
  const int64_t bytes = rows * least(plan.block_columns, plan.sizes[last]) * plan.element;
  const int64_t grain = bytes < kGrainBytes ? kGrainBytes / bytes : 1;
  const char* const in = static_cast<const char*>(copy.in);
  char* const out = static_cast<char*>(copy.out);
  share_out(workers, blocks, grain,
            [&](int64_t begin, int64_t end) { copy_blocks(plan, in, out, begin, end); });
}

}  // namespace rushlight::engine
