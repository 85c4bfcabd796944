#include "rushlight/backends/xnnpack/payload/shapes.h"

#include <algorithm>
#include <cstdarg>

#include "rushlight/engine/types/view.h"

namespace rushlight::xnnpack {
namespace {

namespace wire = fb::xnnpack;

constexpr int64_t kMaxNumber = static_cast<int64_t>(fb::cpu_engine::Limit::WINDOW);

ShapeText text_of(const Shape& shape) { return engine::text_of(shape.sizes, shape.rank); }

// The shape of one node's results.
class Inference {
 public:
  Inference(const Node& node, const Graph& graph, Span<Shape> shapes, Message& message)
      : node_(node), graph_(graph), shapes_(shapes), message_(message) {}

  Status run();

 private:
  Status infer(Shape* out);
  Status infer_elementwise(Shape* out);
  Status infer_fully_connected(Shape* out);
  Status infer_convolution(Shape* out);
  Status infer_transposed(Shape* out);
  Status infer_pooling(Shape* out);
  Status infer_global_pooling(Shape* out);
  Status infer_arg_max(Shape* out);
  Status infer_batch_product(Shape* out);
  Status infer_concatenation(Shape* out);
  Status infer_transpose(Shape* out);
  Status infer_reshape(Shape* out);
  Status infer_resize(Shape* out);
  Status infer_pad(Shape* out);
  Status infer_slice(Shape* out);
  Status slide(const engine::Window& window, Shape* out);
  Status check_filter(wire::Convolution table, int64_t inputs, int64_t outputs);
  Status check_bias(int64_t outputs);

  const Shape& input(size_t i) const { return shapes_[node_.inputs[i]]; }
  [[gnu::format(printf, 2, 3)]] Status refuse(const char* format, ...) {
    std::va_list args;
    va_start(args, format);
    const Status status = message_.vfail(Code::DelegateInvalidCompatibility, format, args);
    va_end(args);
    return status;
  }
  Status refuse_inputs(const char* wanted) {
    return refuse("its inputs have sizes %s and %s, but %s", text_of(input(0)).text(),
                  text_of(input(1)).text(), wanted);
  }
  // Ok if input 0 is [N, H, W, C].
  Status check_images() {
    if (input(0).rank == 4) return {};
    return refuse("its images have sizes %s, but must be [N, H, W, C]", text_of(input(0)).text());
  }
  Status refuse_input(size_t i) {
    return refuse(
        "its input %zu has sizes %s and its input 0 %s: they may differ in its axis alone", i,
        text_of(input(i)).text(), text_of(input(0)).text());
  }
  Status refuse_window() {
    return refuse(
        "its window is not valid: its numbers are beyond 0 to %lld, or 0 where at least 1 "
        "is needed",
        static_cast<long long>(kMaxNumber));
  }
  Status refuse_groups(int64_t groups, int64_t inputs, int64_t outputs) {
    return refuse(
        "its images have sizes %s, which do not fit its %lld groups of %lld input channels (%lld "
        "outputs)",
        text_of(input(0)).text(), static_cast<long long>(groups), static_cast<long long>(inputs),
        static_cast<long long>(outputs));
  }

