// Payloads with attention over a cache that are refused when they are loaded. What a run refuses is
// tested in Python (tests/python/backends/cpu/operators/test_cached_attention.py).
#include <cstring>

#include "cpu_kernels.h"
#include "engine_payload.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

constexpr int64_t kTokens = 4, kHeads = 6, kKeyHeads = 2, kWidth = 8, kValueWidth = 5;

EngineGraph graph_of(uint32_t layer = 1, int64_t window = 0, float softcap = 0) {
  uint32_t bits;
  std::memcpy(&bits, &softcap, sizeof(bits));
  Table attention;
  attention.scalar<uint32_t>(0, layer).scalar<uint32_t>(1, 0x3f800000);
  attention.scalar<int64_t>(2, window).scalar<uint32_t>(3, bits);
  EngineGraph graph;
  graph.version = 7;
  graph.n_inputs = 5;
  graph.n_outputs = 1;
  const auto rows = [](int64_t heads, int64_t width, Place place, uint32_t index) {
    EngineValue value;
    value.sizes = {kTokens, heads, width};
    value.strides = {heads * width, width, 1};
    value.place = place;
    value.index = index;
    return value;
  };
  EngineValue positions;
  positions.sizes = {kTokens};
  positions.strides = {1};
  positions.place = Place::INPUT;
  positions.index = 3;
  positions.dtype = DType::Int64;
  EngineValue sequences = positions;
  sequences.index = 4;
  graph.values = {rows(kHeads, kWidth, Place::INPUT, 0),
                  rows(kKeyHeads, kWidth, Place::INPUT, 1),
                  rows(kKeyHeads, kValueWidth, Place::INPUT, 2),
                  positions,
                  sequences,
                  rows(kHeads, kValueWidth, Place::OUTPUT, 0)};
  graph.nodes = {{schema::Operation::CachedAttention, attention, {0, 1, 2, 3, 4}, {5}}};
  return graph;
}

void test_refused() {
  CHECK(EngineDelegate(graph_of(), nullptr, size_t{1} << 20).loaded().ok());
  check_refused(graph_of(1, -1), "its window is negative");
  check_refused(graph_of(1, 0, -1), "its softcap is no positive number");
  check_refused(graph_of(1, 0, kNotANumber), "its softcap is no positive number");
  EngineGraph graph = graph_of();
  graph.nodes[0].inputs[4] = -1;
  check_refused(graph, "its input 4 is missing");
  graph = graph_of();
  graph.nodes[0].inputs = {0, 1, 2, 0, 4};
  check_refused(graph, "its input 3 is float32, but must be int64");
  for (size_t value = 0; value < 6; ++value) {
    graph = graph_of();
    graph.values[value].sizes[0] = kTokens - 1;
    check_refused(graph, "its sizes do not fit");
  }
  graph = graph_of();
  graph.values[1].sizes[1] = 1;  // of keys, but not of values
  check_refused(graph, "its sizes do not fit");
  graph = graph_of();
  graph.values[0].sizes[1] = graph.values[5].sizes[1] = 5;  // not a multiple of 2
  check_refused(graph, "its sizes do not fit");
  graph = graph_of();
  graph.values[0].sizes[2] = graph.values[1].sizes[2] = 0;
  check_refused(graph, "its sizes do not fit");
  graph = graph_of();
  graph.values[2].strides[2] = 2;
  check_refused(graph, "its values are not [tokens, heads, width] in rows");
  graph = graph_of();
  graph.values[5].strides[0] = 0;
  check_refused(graph, "which repeat elements");
}

}  // namespace

int main() {
  test_refused();
  return check_result();
}
