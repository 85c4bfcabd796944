// Convolution by tiles: copies tiles of input, weights and output into scratch memory, as float32
// and in a suitable layout, and runs the float32 algorithms on them.
#include <algorithm>

#include "rushlight/core/allocator.h"
#include "rushlight/core/message.h"
#include "rushlight/kernels/portable/convolution/conv.h"
#include "rushlight/kernels/portable/loops/convolution/channels.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"

namespace rushlight::kernels {
namespace {

constexpr int64_t kFewChannels = 16;  // a tile with fewer spends too much on packing the input

// The part of a result that one tile covers: a box of pixels of some whole groups, or of some
// output channels of one group.
struct Tile {
  int64_t groups;
  int64_t channels;  // output channels of each group
  int32_t pixels[kMaxSpatial];
};

// The input positions along one dimension that outputs `first` to `last` - 1 depend on, with
// positions in the padding if `padded`.
struct Reach {
  int64_t begin;
  int64_t end;
};
Reach reach_of(const Conv& conv, size_t s, int64_t first, int64_t last, bool padded) {
  const int64_t stride = conv.stride[s];
  const int64_t span = int64_t{conv.dilation[s]} * (conv.weight.size[s] - 1);
  int64_t begin = first * stride - conv.padding[s];
  int64_t end = (last - 1) * stride - conv.padding[s] + span + 1;
  if (conv.transposed) {
    const int64_t lowest = first + conv.padding[s] - span;
    begin = lowest > 0 ? (lowest + stride - 1) / stride : -(-lowest / stride);
    end = (last - 1 + conv.padding[s]) / stride + 1;
  }
  if (padded) return {begin, std::max(end, begin)};
  begin = std::max<int64_t>(begin, 0);
  return {begin, std::max(std::min<int64_t>(end, conv.input.size[s]), begin)};
}

// False if the weights can be read in place: they are packed already, or are float32.
bool copies_weights(const Conv& conv) {
  if (wants_channels(conv)) return conv.packed == nullptr;
  return conv.weight.tensor->dtype != DType::Float32;
}

// The maximum number of floats that a tile needs, with its bias.
int64_t tile_floats(const Conv& conv, const Tile& tile) {
  int64_t in = tile.groups * conv.group_in;
  int64_t out = tile.groups * tile.channels;
  const int64_t weights = copies_weights(conv) ? out * conv.group_in * conv.taps() : 0;
  const int64_t bias = out;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    const int64_t n = tile.pixels[s];
    const int64_t span = int64_t{conv.dilation[s]} * (conv.weight.size[s] - 1);
    const int64_t read =
        conv.transposed ? (n - 1 + span) / conv.stride[s] + 2 : (n - 1) * conv.stride[s] + span + 1;
    in = many(in, wants_channels(conv) ? read : std::min<int64_t>(read, conv.input.size[s]));
    out *= n;
  }
  constexpr int64_t kRounding = 4 * KernelContext::kScratchAlignment;
  static_assert(kRounding >= 2 * kChannelSlack + 4 * 16, "of four allocations, two with slack");
  return in + out + weights + bias + kRounding;
}

// For small groups with channels innermost. The channels of all groups are adjacent in memory, so
// the tile keeps enough of them and gets fewer pixels instead.
bool choose_channels_tile(const Conv& conv, int64_t room, Tile* tile) {
  *tile = {conv.groups, conv.group_out, {conv.out.size[0], conv.out.size[1], conv.out.size[2]}};
  const auto shrink = [&](int64_t fewest) {
    while (tile_floats(conv, *tile) > room && tile->groups > 1 &&
           tile->groups * conv.group_in >= 2 * fewest) {
      tile->groups = (tile->groups + 1) / 2;
    }
  };
  shrink(4 * kFewChannels);
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    while (tile_floats(conv, *tile) > room && tile->pixels[s] > 1) {
      tile->pixels[s] = (tile->pixels[s] + 1) / 2;
    }
  }
  shrink(wants_channels(conv) ? 1 : kFewChannels);
  return tile_floats(conv, *tile) <= room;
}

// False if the smallest tile does not fit.
bool choose_tile(const Conv& conv, int64_t room, Tile* tile) {
  if (wants_channels(conv)) return choose_channels_tile(conv, room, tile);
  const bool depthwise = conv.group_in == 1 && conv.group_out == 1;
  if (depthwise && conv.input.inner_stride == 1 && choose_channels_tile(conv, room, tile)) {
    return true;
  }
  *tile = {1, conv.group_out, {conv.out.size[0], conv.out.size[1], conv.out.size[2]}};
  const int64_t one_group = tile_floats(conv, *tile);
  if (one_group <= room) {
    tile->groups = std::max<int64_t>(std::min(conv.groups, room / one_group), 1);
    return true;
  }
  const int64_t each = conv.group_in * conv.taps() + 1;
  while (copies_weights(conv) && tile->channels * each > room / 2 && tile->channels > 1) {
    tile->channels = (tile->channels + 1) / 2;
  }
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    while (tile_floats(conv, *tile) > room && tile->pixels[s] > 1) {
      tile->pixels[s] = (tile->pixels[s] + 1) / 2;
    }
  }
  while (tile_floats(conv, *tile) > room && tile->channels > kFewChannels) {
    tile->channels = (tile->channels + 1) / 2;
  }
  return tile_floats(conv, *tile) <= room;
}

