// The graph in a payload of ExecuTorch's delegate XnnpackBackend. Behind the payload's header
// stands this flatbuffer, and the constants lie in the program's named data or in the payload.
//
// Made from schema/xnnpack.fbs by `python -m codegen.schema`; edit that file instead.
#pragma once

#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {
namespace xnnpack {

// How the elements of a value are stored. The numbers are the format's own, not the library's.
enum class Datatype : int16_t {
  INVALID = 0,
  FP32 = 1,
  FP16 = 2,
  QINT8 = 3,
  QUINT8 = 4,
  QINT32 = 5,
  QCINT8 = 6,
  QCINT32 = 7,
  QCINT4 = 8,
  QDINT8 = 9,
  QBINT4 = 10,
  QPINT8 = 11,
  INT32 = 12,
  PFP32 = 13,
  BF16 = 14,
};

// How integers stand for numbers.
enum class QuantParams : uint8_t {
  NONE = 0,
  PerChannelQuant = 1,
  PerTensorQuant = 2,
  PerTokenDynamicQuant = 3,
  PerChannelGroupQuant = 4,
};

// The kind of a value.
enum class ValueKind : uint8_t {
  NONE = 0,
  TensorValue = 1,
  QuantizedTensorValue = 2,
};

// The operation of a node.
enum class NodeKind : uint8_t {
  NONE = 0,
  Add = 1,
  FullyConnected = 2,
  Softmax = 3,
  Sigmoid = 4,
  StaticTranspose = 5,
  Clamp = 6,
  Conv2d = 7,
  Div = 8,
  StaticResizeBilinear2D = 9,
  StaticConstantPad = 10,
  AvgPooling2d = 11,
  Minimum = 12,
  DepthwiseConv2d = 13,
  MaxPooling2d = 14,
  Multiply = 15,
  Subtract = 16,
  Floor = 17,
  Convert = 18,
  GlobalAvgPooling2d = 19,
  StaticReshape = 20,
  ArgMaxPooling2d = 21,
  SquareRoot = 22,
  Ceiling = 23,
  Hardswish = 24,
  LeakyReLU = 25,
  Maximum = 26,
  Negate = 27,
  Square = 28,
  ELU = 29,
  Abs = 30,
  PReLU = 31,
  Concatenate2 = 32,
  Concatenate3 = 33,
  Concatenate4 = 34,
  StaticSlice = 35,
  ScaledDotProductAttention = 36,
  BatchMatrixMultiply = 37,
  Concatenate5 = 38,
  ConvTranspose2d = 39,
  ReciprocalSquareRoot = 40,
  Log = 41,
  Gelu = 42,
  Tanh = 43,
  Exp = 44,
  Sin = 45,
  Copy = 46,
  Cos = 47,
};

// A scale for each index of one dimension.
class PerChannelQuant : public Table {
 public:
  using Table::Table;
  Vector<float> scale() const { return Vector<float>(target(0)); }
  bool has_scale() const { return field(0) != nullptr; }
  int32_t channel_dim() const { return scalar<int32_t>(1, 0); }
  // Where the scales are a constant: its index, else 0.
  uint32_t scale_buffer_idx() const { return scalar<uint32_t>(2, 0); }
  uint32_t num_scales() const { return scalar<uint32_t>(3, 0); }
};

// One scale and zero point for all elements.
class PerTensorQuant : public Table {
 public:
  using Table::Table;
  float scale() const { return scalar<float>(0, 0.0); }
  int32_t zero_point() const { return scalar<int32_t>(1, 0); }
};

// A scale and zero point for each row, found when it is quantised.
class PerTokenDynamicQuant : public Table {
 public:
  using Table::Table;
  // Dimensions that make a row, counted from the last.
  int32_t num_nonbatch_dims() const { return scalar<int32_t>(0, 0); }
};

// A scale for each group of `group_size` neighbours within a channel.
class PerChannelGroupQuant : public Table {
 public:
  using Table::Table;
  Vector<float> scale() const { return Vector<float>(target(0)); }
  bool has_scale() const { return field(0) != nullptr; }
  int32_t channel_dim() const { return scalar<int32_t>(1, 0); }
  int32_t group_size() const { return scalar<int32_t>(2, 0); }
  // In old payloads only.
  Vector<uint16_t> scale_bf16() const { return Vector<uint16_t>(target(3)); }
  bool has_scale_bf16() const { return field(3) != nullptr; }
  // Where the scales are a constant, of bfloat16: its index, else 0.
  uint32_t scale_buffer_idx() const { return scalar<uint32_t>(4, 0); }
  uint32_t num_scales() const { return scalar<uint32_t>(5, 0); }
};

// A tensor of the graph.
class TensorValue : public Table {
 public:
  using Table::Table;
  Datatype datatype() const { return scalar<Datatype>(0, Datatype::INVALID); }
  uint32_t num_dims() const { return scalar<uint32_t>(1, 0); }
  Vector<uint32_t> dims() const { return Vector<uint32_t>(target(2)); }
  bool has_dims() const { return field(2) != nullptr; }
  // Index of its constant; 0 if it is none.
  uint32_t constant_buffer_idx() const { return scalar<uint32_t>(3, 0); }
  // Which argument of the delegate it is; 0xFFFFFFFF if none.
  uint32_t external_id() const { return scalar<uint32_t>(4, 0); }
  // 1 of an input, 2 of an output.
  uint32_t flags() const { return scalar<uint32_t>(5, 0); }
  // The number by which nodes name it.
  uint32_t id_out() const { return scalar<uint32_t>(6, 0); }
  // In old payloads only: the quantization of an external input.
  Datatype dq_datatype() const { return scalar<Datatype>(7, Datatype::INVALID); }
};

// A quantised tensor of the graph.
class QuantizedTensorValue : public Table {
 public:
  using Table::Table;
  TensorValue tensor_value() const { return TensorValue(target(0)); }
  bool has_tensor_value() const { return field(0) != nullptr; }
  QuantParams quant_params_type() const { return scalar<QuantParams>(1, QuantParams::NONE); }
  // Absent unless the type is this one.
  PerChannelQuant quant_params_as_PerChannelQuant() const {
    return PerChannelQuant(member(1, static_cast<uint8_t>(QuantParams::PerChannelQuant)));
  }
  PerTensorQuant quant_params_as_PerTensorQuant() const {
    return PerTensorQuant(member(1, static_cast<uint8_t>(QuantParams::PerTensorQuant)));
  }
  PerTokenDynamicQuant quant_params_as_PerTokenDynamicQuant() const {
    return PerTokenDynamicQuant(member(1, static_cast<uint8_t>(QuantParams::PerTokenDynamicQuant)));
  }
  PerChannelGroupQuant quant_params_as_PerChannelGroupQuant() const {
    return PerChannelGroupQuant(member(1, static_cast<uint8_t>(QuantParams::PerChannelGroupQuant)));
  }
  bool has_quant_params() const { return field(2) != nullptr; }
};

// A value of the graph.
class Value : public Table {
 public:
  using Table::Table;
  ValueKind xvalue_union_type() const { return scalar<ValueKind>(0, ValueKind::NONE); }
  // Absent unless the type is this one.
  TensorValue xvalue_union_as_TensorValue() const {
    return TensorValue(member(0, static_cast<uint8_t>(ValueKind::TensorValue)));
  }
  QuantizedTensorValue xvalue_union_as_QuantizedTensorValue() const {
    return QuantizedTensorValue(member(0, static_cast<uint8_t>(ValueKind::QuantizedTensorValue)));
  }
  bool has_xvalue_union() const { return field(1) != nullptr; }
};

// A node with one input.
class Unary : public Table {
 public:
  using Table::Table;
  uint32_t input_id() const { return scalar<uint32_t>(0, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(1, 0); }
  uint32_t flags() const { return scalar<uint32_t>(2, 0); }
};

// A node with two inputs.
class Binary : public Table {
 public:
  using Table::Table;
  uint32_t input1_id() const { return scalar<uint32_t>(0, 0); }
  uint32_t input2_id() const { return scalar<uint32_t>(1, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t flags() const { return scalar<uint32_t>(3, 0); }
};

// Inputs joined along one dimension; those beyond the node's number are 0.
class Concatenate : public Table {
 public:
  using Table::Table;
  uint32_t axis() const { return scalar<uint32_t>(0, 0); }
  uint32_t input1_id() const { return scalar<uint32_t>(1, 0); }
  uint32_t input2_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t input3_id() const { return scalar<uint32_t>(3, 0); }
  uint32_t input4_id() const { return scalar<uint32_t>(4, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(5, 0); }
  uint32_t flags() const { return scalar<uint32_t>(6, 0); }
  uint32_t input5_id() const { return scalar<uint32_t>(7, 0); }
};

// A product with a matrix of weights.
class FullyConnected : public Table {
 public:
  using Table::Table;
  uint32_t input1_id() const { return scalar<uint32_t>(0, 0); }
  uint32_t filter_id() const { return scalar<uint32_t>(1, 0); }
  // 0xFFFFFFFF without a bias.
  uint32_t bias_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(3, 0); }
  // 1 if the filter is [in, out], else it is [out, in].
  uint32_t flags() const { return scalar<uint32_t>(4, 0); }
};

// A convolution of images in NHWC.
class Convolution : public Table {
 public:
  using Table::Table;
  uint32_t padding_top() const { return scalar<uint32_t>(0, 0); }
  uint32_t padding_right() const { return scalar<uint32_t>(1, 0); }
  uint32_t padding_bottom() const { return scalar<uint32_t>(2, 0); }
  uint32_t padding_left() const { return scalar<uint32_t>(3, 0); }
  uint32_t kernel_height() const { return scalar<uint32_t>(4, 0); }
  uint32_t kernel_width() const { return scalar<uint32_t>(5, 0); }
  uint32_t subsampling_height() const { return scalar<uint32_t>(6, 0); }
  uint32_t subsampling_width() const { return scalar<uint32_t>(7, 0); }
  uint32_t dilation_height() const { return scalar<uint32_t>(8, 0); }
  uint32_t dilation_width() const { return scalar<uint32_t>(9, 0); }
  uint32_t group_input_channels() const { return scalar<uint32_t>(10, 0); }
  uint32_t group_output_channels() const { return scalar<uint32_t>(11, 0); }
  uint32_t groups() const { return scalar<uint32_t>(12, 0); }
  uint32_t adjustment_height() const { return scalar<uint32_t>(13, 0); }
  uint32_t adjustment_width() const { return scalar<uint32_t>(14, 0); }
  uint32_t input1_id() const { return scalar<uint32_t>(15, 0); }
  uint32_t filter_id() const { return scalar<uint32_t>(16, 0); }
  // 0xFFFFFFFF without a bias.
  uint32_t bias_id() const { return scalar<uint32_t>(17, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(18, 0); }
  uint32_t flags() const { return scalar<uint32_t>(19, 0); }
};

// Pooling of images in NHWC.
class Pooling : public Table {
 public:
  using Table::Table;
  uint32_t padding_top() const { return scalar<uint32_t>(0, 0); }
  uint32_t padding_right() const { return scalar<uint32_t>(1, 0); }
  uint32_t padding_bottom() const { return scalar<uint32_t>(2, 0); }
  uint32_t padding_left() const { return scalar<uint32_t>(3, 0); }
  uint32_t pooling_height() const { return scalar<uint32_t>(4, 0); }
  uint32_t pooling_width() const { return scalar<uint32_t>(5, 0); }
  uint32_t stride_height() const { return scalar<uint32_t>(6, 0); }
  uint32_t stride_width() const { return scalar<uint32_t>(7, 0); }
  uint32_t dilation_height() const { return scalar<uint32_t>(8, 0); }
  uint32_t dilation_width() const { return scalar<uint32_t>(9, 0); }
  uint32_t input_id() const { return scalar<uint32_t>(10, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(11, 0); }
  uint32_t flags() const { return scalar<uint32_t>(12, 0); }
};

// The maximum of each window of images in NHWC, and where in the window it is.
class ArgMaxPooling2d : public Table {
 public:
  using Table::Table;
  uint32_t padding_top() const { return scalar<uint32_t>(0, 0); }
  uint32_t padding_right() const { return scalar<uint32_t>(1, 0); }
  uint32_t padding_bottom() const { return scalar<uint32_t>(2, 0); }
  uint32_t padding_left() const { return scalar<uint32_t>(3, 0); }
  uint32_t pooling_height() const { return scalar<uint32_t>(4, 0); }
  uint32_t pooling_width() const { return scalar<uint32_t>(5, 0); }
  uint32_t input_id() const { return scalar<uint32_t>(6, 0); }
  uint32_t output_value_id() const { return scalar<uint32_t>(7, 0); }
  uint32_t output_index_id() const { return scalar<uint32_t>(8, 0); }
  uint32_t flags() const { return scalar<uint32_t>(9, 0); }
};

// Dimensions in another order.
class StaticTranspose : public Table {
 public:
  using Table::Table;
  uint32_t num_dims() const { return scalar<uint32_t>(0, 0); }
  Vector<uint32_t> perm() const { return Vector<uint32_t>(target(1)); }
  bool has_perm() const { return field(1) != nullptr; }
  uint32_t input_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(3, 0); }
  uint32_t flags() const { return scalar<uint32_t>(4, 0); }
};

// The same elements in other dimensions.
class StaticReshape : public Table {
 public:
  using Table::Table;
  uint32_t num_dims() const { return scalar<uint32_t>(0, 0); }
  // One size may be 0, which stands for the remaining elements.
  Vector<uint32_t> new_shape() const { return Vector<uint32_t>(target(1)); }
  bool has_new_shape() const { return field(1) != nullptr; }
  uint32_t input_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(3, 0); }
  uint32_t flags() const { return scalar<uint32_t>(4, 0); }
};

// Images in NHWC at another size.
class StaticResizeBilinear2D : public Table {
 public:
  using Table::Table;
  uint32_t new_height() const { return scalar<uint32_t>(0, 0); }
  uint32_t new_width() const { return scalar<uint32_t>(1, 0); }
  uint32_t input_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(3, 0); }
  // 8 if corners are aligned.
  uint32_t flags() const { return scalar<uint32_t>(4, 0); }
};

// A constant around a tensor.
class StaticConstantPad : public Table {
 public:
  using Table::Table;
  Vector<uint32_t> pre_paddings() const { return Vector<uint32_t>(target(0)); }
  bool has_pre_paddings() const { return field(0) != nullptr; }
  Vector<uint32_t> post_paddings() const { return Vector<uint32_t>(target(1)); }
  bool has_post_paddings() const { return field(1) != nullptr; }
  float padding_value() const { return scalar<float>(2, 0.0); }
  uint32_t input_id() const { return scalar<uint32_t>(3, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(4, 0); }
  uint32_t flags() const { return scalar<uint32_t>(5, 0); }
};

// A part of a tensor.
class StaticSlice : public Table {
 public:
  using Table::Table;
  uint32_t num_dims() const { return scalar<uint32_t>(0, 0); }
  Vector<uint32_t> offsets() const { return Vector<uint32_t>(target(1)); }
  bool has_offsets() const { return field(1) != nullptr; }
  Vector<uint32_t> sizes() const { return Vector<uint32_t>(target(2)); }
  bool has_sizes() const { return field(2) != nullptr; }
  uint32_t input_id() const { return scalar<uint32_t>(3, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(4, 0); }
  uint32_t flags() const { return scalar<uint32_t>(5, 0); }
};

// x, or `negative_slope` * x below 0.
class LeakyReLU : public Table {
 public:
  using Table::Table;
  float negative_slope() const { return scalar<float>(0, 0.0); }
  uint32_t input_id() const { return scalar<uint32_t>(1, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t flags() const { return scalar<uint32_t>(3, 0); }
};

// x, or `alpha` * (exp(x) - 1) below 0.
class ELU : public Table {
 public:
  using Table::Table;
  float alpha() const { return scalar<float>(0, 0.0); }
  uint32_t input_id() const { return scalar<uint32_t>(1, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t flags() const { return scalar<uint32_t>(3, 0); }
};

// Attention; no runtime implements it.
class ScaledDotProductAttention : public Table {
 public:
  using Table::Table;
  uint32_t query_id() const { return scalar<uint32_t>(0, 0); }
  uint32_t key_id() const { return scalar<uint32_t>(1, 0); }
  uint32_t value_id() const { return scalar<uint32_t>(2, 0); }
  uint32_t scale_id() const { return scalar<uint32_t>(3, 0); }
  uint32_t mask_id() const { return scalar<uint32_t>(4, 0); }
  uint32_t output_id() const { return scalar<uint32_t>(5, 0); }
  uint32_t flags() const { return scalar<uint32_t>(6, 0); }
};

// The limits of a node's results.
class OutputMinMax : public Table {
 public:
  using Table::Table;
  float output_min() const { return scalar<float>(0, 0.0); }
  float output_max() const { return scalar<float>(1, 0.0); }
};

// A node of the graph.
class Node : public Table {
 public:
  using Table::Table;
  NodeKind xnode_union_type() const { return scalar<NodeKind>(0, NodeKind::NONE); }
  // Absent unless the type is this one.
  Binary xnode_union_as_Add() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::Add)));
  }
  FullyConnected xnode_union_as_FullyConnected() const {
    return FullyConnected(member(0, static_cast<uint8_t>(NodeKind::FullyConnected)));
  }
  Unary xnode_union_as_Softmax() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Softmax)));
  }
  Unary xnode_union_as_Sigmoid() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Sigmoid)));
  }
  StaticTranspose xnode_union_as_StaticTranspose() const {
    return StaticTranspose(member(0, static_cast<uint8_t>(NodeKind::StaticTranspose)));
  }
  Unary xnode_union_as_Clamp() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Clamp)));
  }
  Convolution xnode_union_as_Conv2d() const {
    return Convolution(member(0, static_cast<uint8_t>(NodeKind::Conv2d)));
  }
  Binary xnode_union_as_Div() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::Div)));
  }
  StaticResizeBilinear2D xnode_union_as_StaticResizeBilinear2D() const {
    return StaticResizeBilinear2D(
        member(0, static_cast<uint8_t>(NodeKind::StaticResizeBilinear2D)));
  }
  StaticConstantPad xnode_union_as_StaticConstantPad() const {
    return StaticConstantPad(member(0, static_cast<uint8_t>(NodeKind::StaticConstantPad)));
  }
  Pooling xnode_union_as_AvgPooling2d() const {
    return Pooling(member(0, static_cast<uint8_t>(NodeKind::AvgPooling2d)));
  }
  Binary xnode_union_as_Minimum() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::Minimum)));
  }
  Convolution xnode_union_as_DepthwiseConv2d() const {
    return Convolution(member(0, static_cast<uint8_t>(NodeKind::DepthwiseConv2d)));
  }
  Pooling xnode_union_as_MaxPooling2d() const {
    return Pooling(member(0, static_cast<uint8_t>(NodeKind::MaxPooling2d)));
  }
  Binary xnode_union_as_Multiply() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::Multiply)));
  }
  Binary xnode_union_as_Subtract() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::Subtract)));
  }
  Unary xnode_union_as_Floor() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Floor)));
  }
  Unary xnode_union_as_Convert() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Convert)));
  }
  Unary xnode_union_as_GlobalAvgPooling2d() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::GlobalAvgPooling2d)));
  }
  StaticReshape xnode_union_as_StaticReshape() const {
    return StaticReshape(member(0, static_cast<uint8_t>(NodeKind::StaticReshape)));
  }
  ArgMaxPooling2d xnode_union_as_ArgMaxPooling2d() const {
    return ArgMaxPooling2d(member(0, static_cast<uint8_t>(NodeKind::ArgMaxPooling2d)));
  }
  Unary xnode_union_as_SquareRoot() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::SquareRoot)));
  }
  Unary xnode_union_as_Ceiling() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Ceiling)));
  }
  Unary xnode_union_as_Hardswish() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Hardswish)));
  }
  LeakyReLU xnode_union_as_LeakyReLU() const {
    return LeakyReLU(member(0, static_cast<uint8_t>(NodeKind::LeakyReLU)));
  }
  Binary xnode_union_as_Maximum() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::Maximum)));
  }
  Unary xnode_union_as_Negate() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Negate)));
  }
  Unary xnode_union_as_Square() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Square)));
  }
  ELU xnode_union_as_ELU() const { return ELU(member(0, static_cast<uint8_t>(NodeKind::ELU))); }
  Unary xnode_union_as_Abs() const { return Unary(member(0, static_cast<uint8_t>(NodeKind::Abs))); }
  Binary xnode_union_as_PReLU() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::PReLU)));
  }
  Concatenate xnode_union_as_Concatenate2() const {
    return Concatenate(member(0, static_cast<uint8_t>(NodeKind::Concatenate2)));
  }
  Concatenate xnode_union_as_Concatenate3() const {
    return Concatenate(member(0, static_cast<uint8_t>(NodeKind::Concatenate3)));
  }
  Concatenate xnode_union_as_Concatenate4() const {
    return Concatenate(member(0, static_cast<uint8_t>(NodeKind::Concatenate4)));
  }
  StaticSlice xnode_union_as_StaticSlice() const {
    return StaticSlice(member(0, static_cast<uint8_t>(NodeKind::StaticSlice)));
  }
  ScaledDotProductAttention xnode_union_as_ScaledDotProductAttention() const {
    return ScaledDotProductAttention(
        member(0, static_cast<uint8_t>(NodeKind::ScaledDotProductAttention)));
  }
  Binary xnode_union_as_BatchMatrixMultiply() const {
    return Binary(member(0, static_cast<uint8_t>(NodeKind::BatchMatrixMultiply)));
  }
  Concatenate xnode_union_as_Concatenate5() const {
    return Concatenate(member(0, static_cast<uint8_t>(NodeKind::Concatenate5)));
  }
  Convolution xnode_union_as_ConvTranspose2d() const {
    return Convolution(member(0, static_cast<uint8_t>(NodeKind::ConvTranspose2d)));
  }
  Unary xnode_union_as_ReciprocalSquareRoot() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::ReciprocalSquareRoot)));
  }
  Unary xnode_union_as_Log() const { return Unary(member(0, static_cast<uint8_t>(NodeKind::Log))); }
  Unary xnode_union_as_Gelu() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Gelu)));
  }
  Unary xnode_union_as_Tanh() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Tanh)));
  }
  Unary xnode_union_as_Exp() const { return Unary(member(0, static_cast<uint8_t>(NodeKind::Exp))); }
  Unary xnode_union_as_Sin() const { return Unary(member(0, static_cast<uint8_t>(NodeKind::Sin))); }
  Unary xnode_union_as_Copy() const {
    return Unary(member(0, static_cast<uint8_t>(NodeKind::Copy)));
  }
  Unary xnode_union_as_Cos() const { return Unary(member(0, static_cast<uint8_t>(NodeKind::Cos))); }
  bool has_xnode_union() const { return field(1) != nullptr; }
  uint32_t debug_handle() const { return scalar<uint32_t>(2, 0); }
  OutputMinMax output_min_max() const { return OutputMinMax(target(3)); }
  bool has_output_min_max() const { return field(3) != nullptr; }
};