  const Node& node_;
  const Graph& graph_;
  Span<Shape> shapes_;
  Message& message_;
};

// The flags that a kind of node knows.
uint32_t known_flags(NodeKind kind) {
  if (kind == NodeKind::FullyConnected) return kTransposeWeights;
  if (kind == NodeKind::StaticResizeBilinear2D) return kAlignCorners;
  return kKeepDims;
}

Status Inference::run() {
  if ((node_.flags & ~known_flags(node_.kind)) != 0) return refuse("it has flags that are unknown");
  Shape out;
  RL_TRY(infer(&out));
  if (numel_of(out) < 0) return refuse("its result has too many elements");
  for (size_t i = 0; i < node_.n_outputs; ++i) shapes_[node_.outputs[i]] = out;
  return {};
}

Status Inference::infer(Shape* out) {
  switch (node_.kind) {
    case NodeKind::FullyConnected:
      return infer_fully_connected(out);
    case NodeKind::Conv2d:
    case NodeKind::DepthwiseConv2d:
      return infer_convolution(out);
    case NodeKind::ConvTranspose2d:
      return infer_transposed(out);
    case NodeKind::AvgPooling2d:
    case NodeKind::MaxPooling2d:
      return infer_pooling(out);
    case NodeKind::GlobalAvgPooling2d:
      return infer_global_pooling(out);
    case NodeKind::ArgMaxPooling2d:
      return infer_arg_max(out);
    case NodeKind::BatchMatrixMultiply:
      return infer_batch_product(out);
    case NodeKind::Concatenate2:
    case NodeKind::Concatenate3:
    case NodeKind::Concatenate4:
    case NodeKind::Concatenate5:
      return infer_concatenation(out);
    case NodeKind::StaticTranspose:
      return infer_transpose(out);
    case NodeKind::StaticReshape:
      return infer_reshape(out);
    case NodeKind::StaticResizeBilinear2D:
      return infer_resize(out);
    case NodeKind::StaticConstantPad:
      return infer_pad(out);
    case NodeKind::StaticSlice:
      return infer_slice(out);
    default:
      return infer_elementwise(out);
  }
}

Status Inference::infer_elementwise(Shape* out) {
  *out = input(0);
  if (node_.kind == NodeKind::Softmax && out->rank == 0) {
    return refuse("its input has no dimensions, but must have at least one");
  }
  if (node_.n_inputs == 1 || broadcast(input(0), input(1), out)) return {};
  return refuse_inputs("must broadcast to each other");
}

Status Inference::check_bias(int64_t outputs) {
  if (node_.inputs[2] == kNone || numel_of(input(2)) == outputs) return {};
  return refuse("its bias has sizes %s, but must have %lld elements", text_of(input(2)).text(),
                static_cast<long long>(outputs));
}

Status Inference::infer_fully_connected(Shape* out) {
  const Shape& filter = input(1);
  if (filter.rank != 2 || input(0).rank == 0) {
    return refuse_inputs("must be [..., depth] and a matrix");
  }
  const bool transposed = (node_.flags & kTransposeWeights) != 0;
  const int64_t inputs = filter.sizes[transposed ? 0 : 1];
  const int64_t outputs = filter.sizes[transposed ? 1 : 0];
  *out = input(0);
  if (out->last() != inputs) return refuse_inputs("must have the same depth");
  out->sizes[out->rank - 1] = outputs;
  return check_bias(outputs);
}

// Whether a window's numbers are small enough to compute with.
bool is_sane(const engine::Window& s) {
  for (size_t d = 0; d < 2; ++d) {
    if (s.kernel[d] < 1 || s.stride[d] < 1 || s.dilation[d] < 1) return false;
    if (s.kernel[d] > kMaxNumber || s.stride[d] > kMaxNumber || s.dilation[d] > kMaxNumber)
      return false;
  }
  for (const int64_t padding : s.padding) {
    if (padding > kMaxNumber) return false;
  }
  return true;
}

// Sizes of images that a window slides over.
Status Inference::slide(const engine::Window& s, Shape* out) {
  RL_TRY(check_images());
  if (!is_sane(s)) return refuse_window();
  *out = input(0);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = s.dilation[d] * (s.kernel[d] - 1) + 1;
    const int64_t room = input(0).sizes[1 + d] + s.padding[d] + s.padding[2 + d] - reach;
    // is_sane() has refused a stride of 0; checked again so that this function is safe on its own.
    if (room < 0 || s.stride[d] < 1) {
      return refuse(
          "its window reaches over %lld elements, more than its padded images of sizes %s",
          static_cast<long long>(reach), text_of(input(0)).text());
    }
    out->sizes[1 + d] = room / s.stride[d] + 1;
  }
  return {};
}

Status Inference::check_filter(wire::Convolution table, int64_t inputs, int64_t outputs) {
  const Shape& filter = input(1);
  const bool is_depthwise = node_.kind == NodeKind::DepthwiseConv2d;
  const int64_t wanted[4] = {is_depthwise ? 1 : outputs, table.kernel_height(),
                             table.kernel_width(), is_depthwise ? outputs : inputs};
  if (filter.rank != 4 || !std::equal(wanted, wanted + 4, filter.sizes)) {
    return refuse("its filter has sizes %s, but must have %s", text_of(filter).text(),
                  engine::text_of(wanted, 4).text());
  }
  if (graph_.values[node_.inputs[1]].role != Role::Constant ||
      (node_.inputs[2] != kNone && graph_.values[node_.inputs[2]].role != Role::Constant)) {
    return message_.fail(Code::NotSupported,
                         "its filter or its bias is computed, but must be a constant");
  }
  return check_bias(outputs);
}

Status Inference::infer_convolution(Shape* out) {
  const auto table = node_.body.as<wire::Convolution>();
  RL_TRY(slide(window_of(table), out));
  const int64_t groups = table.groups();
  const int64_t inputs = table.group_input_channels();
  const int64_t outputs = engine::bounded_product({groups, int64_t{table.group_output_channels()}});
  if (groups < 1 || inputs < 1 || outputs < 1 ||
      engine::bounded_product({groups, inputs}) != input(0).sizes[3] ||
      (node_.kind == NodeKind::DepthwiseConv2d && inputs != 1)) {
    return refuse_groups(groups, inputs, outputs);
  }
  out->sizes[3] = outputs;
  return check_filter(table, inputs, outputs);
}

Status Inference::infer_transposed(Shape* out) {
  const auto table = node_.body.as<wire::Convolution>();
  const engine::Window s = window_of(table);
  RL_TRY(check_images());
  if (!is_sane(s)) return refuse_window();
  const int64_t adjustment[2] = {table.adjustment_height(), table.adjustment_width()};
  *out = input(0);
  for (size_t d = 0; d < 2; ++d) {
    const int64_t reach = s.dilation[d] * (s.kernel[d] - 1) + 1;
    const int64_t least =
        engine::bounded_product({std::max<int64_t>(input(0).sizes[1 + d] - 1, 0), s.stride[d]});
    out->sizes[1 + d] = least + reach + adjustment[d] - s.padding[d] - s.padding[2 + d];
    if (least < 0 || input(0).sizes[1 + d] < 1 || out->sizes[1 + d] < 1 ||
        adjustment[d] >= std::max(s.stride[d], s.dilation[d])) {
      return refuse("its images have sizes %s, which do not fit its window",
                    text_of(input(0)).text());
    }
  }
  const int64_t groups = table.groups();
  const int64_t inputs = table.group_input_channels();
  const int64_t outputs = engine::bounded_product({groups, int64_t{table.group_output_channels()}});
  if (groups < 1 || inputs < 1 || outputs < 1 ||
      engine::bounded_product({groups, inputs}) != input(0).sizes[3]) {
    return refuse_groups(groups, inputs, outputs);
  }
  out->sizes[3] = outputs;
  return check_filter(table, inputs, outputs);
}

Status Inference::infer_pooling(Shape* out) {
  const engine::Window s = window_of(node_.body.as<wire::Pooling>());
  RL_TRY(slide(s, out));
  for (size_t d = 0; d < 2; ++d) {
    if (s.padding[d] >= s.kernel[d]) {
      return refuse("its padding is %lld, but must be less than its window, %lld",
                    static_cast<long long>(s.padding[d]), static_cast<long long>(s.kernel[d]));
    }
  }
  return {};
}

Status Inference::infer_global_pooling(Shape* out) {
  const Shape& in = input(0);
  RL_TRY(check_images());
  *out = in;
  if ((node_.flags & kKeepDims) != 0) {
    out->sizes[1] = out->sizes[2] = 1;
  } else {
    out->rank = 2;
    out->sizes[1] = in.sizes[3];
  }
  return {};
}

Status Inference::infer_arg_max(Shape* out) {
  const auto table = node_.body.as<wire::ArgMaxPooling2d>();
  const int64_t height = table.pooling_height();
  const int64_t width = table.pooling_width();
  const engine::Window s = {
      {height, width},
      {height, width},
      {table.padding_top(), table.padding_left(), table.padding_bottom(), table.padding_right()},
      {1, 1}};
  RL_TRY(slide(s, out));
  for (const int64_t padding : s.padding) {
    if (padding != 0) {
      return message_.fail(Code::NotSupported, "it pads its images by %lld, but must not pad them",
                           static_cast<long long>(padding));
    }
  }
  return {};
}

Status Inference::infer_batch_product(Shape* out) {
  const Shape& a = input(0);
  const Shape& b = input(1);
  if (a.rank != b.rank || a.rank < 2) return refuse_inputs("must be matrices of the same rank");
  Shape left = a;
  Shape right = b;
  left.rank -= 2;
  right.rank -= 2;
  if (!broadcast(left, right, out) || a.last() != b.sizes[b.rank - 2]) {
    return refuse_inputs("must be [batch, rows, depth] and [batch, depth, columns]");
  }
  out->sizes[out->rank] = a.sizes[a.rank - 2];
  out->sizes[out->rank + 1] = b.last();
  out->rank += 2;
  return {};
}

Status Inference::infer_concatenation(Shape* out) {
  const size_t axis = node_.body.as<wire::Concatenate>().axis();
  *out = input(0);
  if (axis >= out->rank) {
    return refuse("its axis is %zu, but its inputs have %zu dimensions", axis, out->rank);
  }
  for (size_t i = 1; i < node_.n_inputs; ++i) {
    Shape other = input(i);
    if (other.rank != out->rank) return refuse_input(i);
    out->sizes[axis] += other.sizes[axis];
    other.sizes[axis] = out->sizes[axis];
    if (!same_shape(other, *out)) return refuse_input(i);
  }
  return {};
}

Status Inference::infer_transpose(Shape* out) {
  const auto table = node_.body.as<wire::StaticTranspose>();
  const Shape& in = input(0);
  if (table.perm().size() != in.rank) {
    return refuse("its permutation has %zu entries, but its input has sizes %s",
                  size_t{table.perm().size()}, text_of(in).text());
  }
  bool seen[kMaxRank] = {};
  out->rank = in.rank;
  for (size_t d = 0; d < in.rank; ++d) {
    const uint32_t from = table.perm()[d];
    if (from >= in.rank || seen[from]) {
      return refuse("its permutation has the entry %u, but each of 0 to %zu must be there once",
                    from, in.rank - 1);
    }
    seen[from] = true;
    out->sizes[d] = in.sizes[from];
  }
  return {};
}

Status Inference::infer_reshape(Shape* out) {
  const auto table = node_.body.as<wire::StaticReshape>();
  const int64_t numel = numel_of(input(0));
  out->rank = table.new_shape().size();
  if (out->rank > kMaxRank) {
    return refuse("its result has %zu dimensions, but at most %zu are allowed", out->rank,
                  size_t{kMaxRank});
  }
  size_t open = kMaxRank;
  int64_t known = 1;
  for (size_t d = 0; d < out->rank; ++d) {
    out->sizes[d] = table.new_shape()[d];
    if (out->sizes[d] == 0) {
      if (open != kMaxRank) {
        return refuse("its new sizes leave dimensions %zu and %zu open, but at most one may be",
                      open, d);
      }
      open = d;
      continue;
    }
    known = engine::bounded_product({known, out->sizes[d]});
    if (known < 0) return refuse("its result has too many elements");
  }
  if (open != kMaxRank) out->sizes[open] = numel / known;
  if (numel_of(*out) != numel) {
    return refuse("its input has sizes %s and its result %s: they must have as many elements",
                  text_of(input(0)).text(), text_of(*out).text());
  }
  return {};
}

Status Inference::infer_resize(Shape* out) {
  const auto table = node_.body.as<wire::StaticResizeBilinear2D>();
  RL_TRY(check_images());
  *out = input(0);
  out->sizes[1] = table.new_height();
  out->sizes[2] = table.new_width();
  if (input(0).sizes[1] < 1 || input(0).sizes[2] < 1 || out->sizes[1] < 1 || out->sizes[2] < 1) {
    return refuse("its images have sizes %s and %s, but must have pixels", text_of(input(0)).text(),
                  text_of(*out).text());
  }
  return {};
}

Status Inference::infer_pad(Shape* out) {
  const auto table = node_.body.as<wire::StaticConstantPad>();
  *out = input(0);
  if (table.pre_paddings().size() != out->rank || table.post_paddings().size() != out->rank) {
    return refuse("it has paddings for another rank than that of its input, whose sizes are %s",
                  text_of(*out).text());
  }
  for (size_t d = 0; d < out->rank; ++d) {
    const int64_t before = table.pre_paddings()[d];
    const int64_t after = table.post_paddings()[d];
    if (before > kMaxNumber || after > kMaxNumber) {
      return refuse("its paddings of dimension %zu are %lld and %lld, but at most %lld is allowed",
                    d, static_cast<long long>(before), static_cast<long long>(after),
                    static_cast<long long>(kMaxNumber));
    }
    out->sizes[d] += before + after;
  }
  return {};
}

// A size of 0 means the rest.
Status Inference::infer_slice(Shape* out) {
  const auto table = node_.body.as<wire::StaticSlice>();
  *out = input(0);
  if (table.offsets().size() != out->rank || table.sizes().size() != out->rank) {
    return refuse("it is a slice for another rank than that of its input, whose sizes are %s",
                  text_of(*out).text());
  }
  for (size_t d = 0; d < out->rank; ++d) {
    const int64_t offset = table.offsets()[d];
    const int64_t size = table.sizes()[d];
    const int64_t rest = out->sizes[d] - offset;
    if (rest < 0 || size > rest) {
      return refuse("it takes %lld elements from %lld on of dimension %zu, which has %lld",
                    static_cast<long long>(size), static_cast<long long>(offset), d,
                    static_cast<long long>(out->sizes[d]));
    }
    out->sizes[d] = size == 0 ? rest : size;
  }
  return {};
}

}  // namespace