int64_t blocks(int64_t n, int64_t each) { return (n + each - 1) / each; }

int64_t count_tiles(const Conv& conv, const Tile& tile) {
  int64_t n = conv.batch * blocks(conv.groups, tile.groups) * blocks(conv.group_out, tile.channels);
  for (size_t s = 0; s < kMaxSpatial; ++s) n *= blocks(conv.out.size[s], tile.pixels[s]);
  return n;
}

// The position and the size of a tile; tiles at the edges are smaller.
struct Place {
  int64_t image;
  int64_t group;
  int64_t groups;
  int64_t channel;
  int64_t channels;
  int64_t pixel[kMaxSpatial];
  int64_t pixels[kMaxSpatial];
};

Place place_of(const Conv& conv, const Tile& tile, int64_t item) {
  Place at;
  const auto take = [&item](int64_t size, int64_t each, int64_t* first, int64_t* count) {
    const int64_t n = blocks(size, each);
    *first = item % n * each;
    *count = std::min(each, size - *first);
    item /= n;
  };
  for (size_t s = kMaxSpatial; s-- > 0;) {
    take(conv.out.size[s], tile.pixels[s], &at.pixel[s], &at.pixels[s]);
  }
  take(conv.group_out, tile.channels, &at.channel, &at.channels);
  take(conv.groups, tile.groups, &at.group, &at.groups);
  at.image = item;
  return at;
}

// Copies tiles into memory of its own and runs a convolution on each.
class Tiles {
 public:
  Tiles(const Conv& conv, void* memory, size_t bytes)
      : conv_(conv), channels_(wants_channels(conv)), allocator_(memory, bytes), part_(conv) {}

