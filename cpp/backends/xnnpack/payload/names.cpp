#include "rushlight/backends/xnnpack/payload/graph.h"

namespace rushlight::xnnpack {

const char* name_of(NodeKind kind) {
  static constexpr const char* kNames[] = {
      "NONE",
      "Add",
      "FullyConnected",
      "Softmax",
      "Sigmoid",
      "StaticTranspose",
      "Clamp",
      "Conv2d",
      "Div",
      "StaticResizeBilinear2D",
      "StaticConstantPad",
      "AvgPooling2d",
      "Minimum",
      "DepthwiseConv2d",
      "MaxPooling2d",
      "Multiply",
      "Subtract",
      "Floor",
      "Convert",
      "GlobalAvgPooling2d",
      "StaticReshape",
      "ArgMaxPooling2d",
      "SquareRoot",
      "Ceiling",
      "Hardswish",
      "LeakyReLU",
      "Maximum",
      "Negate",
      "Square",
      "ELU",
      "Abs",
      "PReLU",
      "Concatenate2",
      "Concatenate3",
      "Concatenate4",
      "StaticSlice",
      "ScaledDotProductAttention",
      "BatchMatrixMultiply",
      "Concatenate5",
      "ConvTranspose2d",
      "ReciprocalSquareRoot",
      "Log",
      "Gelu",
      "Tanh",
      "Exp",
      "Sin",
      "Copy",
      "Cos",
  };
  static_assert(sizeof(kNames) / sizeof(kNames[0]) == static_cast<size_t>(NodeKind::Cos) + 1,
                "a name for each kind");
  return kind <= NodeKind::Cos ? kNames[static_cast<size_t>(kind)] : "?";
}

const char* name_of(Datatype datatype) {
  static constexpr const char* kNames[] = {"invalid", "fp32",   "fp16",    "qint8",  "quint8",
                                           "qint32",  "qcint8", "qcint32", "qcint4", "qdint8",
                                           "qbint4",  "qpint8", "int32",   "pfp32",  "bf16"};
  const auto number = static_cast<int>(datatype);
  return number >= 0 && number < 15 ? kNames[number] : "of an unknown datatype";
}

}  // namespace rushlight::xnnpack
