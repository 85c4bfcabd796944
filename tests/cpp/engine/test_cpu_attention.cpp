// Attention against softmax(scale * Q K^T + mask) V in double precision.
#include <algorithm>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/products/attention.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

struct Case {
  Attention a;
  std::vector<float> q, k, v, mask;
  int64_t out_span = 0;
};

// Strides of [batch, heads, length, width] in memory: heads outside or inside, possibly with a gap.
HeadStrides random_strides(Random& random, const Attention& a, int64_t heads, int64_t length,
                           int64_t width, int64_t* span) {
  HeadStrides strides;
  const int64_t gap = random.chance(3) ? random.whole(1, 20) : 0;
  if (random.chance(2)) {
    strides.row = width + gap;
    strides.head = strides.row * length;
    strides.batch = strides.head * heads;
  } else {
    strides.head = width;
    strides.row = width * heads + gap;
    strides.batch = strides.row * length;
  }
  *span = strides.batch * a.batch;
  return strides;
}

int64_t random_length(Random& random) {
  if (random.chance(12)) return 0;
  if (random.chance(5)) return random.whole(250, 600);
  return random.chance(3) ? random.whole(1, 4) : random.whole(1, 60);
}

void add_mask(Random& random, Case* c) {
  Attention& a = c->a;
  const bool of_batch = random.chance(2);
  const bool of_head = random.chance(2);
  const bool of_row = !random.chance(3);
  a.mask_column = random.chance(8) ? 0 : random.chance(8) ? 2 : 1;
  int64_t span = std::max<int64_t>(a.keys * a.mask_column, 1);
  a.mask_strides.row = of_row ? span : 0;
  if (of_row) span *= std::max<int64_t>(a.queries, 1);
  a.mask_strides.head = of_head ? span : 0;
  if (of_head) span *= a.heads;
  a.mask_strides.batch = of_batch ? span : 0;
  if (of_batch) span *= std::max<int64_t>(a.batch, 1);
  c->mask = random.reals(span, -3, 3);
  const int64_t hidden = random.whole(2, 4);
  // If a whole row is masked with the lowest number, all keys have equal weights.
  const float hiding = random.chance(3) ? -3.4028234663852886e38f : -kInfinity;
  for (float& m : c->mask) m = random.chance(hidden) ? hiding : m;
  if (of_row && random.chance(2)) {  // one or more rows that see no key
    const int64_t row = random.whole(0, span / std::max<int64_t>(a.mask_strides.row, 1) - 1);
    std::fill_n(c->mask.begin() + row * a.mask_strides.row, a.mask_strides.row, hiding);
  }
  if (random.chance(20)) c->mask[random.whole(0, span - 1)] = kNotANumber;
}

void spoil(Random& random, std::vector<float>* values, float value) {
  if (values->empty()) return;
  (*values)[random.whole(0, static_cast<int64_t>(values->size()) - 1)] = value;
}

Case random_case(Random& random) {
  Case c;
  Attention& a = c.a;
  a.queries = random_length(random);
  a.keys = random.chance(3) ? a.queries : random_length(random);
  const int64_t most = a.queries * a.keys > 50'000 ? 2 : 3;  // fewer for cases that take long
  a.batch = random.chance(20) ? 0 : random.whole(1, most);
  a.key_heads = random.whole(1, most);
  a.heads = a.key_heads * (random.chance(2) ? 1 : random.whole(1, most + 1));
  const int64_t widths[] = {1, 7, 16, 24, 32, 40, 64, 80, 128, 300};
  a.width = widths[random.whole(0, random.chance(3) ? 9 : 6)];
  a.value_width = random.chance(2) ? a.width : widths[random.whole(0, 8)];
  a.scale = random.chance(2) ? 1.0f / std::sqrt(static_cast<float>(a.width))
                             : 1.5f / std::sqrt(static_cast<float>(a.width));
  a.causal = random.chance(3);
  int64_t span = 0;
  a.q_strides = random_strides(random, a, a.heads, a.queries, a.width, &span);
  c.q = random.reals(span);
  a.k_strides = random_strides(random, a, a.key_heads, a.keys, a.width, &span);
  c.k = random.reals(span);
  a.v_strides = random_strides(random, a, a.key_heads, a.keys, a.value_width, &span);
  c.v = random.reals(span);
  a.out_strides = random_strides(random, a, a.heads, a.queries, a.value_width, &c.out_span);
  if (random.chance(2)) add_mask(random, &c);
  if (random.chance(12)) spoil(random, &c.q, kNotANumber);
  if (random.chance(12)) spoil(random, &c.k, kInfinity);
  a.q = c.q.data();
  a.k = c.k.data();
  a.v = c.v.data();
  a.mask = c.mask.empty() ? nullptr : c.mask.data();
  return c;
}