  void run(const Place& at) {
    allocator_.reset();
    const int64_t first = at.group * conv_.group_out + at.channel;
    const int64_t ins = at.groups * conv_.group_in;
    const int64_t outs = at.groups * at.channels;
    part_.batch = 1;
    part_.groups = at.groups;
    part_.group_out = at.channels;
    ChannelBox box;
    box.offset =
        at.image * conv_.input.outer_stride + at.group * conv_.group_in * conv_.input.inner_stride;
    box.channels = ins;
    int64_t from = box.offset;
    int64_t to = at.image * conv_.out.outer_stride + first * conv_.out.inner_stride;
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      const Reach reach = reach_of(conv_, s, at.pixel[s], at.pixel[s] + at.pixels[s], channels_);
      const int64_t moved = conv_.transposed ? at.pixel[s] - reach.begin * conv_.stride[s]
                                             : reach.begin - at.pixel[s] * conv_.stride[s];
      box.first[s] = reach.begin;
      box.size[s] = reach.end - reach.begin;
      part_.input.size[s] = static_cast<int32_t>(box.size[s]);
      part_.out.size[s] = static_cast<int32_t>(at.pixels[s]);
      part_.padding[s] = static_cast<int32_t>(conv_.padding[s] + moved);
      from += reach.begin * conv_.input.strides[s];
      to += at.pixel[s] * conv_.out.strides[s];
    }
    place(1, ins, conv_.input, &part_.input, &input_);
    place(1, outs, conv_.out, &part_.out, &out_);
    take_weights(at);
    if (conv_.bias != nullptr) take_bias(first, outs);
    if (channels_) {
      copy_box(conv_.input, box, input_.as<float>());
      conv_channels(part_);
    } else {
      copy(conv_.input, from, part_.input, 1, ins, true);
      Message message;
      KernelContext ctx(message, &allocator_);
      conv_float(ctx, part_);
    }
    copy(conv_.out, to, part_.out, 1, outs, false);
  }

 private:
  void* allocate(int64_t floats) {
    return allocator_.allocate(static_cast<size_t>(floats) * sizeof(float),
                               KernelContext::kScratchAlignment);
  }

  // Allocates a float32 tensor with `outer` and `inner` as its first two sizes. Its channels are
  // innermost if those of `like` are.
  void place(int64_t outer, int64_t inner, const ConvTensor& like, ConvTensor* part,
             Tensor* tensor) {
    int64_t pixels = 1;
    const bool inner_last = like.inner_stride == 1 || channels_;
    for (size_t s = kMaxSpatial; s-- > 0;) {
      part->strides[s] = pixels * (inner_last ? inner : 1);
      pixels *= part->size[s];
    }
    part->inner_stride = inner_last ? 1 : pixels;
    part->outer_stride = inner * pixels;
    tensor->numel = outer * inner * pixels;
    tensor->data = allocate(tensor->numel + (channels_ ? kChannelSlack : 0));
    part->tensor = tensor;
  }

  // Copies a part of `whole` into `part`, or back.
  void copy(const ConvTensor& whole, int64_t offset, const ConvTensor& part, int64_t outer,
            int64_t inner, bool into) {
    const DType dtype = whole.tensor->dtype;
    CopyBlock block;
    const auto push = [&](int64_t size, int64_t whole_stride, int64_t part_stride) {
      block.push(size, into ? whole_stride : part_stride, into ? part_stride : whole_stride);
    };
    push(outer, whole.outer_stride, part.outer_stride);
    push(inner, whole.inner_stride, part.inner_stride);
    for (size_t s = 0; s < kMaxSpatial; ++s) push(part.size[s], whole.strides[s], part.strides[s]);
    void* const there = element_at(*whole.tensor, offset);
    void* const here = part.tensor->data;
    if (into) return converting_copy(there, dtype, here, DType::Float32, block);
    converting_copy(here, DType::Float32, there, dtype, block);
  }

  void take_weights(const Place& at) {
    const ConvTensor& w = conv_.weight;
    const int64_t ins = at.groups * conv_.group_in;
    const int64_t outs = at.groups * at.channels;
    const int64_t from =
        conv_.transposed ? at.group * conv_.group_in * w.outer_stride + at.channel * w.inner_stride
                         : (at.group * conv_.group_out + at.channel) * w.outer_stride;
    if (channels_) return take_packed(at, ins * at.channels * conv_.taps());
    if (!copies_weights(conv_)) {
      weight_.data = element_at(*w.tensor, from);
      part_.weight.tensor = &weight_;
      return;
    }
    const int64_t outer = conv_.transposed ? ins : outs;
    const int64_t inner = conv_.transposed ? at.channels : conv_.group_in;
    place(outer, inner, w, &part_.weight, &weight_);
    copy(w, from, part_.weight, outer, inner, true);
  }

  void take_packed(const Place& at, int64_t floats) {
    if (conv_.packed != nullptr) {
      part_.packed = conv_.packed + at.group * (floats / at.groups);
      return;
    }
    float* const packed = static_cast<float*>(allocate(floats + kChannelSlack));
    pack_weights(conv_, at.group, at.groups, packed);
    part_.packed = packed;
  }

  void take_bias(int64_t first, int64_t count) {
    bias_.data = allocate(count);
    bias_.numel = count;
    convert(element_at(*conv_.bias, first), conv_.bias->dtype, bias_.data, DType::Float32,
            static_cast<size_t>(count));
    part_.bias = &bias_;
  }

  const Conv& conv_;
  bool channels_;
  Allocator allocator_;
  Conv part_;
  Tensor input_;
  Tensor weight_;
  Tensor out_;
  Tensor bias_;
};

}  // namespace

void take_float_weights(KernelContext& ctx, Conv* conv, Tensor* copy) {
  const Tensor& weight = *conv->weight.tensor;
  const bool packs = wants_channels(*conv);
  const size_t slack = packs ? static_cast<size_t>(kChannelSlack) : 0;
  const size_t bytes = (static_cast<size_t>(weight.numel) + slack) * sizeof(float);
  if (bytes > ctx.scratch_left() / 4) return;
  copy->data = ctx.scratch(bytes);
  if (copy->data == nullptr) return;
  if (packs) {
    pack_weights(*conv, 0, conv->groups, copy->as<float>());
    conv->packed = copy->as<float>();
    return;
  }
  convert(weight.data, weight.dtype, copy->data, DType::Float32, static_cast<size_t>(weight.numel));
  conv->weight.tensor = copy;
}

bool conv_tiles(KernelContext& ctx, const ScratchShares& shares, const Conv& conv) {
  // The float32 algorithms pack into a quarter of the memory.
  const int64_t room = static_cast<int64_t>(shares.bytes() / sizeof(float) / 4 * 3);
  Tile tile;
  if (!choose_tile(conv, room, &tile)) return false;
  const int64_t tiles = count_tiles(conv, tile);
  shares.run(ctx, tiles, [&](int64_t share, int64_t first, int64_t stride) {
    Tiles part(conv, shares.memory(share), shares.bytes());
    for (int64_t item = first; item < tiles; item += stride) part.run(place_of(conv, tile, item));
  });
  return true;
}

}  // namespace rushlight::kernels
