#include "rushlight/engine/operators/images/geometry.h"

namespace rushlight::engine {
namespace {

constexpr int64_t kMaxNumber = static_cast<int64_t>(fb::cpu_engine::Limit::WINDOW);

bool read_pair(const int64_t (&pair)[2], int64_t* y, int64_t* x) {
  if (pair[0] < 1 || pair[1] < 1 || pair[0] > kMaxNumber || pair[1] > kMaxNumber) return false;
  *y = pair[0];
  *x = pair[1];
  return true;
}

bool read_padding(const int64_t (&padding)[4], ConvGeometry* g, int64_t* bottom, int64_t* right) {
  for (size_t i = 0; i < 4; ++i) {
    if (padding[i] < 0 || padding[i] > kMaxNumber) return false;
  }
  g->pad_top = padding[0];
  g->pad_left = padding[1];
  *bottom = padding[2];
  *right = padding[3];
  return true;
}

// Whether a window over `in` elements gives `out`.
bool slides(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t padding,
            int64_t dilation, bool transposed) {
  const int64_t reach = dilation * (kernel - 1) + 1;
  if (transposed) {
    const int64_t least = (in - 1) * stride - padding + reach;
    return in > 0 && out > 0 && out >= least &&
           out < least + (stride > dilation ? stride : dilation);
  }
  const int64_t room = in + padding - reach;
  return room >= 0 && out == room / stride + 1;
}

}  // namespace

bool is_channels_last(const View& image) {
  if (image.rank != 4) return false;
  View moved = image;
  constexpr size_t kOrder[] = {0, 2, 3, 1};
  for (size_t d = 0; d < 4; ++d) {
    moved.sizes[d] = image.sizes[kOrder[d]];
    moved.strides[d] = image.strides[kOrder[d]];
  }
  return is_dense(moved);
}

Status check_channels_last(const Setup& setup, const char* name, const View& image) {
  if (is_channels_last(image)) return {};
  return setup.refuse("the sizes %s and strides %s of %s are not those of images channels last",
                      text_of(image).text(), text_of(image.strides, image.rank).text(), name);
}

Status read_groups(const Setup& setup, int64_t groups, bool depthwise, ConvGeometry* geometry) {
  ConvGeometry& g = *geometry;
  g.groups = groups;
  const bool fits = groups >= 1 && g.in_channels % groups == 0 && g.out_channels % groups == 0;
  if (fits && (!depthwise || groups == g.in_channels)) return {};
  return setup.refuse("its %lld input and %lld output channels do not fit its groups, %lld",
                      static_cast<long long>(g.in_channels), static_cast<long long>(g.out_channels),
                      static_cast<long long>(groups));
}

void drop_idle_strides(ConvGeometry* geometry) {
  if (geometry->out_height == 1) geometry->stride_y = 1;
  if (geometry->out_width == 1) geometry->stride_x = 1;
}

Status read_geometry(const Setup& setup, const View& in, const View& out, const Window& window,
                     bool transposed, ConvGeometry* geometry) {
  ConvGeometry& g = *geometry;
  if (in.rank != 4 || out.rank != 4 || in.sizes[0] != out.sizes[0]) {
    return setup.refuse("its images have sizes %s and %s, but must be [N, C, H, W] of one batch",
                        text_of(in).text(), text_of(out).text());
  }
  int64_t bottom = 0;
  int64_t right = 0;
  RL_TRY(check_channels_last(setup, "its result", out));
  if (!read_pair(window.kernel, &g.kernel_y, &g.kernel_x) ||
      !read_pair(window.stride, &g.stride_y, &g.stride_x) ||
      !read_padding(window.padding, &g, &bottom, &right) ||
      !read_pair(window.dilation, &g.dilation_y, &g.dilation_x)) {
    return setup.refuse(
        "its window is not valid: kernels, strides and dilations are 1 to %lld, paddings 0 to %lld",
        static_cast<long long>(kMaxNumber), static_cast<long long>(kMaxNumber));
  }
  g.batch = in.sizes[0];
  g.in_channels = in.sizes[1];
  g.in_height = in.sizes[2];
  g.in_width = in.sizes[3];
  g.out_channels = out.sizes[1];
  g.out_height = out.sizes[2];
  g.out_width = out.sizes[3];
  if (!slides(g.in_height, g.out_height, g.kernel_y, g.stride_y, g.pad_top + bottom, g.dilation_y,
              transposed) ||
      !slides(g.in_width, g.out_width, g.kernel_x, g.stride_x, g.pad_left + right, g.dilation_x,
              transposed)) {
    return setup.refuse("its images have sizes %s and %s, which do not fit its window",
                        text_of(in).text(), text_of(out).text());
  }
  const int64_t height = g.in_height + g.pad_top + bottom;
  const int64_t width = g.in_width + g.pad_left + right;
  if (!transposed && bounded_product({height, width, g.in_channels + kPanel}) < 0) {
    return setup.refuse("its padded image would have sizes (%lld, %lld, %lld), which are too large",
                        static_cast<long long>(g.in_channels), static_cast<long long>(height),
                        static_cast<long long>(width));
  }
  return {};
}

}  // namespace rushlight::engine