// The scores of one query; -infinity for keys that it does not see.
std::vector<double> scores_of(const Attention& a, int64_t b, int64_t h, int64_t i) {
  const int64_t key_head = h / (a.heads / a.key_heads);
  const float* const q = a.q + b * a.q_strides.batch + h * a.q_strides.head + i * a.q_strides.row;
  std::vector<double> scores;
  for (int64_t j = 0; j < a.keys; ++j) {
    const float* const k =
        a.k + b * a.k_strides.batch + key_head * a.k_strides.head + j * a.k_strides.row;
    double score = 0;
    for (int64_t w = 0; w < a.width; ++w) {
      score += static_cast<double>(q[w]) * static_cast<double>(k[w]);
    }
    score *= static_cast<double>(a.scale);
    if (a.mask != nullptr) {
      score += static_cast<double>(a.mask[b * a.mask_strides.batch + h * a.mask_strides.head +
                                          i * a.mask_strides.row + j * a.mask_column]);
    }
    scores.push_back(a.causal && j > i ? -INFINITY : score);
  }
  return scores;
}

// The result of one query: one number for each of value_width columns.
std::vector<double> row_of(const Attention& a, int64_t b, int64_t h, int64_t i) {
  std::vector<double> row(static_cast<size_t>(a.value_width), 0.0);
  std::vector<double> scores = scores_of(a, b, h, i);
  double max = -INFINITY;
  for (double score : scores) max = std::isnan(score) ? max : std::max(max, score);
  double sum = 0;
  for (double& score : scores) {
    score = score == -INFINITY ? 0 : std::exp(score - (max == -INFINITY ? 0 : max));
    sum += score;
  }
  if (sum == 0) return row;
  const int64_t key_head = h / (a.heads / a.key_heads);
  for (int64_t j = 0; j < a.keys; ++j) {
    const float* const v =
        a.v + b * a.v_strides.batch + key_head * a.v_strides.head + j * a.v_strides.row;
    for (int64_t w = 0; w < a.value_width; ++w) {
      row[w] += scores[j] / sum * static_cast<double>(v[w]);
    }
  }
  return row;
}

// The results of all queries, [batch, heads, queries].
std::vector<std::vector<double>> rows_of(const Attention& a) {
  std::vector<std::vector<double>> rows;
  for (int64_t row = 0; row < a.batch * a.heads * a.queries; ++row) {
    rows.push_back(
        row_of(a, row / (a.heads * a.queries), row / a.queries % a.heads, row % a.queries));
  }
  return rows;
}

// Results in a buffer with the layout of `out`; 0xa5 bytes where nothing is written.
bool check(const Attention& a, const std::vector<std::vector<double>>& rows, const float* out,
           int64_t span) {
  std::vector<bool> written(static_cast<size_t>(span), false);
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto of_head = static_cast<int64_t>(row) / a.queries;
    const int64_t at = of_head / a.heads * a.out_strides.batch +
                       of_head % a.heads * a.out_strides.head +
                       static_cast<int64_t>(row) % a.queries * a.out_strides.row;
    if (!all_close(out + at, rows[row], 5e-6, "attention", 1)) return false;
    std::fill_n(written.begin() + at, a.value_width, true);
  }
  uint32_t untouched;
  std::memset(&untouched, 0xa5, sizeof untouched);
  for (int64_t i = 0; i < span; ++i) {
    uint32_t bits;
    std::memcpy(&bits, out + i, sizeof bits);
    if (!written[i] && bits != untouched) return false;
  }
  return true;
}

void check_case(const Case& c) {
  const std::vector<std::vector<double>> rows = rows_of(c.a);
  everywhere<float>(
      c.out_span,
      [&](float* out, Workers* workers) {
        Attention a = c.a;
        a.out = out;
        const size_t threads = workers == nullptr ? 1 : workers->count();
        const size_t bytes = attention_scratch(a, threads);
        Guarded<unsigned char> scratch(static_cast<int64_t>(bytes));
        attend(a, scratch.data(), workers);
        CHECK(scratch.intact());
      },
      [&](const float* out) { CHECK(check(c.a, rows, out, c.out_span)); });
}

}  // namespace

int main() {
  Random random(1);
  for (int round = 0; round < 150; ++round) check_case(random_case(random));
  return check_result();
}
