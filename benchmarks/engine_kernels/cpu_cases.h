// Convolutions and pools of networks, for benchmarks of the CPU engine's kernels.
#pragma once

#include "rushlight/engine/kernels/images/convolution.h"

namespace rushlight {
namespace benchmark {

enum class Kind { Dense, Depthwise, MaxPool, AveragePool };

struct ConvCase {
  const char* name;
  Kind kind;
  int64_t size, in_channels, out_channels, kernel, stride, pad;
  bool channels_first;
};

constexpr ConvCase kConvolutions[] = {
    {"resnet stem 7x7 s2", Kind::Dense, 224, 3, 64, 7, 2, 3, true},
    {"resnet 56 3x3 64", Kind::Dense, 56, 64, 64, 3, 1, 1, false},
    {"resnet 56 3x3 128 s2", Kind::Dense, 56, 128, 128, 3, 2, 1, false},
    {"resnet 28 3x3 128", Kind::Dense, 28, 128, 128, 3, 1, 1, false},
    {"resnet 28 3x3 256 s2", Kind::Dense, 28, 256, 256, 3, 2, 1, false},
    {"resnet 14 3x3 256", Kind::Dense, 14, 256, 256, 3, 1, 1, false},
    {"resnet 14 3x3 512 s2", Kind::Dense, 14, 512, 512, 3, 2, 1, false},
    {"resnet 7 3x3 512", Kind::Dense, 7, 512, 512, 3, 1, 1, false},
    {"resnet 56 1x1 256-512 s2", Kind::Dense, 56, 256, 512, 1, 2, 0, false},
    {"resnet 28 1x1 512-1024 s2", Kind::Dense, 28, 512, 1024, 1, 2, 0, false},
    {"resnet 14 1x1 1024-2048 s2", Kind::Dense, 14, 1024, 2048, 1, 2, 0, false},
    {"resnet 56 1x1 256-64", Kind::Dense, 56, 256, 64, 1, 1, 0, false},
    {"resnet max pool", Kind::MaxPool, 112, 64, 64, 3, 2, 1, false},
    {"resnet average pool", Kind::AveragePool, 7, 2048, 2048, 7, 1, 0, false},
    {"vit patches 16x16 s16", Kind::Dense, 224, 3, 768, 16, 16, 0, true},
    {"mbv2 stem 3x3 s2", Kind::Dense, 224, 3, 32, 3, 2, 1, true},
    {"mbv2 dw 112 32", Kind::Depthwise, 112, 32, 32, 3, 1, 1, false},
    {"mbv2 dw 112 96 s2", Kind::Depthwise, 112, 96, 96, 3, 2, 1, false},
    {"mbv2 dw 56 144", Kind::Depthwise, 56, 144, 144, 3, 1, 1, false},
    {"mbv2 dw 56 144 s2", Kind::Depthwise, 56, 144, 144, 3, 2, 1, false},
    {"mbv2 dw 28 192", Kind::Depthwise, 28, 192, 192, 3, 1, 1, false},
    {"mbv2 dw 28 192 s2", Kind::Depthwise, 28, 192, 192, 3, 2, 1, false},
    {"mbv2 dw 14 384", Kind::Depthwise, 14, 384, 384, 3, 1, 1, false},
    {"mbv2 dw 14 576", Kind::Depthwise, 14, 576, 576, 3, 1, 1, false},
    {"mbv2 dw 14 576 s2", Kind::Depthwise, 14, 576, 576, 3, 2, 1, false},
    {"mbv2 dw 7 960", Kind::Depthwise, 7, 960, 960, 3, 1, 1, false},
};

inline engine::ConvGeometry geometry_of(const ConvCase& test) {
  engine::ConvGeometry g;
  g.in_height = g.in_width = test.size;
  g.in_channels = test.in_channels;
  g.out_channels = test.out_channels;
  g.kernel_y = g.kernel_x = test.kernel;
  g.stride_y = g.stride_x = test.stride;
  g.pad_top = g.pad_left = test.pad;
  g.out_height = g.out_width = (test.size + 2 * test.pad - test.kernel) / test.stride + 1;
  if (test.kind != Kind::Dense) g.groups = test.in_channels;
  return g;
}

}  // namespace benchmark
}  // namespace rushlight