// A constant of old payloads.
class Buffer : public Table {
 public:
  using Table::Table;
  Vector<uint8_t> storage() const { return Vector<uint8_t>(target(0)); }
  bool has_storage() const { return field(0) != nullptr; }
};

// Where a constant lies.
class ConstantDataOffset : public Table {
 public:
  using Table::Table;
  // Bytes from the start of the payload's constants; not read if there is a name.
  uint64_t offset() const { return scalar<uint64_t>(0, 0); }
  uint64_t size() const { return scalar<uint64_t>(1, 0); }
  // The key in the program's named data. If the field is present, even empty, it is used.
  StringView named_key() const { return string(2); }
  bool has_named_key() const { return field(2) != nullptr; }
};

// The whole payload.
class Graph : public Table {
 public:
  using Table::Table;
  StringView version() const { return string(0); }
  bool has_version() const { return field(0) != nullptr; }
  Tables<Node> xnodes() const { return Tables<Node>(target(1)); }
  bool has_xnodes() const { return field(1) != nullptr; }
  Tables<Value> xvalues() const { return Tables<Value>(target(2)); }
  bool has_xvalues() const { return field(2) != nullptr; }
  uint32_t num_externs() const { return scalar<uint32_t>(3, 0); }
  Vector<uint32_t> input_ids() const { return Vector<uint32_t>(target(4)); }
  bool has_input_ids() const { return field(4) != nullptr; }
  Vector<uint32_t> output_ids() const { return Vector<uint32_t>(target(5)); }
  bool has_output_ids() const { return field(5) != nullptr; }
  // Constants of payloads without a header; entry 0 stands for none.
  Tables<Buffer> constant_buffer() const { return Tables<Buffer>(target(6)); }
  bool has_constant_buffer() const { return field(6) != nullptr; }
  Vector<uint32_t> mem_buffer_sizes() const { return Vector<uint32_t>(target(7)); }
  bool has_mem_buffer_sizes() const { return field(7) != nullptr; }
  // Constants of payloads with a header; entry 0 stands for none.
  Tables<ConstantDataOffset> constant_data() const { return Tables<ConstantDataOffset>(target(8)); }
  bool has_constant_data() const { return field(8) != nullptr; }
};

