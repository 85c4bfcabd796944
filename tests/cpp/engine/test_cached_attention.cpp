// Attention over pages of keys and values against softmax(scale * Q K^T) V in double precision.
#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "cpu_kernels.h"
#include "rushlight/engine/kernels/products/cached_attention.h"
#include "rushlight/engine/types/kv_page.h"

using namespace rushlight;
using namespace rushlight::engine;
using namespace rushlight::test;

namespace {

constexpr int64_t kMostChecked = 10;  // rows of a call that are compared

// One call: rows of all tokens of a case, some of each sequence.
struct Call {
  std::vector<int64_t> positions, sequences;
  std::vector<int64_t> rows;  // their numbers among the case's tokens
};

struct Case {
  KvLayout layout;
  int64_t heads = 1, n_sequences = 1, layer = 0;
  float scale = 1, softcap = 0;
  int64_t window = 0;
  std::vector<int64_t> lengths;  // of each sequence
  std::vector<int64_t> starts;   // the number of each sequence's first token
  std::vector<float> q, k, v;
  std::vector<Call> calls;

  int64_t tokens() const { return starts.back() + lengths.back(); }
  int64_t out_row() const { return heads * layout.value_width; }
};

// All tokens in calls of ragged pieces, so that each sequence advances in its order.
std::vector<Call> random_calls(Random& random, const Case& c, int64_t most) {
  std::vector<Call> calls;
  std::vector<int64_t> done(c.lengths.size(), 0);
  int64_t left = c.tokens();
  while (left > 0) {
    Call call;
    for (size_t s = 0; s < done.size(); ++s) {
      const int64_t some = random.chance(3) ? 1 : random.whole(0, most);
      const int64_t n = std::min(some, c.lengths[s] - done[s]);
      for (int64_t i = 0; i < n; ++i) {
        call.positions.push_back(done[s]);
        call.sequences.push_back(static_cast<int64_t>(s));
        call.rows.push_back(c.starts[s] + done[s]++);
      }
      left -= n;
    }
    if (!call.rows.empty()) calls.push_back(call);
  }
  return calls;
}

Case random_case(Random& random, DType dtype) {
  Case c;
  const int64_t widths[] = {64, 80, 96, 128, 1, 7, 20, 256, 300};
  c.layout.dtype = dtype;
  c.layout.layers = static_cast<uint32_t>(random.whole(1, 3));
  c.layout.heads = static_cast<uint32_t>(random.whole(1, 3));
  c.layout.width = static_cast<uint32_t>(widths[random.whole(0, 8)]);
  c.layout.value_width =
      random.chance(2) ? c.layout.width : static_cast<uint32_t>(widths[random.whole(0, 7)]);
  c.heads = c.layout.heads * (random.chance(3) ? random.whole(2, 17) : random.whole(1, 4));
  c.layer = random.whole(0, c.layout.layers - 1);
  c.scale = 1.0f / std::sqrt(static_cast<float>(c.layout.width));
  if (random.chance(3)) c.softcap = random.real(1, 4);
  if (random.chance(3)) c.window = random.whole(1, 200);
  const bool is_long = random.chance(12) && c.layout.width < 128;
  c.n_sequences = is_long ? 1 : random.whole(1, 3);
  int64_t tokens = 0;
  for (int64_t s = 0; s < c.n_sequences; ++s) {
    c.starts.push_back(tokens);
    c.lengths.push_back(is_long ? random.whole(900, 2600) : random.whole(0, 150));
    tokens += c.lengths.back();
  }
  c.q = random.reals(tokens * c.heads * c.layout.width);
  c.k = random.reals(tokens * c.layout.heads * c.layout.width);
  c.v = random.reals(tokens * c.layout.heads * c.layout.value_width);
  c.calls = random_calls(random, c, is_long ? 900 : 70);
  return c;
}

// Pages in any order, filled with bytes that are NaN as floats.
class Pages {
 public:
  explicit Pages(const Case& c) : size_(kv_page_bytes(c.layout)) {
    std::vector<size_t> counts;
    for (int64_t length : c.lengths) counts.push_back((static_cast<size_t>(length) + 63) / 64);
    const size_t all = std::accumulate(counts.begin(), counts.end(), size_t{0});
    memory_.assign(all * size_ + 64, 0xff);
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    uint8_t* const first = memory_.data() + (64 - address % 64) % 64;
    for (size_t i = all; i > 0; --i) pages_.push_back(first + (i - 1) * size_);
    size_t used = 0;
    for (size_t count : counts) {
      sequences_.push_back({pages_.data() + used, count});
      used += count;
    }
    cache.layout = c.layout;
    cache.sequences = {sequences_.data(), sequences_.size()};
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  // Takes pages away that no token of the call, or of a later one, sees.
  void drop(const Case& c, const Call& call) {
    for (size_t i = 0; i < call.rows.size(); ++i) {
      const bool is_first = i == 0 || call.sequences[i] != call.sequences[i - 1];
      if (c.window == 0 || !is_first) continue;
      auto** const pages = const_cast<uint8_t**>(sequences_[call.sequences[i]].pages);
      const int64_t seen = std::max<int64_t>(0, call.positions[i] + 1 - c.window);
      std::fill_n(pages, seen / kKvTokens, nullptr);
    }
  }

  KvCache cache;

 private:
  size_t size_;
  std::vector<uint8_t> memory_;
  std::vector<uint8_t*> pages_;
  std::vector<KvSequence> sequences_;
};

// Computes a call; the results of the case's token i are written to out + i * out_row().
void run_call(const Case& c, const Call& call, const KvCache& cache, float* out, Workers* workers) {
  const int64_t n = static_cast<int64_t>(call.rows.size());
  const int64_t q_row = c.heads * c.layout.width;
  const int64_t k_row = c.layout.heads * c.layout.width;
  const int64_t v_row = c.layout.heads * c.layout.value_width;
  std::vector<float> q, k, v;
  for (int64_t row : call.rows) {
    q.insert(q.end(), &c.q[row * q_row], &c.q[row * q_row] + q_row);
    k.insert(k.end(), &c.k[row * k_row], &c.k[row * k_row] + k_row);
    v.insert(v.end(), &c.v[row * v_row], &c.v[row * v_row] + v_row);
  }
  Guarded<float> results(n * c.out_row());
  CachedAttention a;
  a.tokens = n;
  a.heads = c.heads;
  a.key_heads = c.layout.heads;
  a.width = c.layout.width;
  a.value_width = c.layout.value_width;
  a.q = q.data();
  a.k = k.data();
  a.v = v.data();
  a.q_strides = {q_row, a.width};
  a.k_strides = {k_row, a.width};
  a.v_strides = {v_row, a.value_width};
  a.out_strides = {c.out_row(), a.value_width};
  a.positions = call.positions.data();
  a.sequences = call.sequences.data();
  a.out = results.data();
  a.layer = c.layer;
  a.scale = c.scale;
  a.window = c.window;
  a.softcap = c.softcap;
  const size_t threads = workers == nullptr ? 1 : workers->count();
  Guarded<unsigned char> scratch(static_cast<int64_t>(cached_attention_scratch(a, threads)));
  attend_to_cache(a, cache, scratch.data(), workers);
  CHECK(scratch.intact() && results.intact());
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(results.data() + i * c.out_row(), c.out_row(), out + call.rows[i] * c.out_row());
  }
}

// The result of one head of a token, by its number among all.
std::vector<double> row_of(const Case& c, int64_t sequence, int64_t position, int64_t head) {
  const int64_t width = c.layout.width;
  const int64_t value_width = c.layout.value_width;
  const int64_t key_head = head / (c.heads / c.layout.heads);
  const int64_t first = c.window > 0 ? std::max<int64_t>(0, position + 1 - c.window) : 0;
  const float* const q = &c.q[((c.starts[sequence] + position) * c.heads + head) * width];
  std::vector<double> scores;
  for (int64_t t = first; t <= position; ++t) {
    const int64_t row = (c.starts[sequence] + t) * c.layout.heads + key_head;
    double score = 0;
    for (int64_t w = 0; w < width; ++w) {
      score += static_cast<double>(q[w]) * static_cast<double>(c.k[row * width + w]);
    }
    score *= static_cast<double>(c.scale);
    const double cap = static_cast<double>(c.softcap);
    scores.push_back(cap > 0 ? cap * std::tanh(score / cap) : score);
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - max);
  std::vector<double> result(static_cast<size_t>(value_width), 0.0);
  for (int64_t t = first; t <= position; ++t) {
    const int64_t row = (c.starts[sequence] + t) * c.layout.heads + key_head;
    for (int64_t w = 0; w < value_width; ++w) {
      result[w] += scores[t - first] / sum * static_cast<double>(c.v[row * value_width + w]);
    }
  }
  return result;
}

double tolerance_of(DType dtype) {
  return dtype == DType::Float32 ? 5e-6 : dtype == DType::Float16 ? 1e-3 : 1e-2;
}

void check_case(Random& random, const Case& c) {
  struct Expected {
    int64_t at;
    std::vector<double> row;
  };
  std::vector<Expected> expected;
  for (const Call& call : c.calls) {
    for (int64_t i = 0; i < kMostChecked; ++i) {
      const int64_t n = static_cast<int64_t>(call.rows.size());
      const int64_t token = i == 0 ? n - 1 : random.whole(0, n - 1);
      const int64_t head = random.whole(0, c.heads - 1);
      expected.push_back({call.rows[token] * c.out_row() + head * c.layout.value_width,
                          row_of(c, call.sequences[token], call.positions[token], head)});
    }
  }
  everywhere<float>(
      c.tokens() * c.out_row(),
      [&](float* out, Workers* workers) {
        Pages pages(c);
        for (const Call& call : c.calls) {
          pages.drop(c, call);
          run_call(c, call, pages.cache, out, workers);
        }
      },
      [&](const float* out) {
        for (const Expected& e : expected) {
          CHECK(all_close(out + e.at, e.row, tolerance_of(c.layout.dtype), "cached attention", 1));
        }
      });
}

// Tokens have the same results, bit by bit, in other calls.
void check_calls(Random& random, const Case& c) {
  everywhere<float>(
      c.tokens() * c.out_row(),
      [&](float* out, Workers* workers) {
        Pages pages(c);
        for (const Call& call : c.calls) {
          pages.drop(c, call);
          run_call(c, call, pages.cache, out, workers);
        }
      },
      [&](const float* out) {
        Guarded<float> other(c.tokens() * c.out_row());
        Pages pages(c);
        const std::vector<Call> calls = random_calls(random, c, 9);
        for (const Call& call : calls) run_call(c, call, pages.cache, other.data(), nullptr);
        CHECK(std::memcmp(out, other.data(), other.size() * sizeof(float)) == 0);
      });
}

// Trained models have channels of keys that are far greater than the rest.
void check_great_channels(Random& random, DType dtype, int64_t width, int64_t great) {
  Case c;
  c.layout = {dtype, 1, 1, static_cast<uint32_t>(width), static_cast<uint32_t>(width)};
  c.heads = 4;
  c.scale = 1.0f / std::sqrt(static_cast<float>(width));
  c.starts = {0};
  c.lengths = {4096};
  const auto normal = [&](int64_t n) {
    std::vector<float> values(static_cast<size_t>(n));
    for (float& value : values) {
      value = 0;
      for (int i = 0; i < 12; ++i) value += random.real(-0.5f, 0.5f);
    }
    return values;
  };
  c.q = normal(4096 * 4 * width);
  c.k = normal(4096 * width);
  c.v = normal(4096 * width);
  for (int64_t t = 0; t < 4096; ++t) {
    for (int64_t w = 0; w < great; ++w) c.k[t * width + w * 5 % width] *= 50;
  }
  c.calls.resize(4);
  for (int64_t t = 0; t < 4096; ++t) {
    Call& call = c.calls[t / 1024];
    call.positions.push_back(t);
    call.sequences.push_back(0);
    call.rows.push_back(t);
  }
  Guarded<float> out(c.tokens() * c.out_row());
  Pages pages(c);
  static PoolWorkers two(2);
  for (const Call& call : c.calls) run_call(c, call, pages.cache, out.data(), &two);
  double error = 0;
  double size = 0;
  for (int64_t t = 4095; t >= 4096 - 16; --t) {
    for (int64_t head = 0; head < 4; ++head) {
      const std::vector<double> row = row_of(c, 0, t, head);
      for (int64_t w = 0; w < width; ++w) {
        const double result = out[t * c.out_row() + head * width + w];
        error += (result - row[w]) * (result - row[w]);
        size += row[w] * row[w];
      }
    }
  }
  std::printf("%s, width %ld, %ld great channels: error %.2f %%\n", dtype_name(dtype),
              static_cast<long>(width), static_cast<long>(great), 100 * std::sqrt(error / size));
  CHECK(std::sqrt(error / size) < 0.01);
}

}  // namespace

// The number of rounds is an argument: fewer under sanitizers, which make each take long.
int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 25;
  Random random(1);
  for (DType dtype : {DType::Float32, DType::Float16, DType::Int8}) {
    for (long round = 0; round < rounds; ++round) check_case(random, random_case(random, dtype));
    for (long round = 0; round < rounds; round += 5) {
      check_calls(random, random_case(random, dtype));
    }
  }
  check_great_channels(random, DType::Int8, 80, 4);
  for (int64_t great = 1; rounds >= 25 && great <= 8; great = great == 1 ? 4 : 2 * great) {
    check_great_channels(random, DType::Int8, 64, great);
    check_great_channels(random, DType::Int8, 128, great);
  }
  return check_result();
}
