// Payloads of the CPU engine whose sizes follow from the inputs' sizes: runs with growing,
// shrinking and empty sizes, refusals at load and at run, and which memory is used.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "check.h"
#include "engine_payload.h"
#include "rushlight/engine/graph/sizes.h"
#include "rushlight/engine/types/graph_parts.h"
#include "rushlight/module/thread_pool.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

using Change = std::function<void(EngineGraph&)>;

bool says(const char* text, const char* part) {
  if (std::strstr(text, part) != nullptr) return true;
  std::fprintf(stderr, "'%s' has no '%s'\n", text, part);
  return false;
}

// One run of join_graph().
struct Join {
  EngineTensor x, y, both, sums;

  Join(int32_t a, int32_t b, int32_t most_x = 6, int32_t most_y = 5)
      : x({a, 4}, int64_t{a} * 4),
        y({b, 4}, int64_t{b} * 4),
        both({most_x + most_y, 4}, (int64_t{most_x} + most_y) * 4),
        sums({most_x}, most_x) {
    for (size_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<float>(i) + 0.5f;
    for (size_t i = 0; i < y.numel(); ++i) y.data()[i] = -static_cast<float>(i);
  }
  std::vector<EValue*> args() { return {x.value(), y.value(), both.value(), sums.value()}; }
  bool is_right() {
    const int32_t a = x.tensor().size(0);
    const int32_t b = y.tensor().size(0);
    bool right = both.has({a + b, 4}) && sums.has({a});
    for (size_t i = 0; i < x.numel(); ++i) right = right && both.data()[i] == 2 * x.data()[i];
    for (size_t i = 0; i < y.numel(); ++i) {
      right = right && both.data()[x.numel() + i] == y.data()[i];
    }
    for (size_t i = 0; i < sums.numel(); ++i) {
      const float* row = x.data() + 4 * i;
      right = right && sums.data()[i] == 2 * (row[0] + row[1] + row[2] + row[3]);
    }
    return right && both.rest_untouched() && sums.rest_untouched();
  }
};

// --- runs ---------------------------------------------------------------------------------------

void test_all_sizes() {
  PoolWorkers two(2);
  for (Workers* workers : {static_cast<Workers*>(nullptr), static_cast<Workers*>(&two)}) {
    EngineDelegate delegate(join_graph(), workers);
    CHECK(delegate.loaded().ok());
    const size_t used = delegate.memory_used();
    // Each pair of sizes after another one: larger, smaller, empty.
    for (int32_t i = 0; i < 7 * 6 * 4; ++i) {
      const int32_t n = i * 11 % 42;
      Join join(n % 7, n / 7);
      CHECK(delegate.run(join.args(), 2).ok());
      CHECK(join.is_right());
    }
    CHECK(delegate.memory_used() == used);  // all memory was allocated at load
  }
}

void test_same_sizes_again() {
  EngineDelegate delegate(join_graph());
  for (int run = 0; run < 3; ++run) {
    Join join(3, 2);  // with outputs of other sizes each time
    CHECK(delegate.run(join.args(), 2).ok());
    CHECK(join.is_right());
  }
}

void test_after_a_failure() {
  EngineDelegate delegate(join_graph());
  Join before(3, 2), over(7, 2), after(3, 2);
  CHECK(delegate.run(before.args(), 2).ok() && before.is_right());
  CHECK(!delegate.run(over.args(), 2).ok());
  CHECK(over.both.has({11, 4}) && over.both.data()[0] == EngineTensor::kFilling);
  CHECK(delegate.run(after.args(), 2).ok() && after.is_right());
}

void test_only_used_memory_is_touched() {
  constexpr int32_t kMaxRows = 4096;
  EngineDelegate delegate(join_graph(kMaxRows, 5), nullptr, size_t{1} << 18);
  CHECK(delegate.loaded().ok() && delegate.memory_used() > kMaxRows * 16);
  const std::vector<uint64_t> before = delegate.memory();
  const auto changed = [&] {
    size_t words = 0;
    for (size_t i = 0; i < before.size(); ++i) words += before[i] != delegate.memory()[i] ? 1 : 0;
    return words * sizeof(uint64_t);
  };
  Join few(2, 1, kMaxRows, 5);
  CHECK(delegate.run(few.args(), 2).ok() && few.is_right() && changed() < 4096);
  Join many(kMaxRows, 1, kMaxRows, 5);
  CHECK(delegate.run(many.args(), 2).ok() && many.is_right() && changed() > kMaxRows * 8);
}

void attend_reference(int32_t queries, float* q, float* kv, std::vector<double>* out) {
  const int32_t keys = 10 - queries;
  for (int32_t i = 0; i < queries; ++i) {
    std::vector<double> scores;
    double total = 0;
    for (int32_t j = 0; j < keys; ++j) {
      double dot = 0;
      for (int32_t w = 0; w < 8; ++w) dot += static_cast<double>(q[i * 8 + w]) * kv[j * 8 + w];
      scores.push_back(std::exp(0.5 * dot));
      total += scores.back();
    }
    for (int32_t w = 0; w < 8; ++w) {
      double sum = 0;
      for (int32_t j = 0; j < keys; ++j) sum += scores[static_cast<size_t>(j)] * kv[j * 8 + w];
      out->push_back(keys > 0 ? sum / total : 0);
    }
  }
}

// Scratch memory beyond the need at the upper bounds comes from the method.
void test_more_scratch_than_at_the_bounds() {
  EngineDelegate delegate(attention_graph());
  CHECK(delegate.loaded().ok());
  std::vector<uint64_t> memory(1 << 13);
  for (const int32_t queries : {10, 3, 1, 0, 9}) {
    Allocator scratch(memory.data(), memory.size() * sizeof(uint64_t));
    EngineTensor q({1, 1, queries, 8}, int64_t{queries} * 8), kv({1, 1, 10, 8}, 80);
    EngineTensor out({1, 1, 10, 8}, 80);
    for (size_t i = 0; i < q.numel(); ++i) q.data()[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
    for (size_t i = 0; i < 80; ++i) kv.data()[i] = 0.125f * static_cast<float>(i % 11) - 0.5f;
    CHECK(delegate.run({q.value(), kv.value(), out.value()}, 2, &scratch).ok());
    std::vector<double> expected;
    attend_reference(queries, q.data(), kv.data(), &expected);
    CHECK(out.has({1, 1, queries, 8}) && out.rest_untouched());
    for (size_t i = 0; i < expected.size(); ++i) {
      CHECK(std::fabs(out.data()[i] - expected[i]) < 1e-5);
    }
    if (queries != 3) continue;
    CHECK(delegate.run({q.value(), kv.value(), out.value()}, 2).code() ==
          Code::MemoryAllocationFailed);
    CHECK(says(delegate.message(), "bytes of scratch for these sizes, more than for their bounds"));
  }
}

// --- expressions --------------------------------------------------------------------------------

int64_t number_of(ExpressionKind kind, int64_t a, int64_t b) {
  using engine::Expression;
  const Expression expressions[] = {{engine::ExpressionKind::Constant, a, 0},
                                    {engine::ExpressionKind::Constant, b, 0},
                                    {static_cast<engine::ExpressionKind>(kind), 0, 1}};
  const int32_t result[] = {2};
  engine::Value value;
  value.view.rank = 1;
  value.dynamic_sizes = result;
  engine::GraphParts parts;
  parts.expressions = expressions;
  parts.values = {&value, 1};
  std::vector<uint64_t> memory(64);
  Allocator allocator(memory.data(), memory.size() * 8);
  Message message;
  engine::Sizes sizes;
  CHECK(sizes.load(parts, allocator, message).ok());
  if (!sizes.take(nullptr, message).ok()) return INT64_MIN;
  CHECK(sizes.set(value));
  return value.view.sizes[0];
}

void test_arithmetic() {
  using K = ExpressionKind;
  CHECK(number_of(K::ADD, 3, -5) == -2 && number_of(K::MULTIPLY, -3, 4) == -12);
  CHECK(number_of(K::FLOOR_DIVIDE, 7, 2) == 3 && number_of(K::FLOOR_DIVIDE, -7, 2) == -4);
  CHECK(number_of(K::FLOOR_DIVIDE, 7, -2) == -4 && number_of(K::FLOOR_DIVIDE, -8, -2) == 4);
  CHECK(number_of(K::MODULO, 7, 3) == 1 && number_of(K::MODULO, -7, 3) == 2);
  CHECK(number_of(K::MODULO, 7, -3) == -2 && number_of(K::MODULO, -6, 3) == 0);
  CHECK(number_of(K::MAXIMUM, -1, 4) == 4 && number_of(K::MINIMUM, -1, 4) == -1);
  for (const K kind : {K::FLOOR_DIVIDE, K::MODULO}) {
    CHECK(number_of(kind, 7, 0) == INT64_MIN && number_of(kind, INT64_MIN, -1) == INT64_MIN);
  }
  CHECK(number_of(K::ADD, INT64_MAX, 1) == INT64_MIN);
  CHECK(number_of(K::MULTIPLY, int64_t{1} << 62, 4) == INT64_MIN);
}

// y [n, 4], from x [6, 4] and the integer n.
void test_number_among_inputs() {
  EngineGraph graph;
  graph.n_inputs = 2;
  graph.n_outputs = 1;
  graph.expressions = {{ExpressionKind::INPUT_SIZE, 1, -1}};
  graph.values = {{{6, 4}, {4, 1}, Place::INPUT, 0, 0, {}, {}, -1},
                  {{6, 4}, {4, 1}, Place::INPUT, 0, 0, {0, -1}, {}, -1},
                  {{6, 4}, {4, 1}, Place::OUTPUT, 0, 0, {0, -1}, {}, -1}};
  graph.nodes = {{schema::Operation::Copy, {}, {1}, {2}}};
  graph.arguments = {0, -1, 2};
  EngineDelegate delegate(graph);
  CHECK(delegate.loaded().ok());
  EngineTensor x({6, 4}, 24), y({6, 4}, 24);
  for (size_t i = 0; i < 24; ++i) x.data()[i] = static_cast<float>(i);
  EValue n;
  for (const int64_t rows : {2, 5, 0, 6}) {
    n.set_int(rows);
    CHECK(delegate.run({x.value(), &n, y.value()}, 2).ok());
    CHECK(y.has({static_cast<int32_t>(rows), 4}));
    CHECK(rows == 0 || y.data()[rows * 4 - 1] == static_cast<float>(rows * 4 - 1));
  }
  n.set_int(7);
  CHECK(delegate.run({x.value(), &n, y.value()}, 2).code() != Code::Ok);
  n.tag = Tag::None;
  CHECK(!delegate.run({x.value(), &n, y.value()}, 2).ok());
  CHECK(says(delegate.message(), "input 1 is not a number, but None"));
}

// --- what is refused ----------------------------------------------------------------------------

void test_wrong_inputs() {
  EngineDelegate delegate(join_graph());
  const auto refused = [&](const std::vector<int32_t>& x, const std::vector<int32_t>& y,
                           const char* reason) {
    EngineTensor a(x, 100), b(y, 100);
    Join outputs(1, 1);
    const Status status =
        delegate.run({a.value(), b.value(), outputs.both.value(), outputs.sums.value()}, 2);
    CHECK(status.code() == Code::InvalidArgument && says(delegate.message(), reason));
    CHECK(outputs.both.rest_untouched());
  };
  refused({7, 4}, {2, 4},
          "for inputs of sizes (7, 4), (2, 4): input 0 has sizes (7, 4), but the delegate was made "
          "for (6, 4) at most");
  refused({2, 4}, {6, 4}, "input 1 has sizes (6, 4), but the delegate was made for (5, 4) at most");
  refused({2, 3}, {2, 4}, "input 0 has sizes (2, 3), but (2, 4) go with the others");
  refused({2, 4, 1}, {2, 4}, "input 0 has sizes (2, 4, 1)");
  refused({8}, {2, 4}, "input 0 has sizes (8,)");
  EngineTensor y({2, 4}, 8);
  Join outputs(1, 1);
  EValue none;
  const Status status =
      delegate.run({&none, y.value(), outputs.both.value(), outputs.sums.value()}, 2);
  CHECK(!status.ok() && says(delegate.message(), "input 0 is not a tensor, but None"));
  CHECK(!delegate.run({y.value()}, 1).ok());
}

void test_refused_at_load() {
  const auto refused = [](const Change& change, const char* reason) {
    EngineGraph graph = join_graph();
    change(graph);
    EngineDelegate delegate(graph);
    CHECK(delegate.loaded().code() == Code::DelegateInvalidCompatibility);
    CHECK(says(delegate.message(), reason) && says(delegate.message(), "export the model again"));
  };
  const char* kNotBefore = "an expression is made of others that are not before it";
  refused([](EngineGraph& g) { g.expressions[2].a = 2; }, kNotBefore);
  refused([](EngineGraph& g) { g.expressions[2].b = 4; }, kNotBefore);
  refused([](EngineGraph& g) { g.expressions[4].a = -1; }, kNotBefore);
  refused([](EngineGraph& g) { g.expressions[4].b = INT64_MAX; }, kNotBefore);
  refused([](EngineGraph& g) { g.expressions[2].kind = static_cast<ExpressionKind>(8); },
          "an expression is of a kind that this runtime does not know");
  refused([](EngineGraph& g) { g.expressions[1].a = 2; },
          "an expression names an input that is not there");
  const char* kNoDimension = "an expression names a dimension that its input does not have";
  refused([](EngineGraph& g) { g.expressions[1].b = 2; }, kNoDimension);
  refused([](EngineGraph& g) { g.expressions[1].b = -1; }, kNoDimension);
  refused([](EngineGraph& g) { g.arguments[1] = -1; }, kNoDimension);
  refused([](EngineGraph& g) { g.arguments.pop_back(); },
          "does not say the sizes of its arguments");
  refused([](EngineGraph& g) { g.arguments[2] = 7; }, "those of a value that is not there");
  refused([](EngineGraph& g) { g.arguments[2] = -2; }, "those of a value that is not there");
  refused([](EngineGraph& g) { g.arguments[2] = 0; }, "those of another one's value");
  refused([](EngineGraph& g) { g.arguments[0] = 1; }, "those of another one's value");
  refused([](EngineGraph& g) { g.values[2].dynamic_sizes = {0}; },
          "value 2: its dynamic sizes or strides are not as many as its dimensions");
  refused([](EngineGraph& g) { g.values[2].dynamic_strides = {0, 0, 0}; }, "value 2: its rank");
  refused(
      [](EngineGraph& g) {
        g.values[2].sizes = {2, int64_t{1} << 33};
        g.values[2].strides = {int64_t{1} << 34, int64_t{1} << 30};
      },
      "value 2: its sizes (2, 2147483647) with strides (2147483647, 1073741824) from byte 0 on "
      "are");
  const char* kNoExpression = "it names an expression that is not there";
  refused([](EngineGraph& g) { g.values[2].dynamic_sizes[0] = 5; }, kNoExpression);
  refused([](EngineGraph& g) { g.values[3].dynamic_strides[0] = -2; }, kNoExpression);
  refused([](EngineGraph& g) { g.values[5].dynamic_offset = 5; }, kNoExpression);
  refused([](EngineGraph& g) { g.expressions.clear(); }, kNoExpression);
}

// Payloads that load, since they are valid at the upper bounds, but fail for x [3, 4] and y [2, 4].
void test_refused_at_run() {
  const auto refused = [](const Change& change, const char* reason) {
    EngineGraph graph = join_graph();
    change(graph);
    EngineDelegate delegate(graph);
    if (!delegate.loaded().ok()) std::fprintf(stderr, "%s\n", delegate.message());
    CHECK(delegate.loaded().ok());
    Join join(3, 2);
    for (int run = 0; run < 2 && delegate.loaded().ok(); ++run) {
      CHECK(!delegate.run(join.args(), 2).ok() && says(delegate.message(), reason));
      CHECK(says(delegate.message(), "for inputs of sizes (3, 4), (2, 4): "));
    }
    CHECK(join.both.rest_untouched() && join.sums.rest_untouched());
  };
  using K = ExpressionKind;
  const auto constant = [](int64_t number) { return EngineExpression{K::CONSTANT, number, 0}; };
  refused(
      [&](EngineGraph& g) {
        g.expressions.push_back(constant(0));
        g.expressions.push_back({K::FLOOR_DIVIDE, 0, 5});
      },
      "expression 6, of 3 and 0, divides by zero");
  refused(
      [&](EngineGraph& g) {
        g.expressions.push_back(constant(INT64_MAX));
        g.expressions.push_back({K::MULTIPLY, 0, 5});
      },
      "is beyond 64 bits");
  const auto with = [&](int64_t number, const std::function<void(EngineGraph&)>& set) {
    return [&, number, set](EngineGraph& g) {
      g.expressions.push_back(constant(number));
      set(g);
    };
  };
  const auto size = [](EngineGraph& g) { g.values[2].dynamic_sizes[0] = 5; };
  refused(with(-1, size), "value 2: its sizes (-1, 4) with strides (4, 1) from byte 0 on");
  refused(with(INT64_MAX, size), "value 2: its sizes (2147483647, 4) with strides (4, 1)");
  refused(with(7, size),
          "value 2: its sizes (7, 4) with strides (4, 1) from byte 0 on do not lie "
          "within the 96 bytes of its memory");
  refused(with(2, size), "they must be equal");
  const auto stride = [](EngineGraph& g) { g.values[4].dynamic_strides = {5, -1}; };
  refused(with(-4, stride), "value 4: its sizes (3, 4) with strides (-4, 1)");
  refused(with(int64_t{1} << 60, stride), "value 4: its sizes (3, 4) with strides (2147483647, 1)");
  refused(with(0, stride), "which repeat elements");  // an output that repeats elements
  const auto offset = [](EngineGraph& g) { g.values[2].dynamic_offset = 5; };
  refused(with(-16, offset), "value 2 starts before its memory");
  refused(with(2, offset), "from byte 2 on are not valid");
  refused(with(64, offset), "from byte 64 on do not lie within the 96 bytes of its memory");
  refused(with(INT64_MAX - 3, offset), "value 2");
}

// Outputs without room, or that are not tensors. If a node refuses, the error names it.
void test_wrong_outputs() {
  EngineDelegate delegate(join_graph());
  Join join(3, 2);
  EngineTensor small({1, 4}, 16), wrong_rank({20}, 20);
  CHECK(!delegate.run({join.x.value(), join.y.value(), small.value(), join.sums.value()}, 2).ok());
  CHECK(says(delegate.message(), "a result has sizes (5, 4), but its output has (1, 4)"));
  CHECK(!delegate.run({join.x.value(), join.y.value(), wrong_rank.value(), join.sums.value()}, 2)
             .ok());
  EValue none;
  CHECK(!delegate.run({join.x.value(), join.y.value(), &none, join.sums.value()}, 2).ok());
  CHECK(says(delegate.message(), "output 0 is not a tensor"));
  EngineGraph graph = join_graph();
  graph.expressions.push_back({ExpressionKind::CONSTANT, 1, 0});
  graph.values[6].dynamic_sizes[0] = 5;  // of the reduction's result
  EngineDelegate odd(graph);
  CHECK(!odd.run(join.args(), 2).ok() && std::string(odd.place()) == "3");
  CHECK(says(odd.message(), "of its result are not those of"));
}

// The delegate ends before an operator while the flag is set, and says which.
void test_cancelled() {
  EngineDelegate delegate(join_graph());
  std::atomic<bool> cancelled{true};
  delegate.set_cancelled(&cancelled);
  Join join(3, 2);
  CHECK(delegate.run(join.args(), 2).code() == Code::Cancelled);
  CHECK(says(delegate.message(), "the run was cancelled") && std::string(delegate.place()) != "");
  cancelled = false;
  CHECK(delegate.run(join.args(), 2).ok() && join.is_right());
}

// Version 1 has no expressions; its sizes are fixed for all inputs.
void test_fixed_sizes() {
  EngineGraph graph = join_graph();
  graph.version = 1;
  graph.expressions.clear();
  graph.arguments.clear();
  for (EngineValue& value : graph.values) {
    value.dynamic_sizes.clear();
    value.dynamic_strides.clear();
    value.dynamic_offset = -1;
  }
  EngineDelegate delegate(graph);
  CHECK(delegate.loaded().ok());
  Join join(6, 5);
  CHECK(delegate.run(join.args(), 2).ok() && join.is_right());
  Join less(5, 5);
  CHECK(!delegate.run(less.args(), 2).ok());
}

}  // namespace

int main() {
  test_all_sizes();
  test_same_sizes_again();
  test_after_a_failure();
  test_only_used_memory_is_touched();
  test_more_scratch_than_at_the_bounds();
  test_arithmetic();
  test_number_among_inputs();
  test_wrong_inputs();
  test_refused_at_load();
  test_refused_at_run();
  test_wrong_outputs();
  test_fixed_sizes();
  test_cancelled();
  return check_result();
}