// What verify_flatbuffer walks.
namespace xnnpack_layout {

inline constexpr FieldLayout kFields[] = {
    // Graph
    {FieldKind::String, 0},  // version
    {FieldKind::Tables, 1},  // xnodes
    {FieldKind::Tables, 2},  // xvalues
    {FieldKind::Scalar, 2},  // num_externs
    {FieldKind::Vector, 2},  // input_ids
    {FieldKind::Vector, 2},  // output_ids
    {FieldKind::Tables, 3},  // constant_buffer
    {FieldKind::Vector, 2},  // mem_buffer_sizes
    {FieldKind::Tables, 4},  // constant_data
    // Node
    {FieldKind::Union, 0},       // xnode_union_type
    {FieldKind::UnionValue, 0},  // xnode_union
    {FieldKind::Scalar, 2},      // debug_handle
    {FieldKind::Table, 20},      // output_min_max
    // Value
    {FieldKind::Union, 1},       // xvalue_union_type
    {FieldKind::UnionValue, 0},  // xvalue_union
    // Buffer
    {FieldKind::Vector, 0},  // storage
    // ConstantDataOffset
    {FieldKind::Scalar, 3},  // offset
    {FieldKind::Scalar, 3},  // size
    {FieldKind::String, 0},  // named_key
    // Binary
    {FieldKind::Scalar, 2},  // input1_id
    {FieldKind::Scalar, 2},  // input2_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // FullyConnected
    {FieldKind::Scalar, 2},  // input1_id
    {FieldKind::Scalar, 2},  // filter_id
    {FieldKind::Scalar, 2},  // bias_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // Unary
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // StaticTranspose
    {FieldKind::Scalar, 2},  // num_dims
    {FieldKind::Vector, 2},  // perm
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // Convolution
    {FieldKind::Scalar, 2},  // padding_top
    {FieldKind::Scalar, 2},  // padding_right
    {FieldKind::Scalar, 2},  // padding_bottom
    {FieldKind::Scalar, 2},  // padding_left
    {FieldKind::Scalar, 2},  // kernel_height
    {FieldKind::Scalar, 2},  // kernel_width
    {FieldKind::Scalar, 2},  // subsampling_height
    {FieldKind::Scalar, 2},  // subsampling_width
    {FieldKind::Scalar, 2},  // dilation_height
    {FieldKind::Scalar, 2},  // dilation_width
    {FieldKind::Scalar, 2},  // group_input_channels
    {FieldKind::Scalar, 2},  // group_output_channels
    {FieldKind::Scalar, 2},  // groups
    {FieldKind::Scalar, 2},  // adjustment_height
    {FieldKind::Scalar, 2},  // adjustment_width
    {FieldKind::Scalar, 2},  // input1_id
    {FieldKind::Scalar, 2},  // filter_id
    {FieldKind::Scalar, 2},  // bias_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // StaticResizeBilinear2D
    {FieldKind::Scalar, 2},  // new_height
    {FieldKind::Scalar, 2},  // new_width
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // StaticConstantPad
    {FieldKind::Vector, 2},  // pre_paddings
    {FieldKind::Vector, 2},  // post_paddings
    {FieldKind::Scalar, 2},  // padding_value
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // Pooling
    {FieldKind::Scalar, 2},  // padding_top
    {FieldKind::Scalar, 2},  // padding_right
    {FieldKind::Scalar, 2},  // padding_bottom
    {FieldKind::Scalar, 2},  // padding_left
    {FieldKind::Scalar, 2},  // pooling_height
    {FieldKind::Scalar, 2},  // pooling_width
    {FieldKind::Scalar, 2},  // stride_height
    {FieldKind::Scalar, 2},  // stride_width
    {FieldKind::Scalar, 2},  // dilation_height
    {FieldKind::Scalar, 2},  // dilation_width
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // StaticReshape
    {FieldKind::Scalar, 2},  // num_dims
    {FieldKind::Vector, 2},  // new_shape
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // ArgMaxPooling2d
    {FieldKind::Scalar, 2},  // padding_top
    {FieldKind::Scalar, 2},  // padding_right
    {FieldKind::Scalar, 2},  // padding_bottom
    {FieldKind::Scalar, 2},  // padding_left
    {FieldKind::Scalar, 2},  // pooling_height
    {FieldKind::Scalar, 2},  // pooling_width
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_value_id
    {FieldKind::Scalar, 2},  // output_index_id
    {FieldKind::Scalar, 2},  // flags
    // LeakyReLU
    {FieldKind::Scalar, 2},  // negative_slope
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // ELU
    {FieldKind::Scalar, 2},  // alpha
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // Concatenate
    {FieldKind::Scalar, 2},  // axis
    {FieldKind::Scalar, 2},  // input1_id
    {FieldKind::Scalar, 2},  // input2_id
    {FieldKind::Scalar, 2},  // input3_id
    {FieldKind::Scalar, 2},  // input4_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    {FieldKind::Scalar, 2},  // input5_id
    // StaticSlice
    {FieldKind::Scalar, 2},  // num_dims
    {FieldKind::Vector, 2},  // offsets
    {FieldKind::Vector, 2},  // sizes
    {FieldKind::Scalar, 2},  // input_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // ScaledDotProductAttention
    {FieldKind::Scalar, 2},  // query_id
    {FieldKind::Scalar, 2},  // key_id
    {FieldKind::Scalar, 2},  // value_id
    {FieldKind::Scalar, 2},  // scale_id
    {FieldKind::Scalar, 2},  // mask_id
    {FieldKind::Scalar, 2},  // output_id
    {FieldKind::Scalar, 2},  // flags
    // OutputMinMax
    {FieldKind::Scalar, 2},  // output_min
    {FieldKind::Scalar, 2},  // output_max
    // TensorValue
    {FieldKind::Scalar, 1},  // datatype
    {FieldKind::Scalar, 2},  // num_dims
    {FieldKind::Vector, 2},  // dims
    {FieldKind::Scalar, 2},  // constant_buffer_idx
    {FieldKind::Scalar, 2},  // external_id
    {FieldKind::Scalar, 2},  // flags
    {FieldKind::Scalar, 2},  // id_out
    {FieldKind::Scalar, 1},  // dq_datatype
    // QuantizedTensorValue
    {FieldKind::Table, 21},      // tensor_value
    {FieldKind::Union, 2},       // quant_params_type
    {FieldKind::UnionValue, 0},  // quant_params
    // PerChannelQuant
    {FieldKind::Vector, 2},  // scale
    {FieldKind::Scalar, 2},  // channel_dim
    {FieldKind::Scalar, 2},  // scale_buffer_idx
    {FieldKind::Scalar, 2},  // num_scales
    // PerTensorQuant
    {FieldKind::Scalar, 2},  // scale
    {FieldKind::Scalar, 2},  // zero_point
    // PerTokenDynamicQuant
    {FieldKind::Scalar, 2},  // num_nonbatch_dims
    // PerChannelGroupQuant
    {FieldKind::Vector, 2},  // scale
    {FieldKind::Scalar, 2},  // channel_dim
    {FieldKind::Scalar, 2},  // group_size
    {FieldKind::Vector, 1},  // scale_bf16
    {FieldKind::Scalar, 2},  // scale_buffer_idx
    {FieldKind::Scalar, 2},  // num_scales
};
inline constexpr TableLayout kTables[] = {
    {0, 9},    // 0 Graph
    {9, 4},    // 1 Node
    {13, 2},   // 2 Value
    {15, 1},   // 3 Buffer
    {16, 3},   // 4 ConstantDataOffset
    {19, 4},   // 5 Binary
    {23, 5},   // 6 FullyConnected
    {28, 3},   // 7 Unary
    {31, 5},   // 8 StaticTranspose
    {36, 20},  // 9 Convolution
    {56, 5},   // 10 StaticResizeBilinear2D
    {61, 6},   // 11 StaticConstantPad
    {67, 13},  // 12 Pooling
    {80, 5},   // 13 StaticReshape
    {85, 10},  // 14 ArgMaxPooling2d
    {95, 4},   // 15 LeakyReLU
    {99, 4},   // 16 ELU
    {103, 8},  // 17 Concatenate
    {111, 6},  // 18 StaticSlice
    {117, 7},  // 19 ScaledDotProductAttention
    {124, 2},  // 20 OutputMinMax
    {126, 8},  // 21 TensorValue
    {134, 3},  // 22 QuantizedTensorValue
    {137, 4},  // 23 PerChannelQuant
    {141, 2},  // 24 PerTensorQuant
    {143, 1},  // 25 PerTokenDynamicQuant
    {144, 6},  // 26 PerChannelGroupQuant
};
inline constexpr UnionLayout kUnions[] = {
    {0, 47},  // NodeKind
    {47, 2},  // ValueKind
    {49, 4},  // QuantParams
};
inline constexpr uint8_t kMembers[] = {
    5,   // Add
    6,   // FullyConnected
    7,   // Softmax
    7,   // Sigmoid
    8,   // StaticTranspose
    7,   // Clamp
    9,   // Conv2d
    5,   // Div
    10,  // StaticResizeBilinear2D
    11,  // StaticConstantPad
    12,  // AvgPooling2d
    5,   // Minimum
    9,   // DepthwiseConv2d
    12,  // MaxPooling2d
    5,   // Multiply
    5,   // Subtract
    7,   // Floor
    7,   // Convert
    7,   // GlobalAvgPooling2d
    13,  // StaticReshape
    14,  // ArgMaxPooling2d
    7,   // SquareRoot
    7,   // Ceiling
    7,   // Hardswish
    15,  // LeakyReLU
    5,   // Maximum
    7,   // Negate
    7,   // Square
    16,  // ELU
    7,   // Abs
    5,   // PReLU
    17,  // Concatenate2
    17,  // Concatenate3
    17,  // Concatenate4
    18,  // StaticSlice
    19,  // ScaledDotProductAttention
    5,   // BatchMatrixMultiply
    17,  // Concatenate5
    9,   // ConvTranspose2d
    7,   // ReciprocalSquareRoot
    7,   // Log
    7,   // Gelu
    7,   // Tanh
    7,   // Exp
    7,   // Sin
    7,   // Copy
    7,   // Cos
    21,  // TensorValue
    22,  // QuantizedTensorValue
    23,  // PerChannelQuant
    24,  // PerTensorQuant
    25,  // PerTokenDynamicQuant
    26,  // PerChannelGroupQuant
};
inline constexpr Layout kGraph = {kFields, kTables, kUnions, kMembers};

}  // namespace xnnpack_layout

inline constexpr char kGraphIdentifier[] = "XN01";

// True if the buffer can be read through these views; says nothing of its meaning.
inline bool verify_Graph(const uint8_t* data, size_t size) {
  return verify_flatbuffer(data, size, xnnpack_layout::kGraph);
}
// The root of a buffer that was verified.
inline Graph root_Graph(const uint8_t* data) { return Graph(follow(data)); }

}  // namespace xnnpack
}  // namespace fb
}  // namespace rushlight