int64_t numel_of(const Shape& shape) {
  int64_t product = 1;
  bool is_empty = false;
  for (size_t d = 0; d < shape.rank; ++d) {
    is_empty = is_empty || shape.sizes[d] == 0;
    product = engine::bounded_product({product, std::max<int64_t>(shape.sizes[d], 1)});
    if (product < 0 || shape.sizes[d] < 0) return -1;
  }
  return is_empty ? 0 : product;
}

bool same_shape(const Shape& a, const Shape& b) {
  return a.rank == b.rank && std::equal(a.sizes, a.sizes + a.rank, b.sizes);
}

bool broadcast(const Shape& a, const Shape& b, Shape* out) {
  const Shape& longer = a.rank >= b.rank ? a : b;
  const Shape& shorter = a.rank >= b.rank ? b : a;
  *out = longer;
  const size_t shift = longer.rank - shorter.rank;
  for (size_t d = 0; d < shorter.rank; ++d) {
    int64_t& size = out->sizes[shift + d];
    if (size == 1) size = shorter.sizes[d];
    if (shorter.sizes[d] != 1 && shorter.sizes[d] != size) return false;
  }
  return true;
}

engine::Window window_of(wire::Convolution t) {
  return {{t.kernel_height(), t.kernel_width()},
          {t.subsampling_height(), t.subsampling_width()},
          {t.padding_top(), t.padding_left(), t.padding_bottom(), t.padding_right()},
          {t.dilation_height(), t.dilation_width()}};
}

engine::Window window_of(wire::Pooling t) {
  return {{t.pooling_height(), t.pooling_width()},
          {t.stride_height(), t.stride_width()},
          {t.padding_top(), t.padding_left(), t.padding_bottom(), t.padding_right()},
          {std::max<int64_t>(t.dilation_height(), 1), std::max<int64_t>(t.dilation_width(), 1)}};
}

Status infer_shapes(const Graph& graph, Span<Shape> shapes, Message& message, size_t* failed) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    *failed = i;
    RL_TRY(Inference(graph.nodes[i], graph, shapes, message).run());
  }
  return {};
}

}  // namespace rushlight::xnnpack
