// For tests of the CPU engine: a payload of operators on uint8 images.
#pragma once

#include "engine_payload.h"

namespace rushlight {
namespace test {

// A graph over images x [1, h, 7, 20] (h at most 9), as bytes: a depthwise convolution, its sum
// with x, a table lookup, a dense convolution to 24 channels, another one that is added to the
// result of the first, and averages of 3 by 3 with stride 2. Weights, constants of columns and the
// table are computed from the input w [5760].
struct ImageGraph : EngineGraph {
  enum Number { kX, kW, kBytes, kPanels, kRows, kImage, kDepthwise, kSum, kLooked };
  enum { kDense = kLooked + 1, kPooled, kPooledRows, kOut, kTaps, kStart, kColumns, kTable };
  enum { kDenseRows = kTable + 1 };
  enum Node {
    kToBytes,
    kWeights,
    kFlip,
    kConvolveEach,
    kAdd,
    kLookUp,
    kConvolve,
    kConvolveAdding,
    kPool
  };

  static constexpr float kScale = 0.01f;  // of x and w
  static constexpr int64_t kFirstColumn = 128;

  ImageGraph() {
    version = 4;
    n_inputs = 2;
    n_outputs = 1;
    scratch_size = 18688;
    expressions = {{ExpressionKind::INPUT_SIZE, 0, 1},   {ExpressionKind::CONSTANT, -1, 0},
                   {ExpressionKind::ADD, 0, 1},          {ExpressionKind::CONSTANT, 2, 0},
                   {ExpressionKind::FLOOR_DIVIDE, 2, 3}, {ExpressionKind::CONSTANT, 1, 0},
                   {ExpressionKind::ADD, 4, 5},          {ExpressionKind::CONSTANT, 7, 0},
                   {ExpressionKind::MULTIPLY, 0, 7}};
    add({1, 9, 7, 20}, Place::INPUT, 0, 0, DType::Float32, 0);
    add({5760}, Place::INPUT, 1, 0, DType::Float32);
    add({5760}, Place::SCRATCH, 0, 0, DType::UInt8);
    add({5760}, Place::SCRATCH, 0, 5760, DType::Int8);
    add({1, 9, 7, 20}, Place::SCRATCH, 0, 11520, DType::UInt8, 0);
    for (uint64_t offset : {11520, 12800, 14080, 15360}) add_image(20, 9, 7, offset, 0);
    add_image(24, 9, 7, 16640, 0);
    add_image(24, 5, 4, 18176, 6);
    add({1, 5, 4, 24}, Place::SCRATCH, 0, 18176, DType::UInt8, 6);
    add({1, 5, 4, 24}, Place::OUTPUT, 0, 0, DType::Float32, 6);
    add({288}, Place::SCRATCH, 0, 5760, DType::Int8);
    add({32}, Place::SCRATCH, 0, 0, DType::Int32);
    add({32}, Place::INPUT, 1, kFirstColumn * 4, DType::Float32);
    add({256}, Place::SCRATCH, 0, 0, DType::UInt8);
    add({63, 24}, Place::SCRATCH, 0, 16640, DType::UInt8);
    values.back().dynamic_sizes = {8, -1};
    Table to_bytes, to_numbers, requantize, sum;
    to_bytes.scalar<float>(0, kScale).scalar<int32_t>(1, 128);
    to_numbers.scalar<float>(0, 1).scalar<int32_t>(1, 0);
    requantize.scalar<int32_t>(0, 100).scalar<int32_t>(1, 3).scalar<int32_t>(2, 250);
    sum.scalar<float>(1, 0.5f).scalar<int32_t>(2, 128).scalar<float>(3, 0.25f);
    sum.scalar<int32_t>(4, 7).scalar<float>(5, 0.5f).ref(6, requantize.node());
    using schema::Operation;
    nodes = {{Operation::Convert, to_bytes, {kX}, {kRows}},
             {Operation::Convert, to_bytes, {kW}, {kBytes}},
             {Operation::Convert, {}, {kBytes}, {kPanels}},
             {Operation::QuantizedConvolution,
              convolution(1, 20, 9, requantize),
              {kImage, kTaps, kStart, kColumns},
              {kDepthwise}},
             {Operation::QuantizedBinary, sum, {kImage, kDepthwise}, {kSum}},
             {Operation::Lookup, {}, {kSum, kTable}, {kLooked}},
             {Operation::QuantizedConvolution,
              convolution(0, 1, 130, requantize),
              {kLooked, kPanels, kStart, kColumns},
              {kDense}},
             {Operation::QuantizedConvolution,
              convolution(0, 1, 77, requantize).ref(9, residual_of(kDenseRows, sum_of()).node()),
              {kLooked, kPanels, kStart, kColumns},
              {kDense}},
             {Operation::QuantizedPooling, pooling(requantize), {kDense}, {kPooled}},
             {Operation::Convert, to_numbers, {kPooledRows}, {kOut}}};
    arguments = {kX, kW, kOut};
  }

  static Table convolution(uint8_t kind, int64_t groups, uint8_t padding, Table requantize) {
    Table table;
    table.scalar<uint8_t>(0, kind);
    window(table, 1, 3, 1);
    table.scalar<int64_t>(5, groups).scalar<uint8_t>(6, padding).ref(7, requantize.node());
    return table;
  }
  static Table pooling(Table requantize) {
    Table table;
    table.scalar<uint8_t>(0, 1);
    window(table, 1, 3, 2);
    table.scalar<int32_t>(7, 100).scalar<float>(8, 1.5f).ref(9, requantize.node());
    return table;
  }
  // A window of `kernel` by `kernel` taps with padding on all sides.
  static void window(Table& table, unsigned field, int64_t kernel, int64_t stride) {
    const int64_t pad = kernel / 2;
    table.ref(field, vector_of<int64_t>({kernel, kernel}));
    table.ref(field + 1, vector_of<int64_t>({stride, stride}));
    table.ref(field + 2, vector_of<int64_t>({pad, pad, pad, pad}));
    table.ref(field + 3, vector_of<int64_t>({1, 1}));
  }

 private:
  // Adds a dense value. `height` is the expression of its second dimension.
  void add(const std::vector<int64_t>& sizes, Place place, uint32_t index, uint64_t offset,
           DType dtype, int32_t height = -1) {
    EngineValue value;
    value.sizes = value.strides = sizes;
    int64_t stride = 1;
    for (size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) value.strides[d] = stride;
    value.place = place;
    value.index = index;
    value.offset = offset;
    if (height >= 0) value.dynamic_sizes = {-1, height, -1, -1};
    value.dtype = dtype;
    values.push_back(value);
  }
  void add_image(int64_t channels, int64_t height, int64_t width, uint64_t offset,
                 int32_t expression) {
    EngineValue value;
    value.sizes = {1, channels, height, width};
    value.strides = {height * width * channels, 1, width * channels, channels};
    value.offset = offset;
    value.dynamic_sizes = {-1, -1, expression, -1};
    value.dtype = DType::UInt8;
    values.push_back(value);
  }
};

}  // namespace test
}  // namespace rushlight
