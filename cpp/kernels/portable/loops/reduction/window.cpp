#include "rushlight/kernels/portable/loops/reduction/window.h"

#include "rushlight/kernel/loops/vec.h"
#include "rushlight/kernels/portable/loops/linalg/gemm.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr int64_t kWidth = kPanelVectors * kLanes;
constexpr int kCachedTaps = 27;

// The input that one tap reads for each pixel of a panel, relative to the start of a channel.
struct Tap {
  int64_t delta;                // offset of the tap from the first tap
  int32_t index[kWidth];        // offset; 0 if outside
  int32_t inside_mask[kWidth];  // all ones if inside, else zero
};

// The output pixels of a panel: the position of the kernel's first tap for each.
struct Pixels {
  int count;
  int32_t at[kMaxSpatial][kWidth];
  int64_t offset[kWidth];
  int lane_stride[kPanelVectors];  // between the lanes of a vector: 1, 2, or 0 for any other
                                   // pattern
};

// The stride between the offsets of the lanes that start at `first`, if it is 1 or 2 for all of
// them, else 0.
int stride_of(const Pixels& pixels, int64_t first) {
  const int64_t end = first + kLanes < pixels.count ? first + kLanes : pixels.count;
  if (end - first < 2) return 0;
  const int64_t stride = pixels.offset[first + 1] - pixels.offset[first];
  for (int64_t i = first + 2; i < end; ++i) {
    if (pixels.offset[i] - pixels.offset[i - 1] != stride) return 0;
  }
  return stride == 1 || stride == 2 ? static_cast<int>(stride) : 0;
}

void locate(const Window& w, int64_t first, int count, Pixels* pixels) {
  int64_t o[kMaxSpatial];
  o[2] = first % w.out[2];
  o[1] = first / w.out[2] % w.out[1];
  o[0] = first / w.out[2] / w.out[1];
  pixels->count = count;
  for (int i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      const int64_t at = o[s] * w.stride[s] - w.padding[s];
      pixels->at[s][i] = static_cast<int32_t>(at);
      offset += at * w.strides[s];
    }
    pixels->offset[i] = offset;
    for (size_t s = kMaxSpatial; s-- > 0;) {
      if (++o[s] < w.out[s] || s == 0) break;
      o[s] = 0;
    }
  }
  for (int64_t v = 0; v < kPanelVectors; ++v)
    pixels->lane_stride[v] = stride_of(*pixels, v * kLanes);
}

void meet(const Window& w, const Pixels& p, const int32_t* position, Tap* tap) {
  int32_t shift[kMaxSpatial];
  int64_t delta = 0;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    shift[s] = position[s] * w.dilation[s];
    delta += shift[s] * w.strides[s];
  }
  tap->delta = delta;
  for (int i = 0; i < p.count; ++i) {
    // As unsigned numbers, negative positions are too great, too.
    const bool inside =
        (static_cast<uint32_t>(p.at[0][i] + shift[0]) < static_cast<uint32_t>(w.in[0])) &
        (static_cast<uint32_t>(p.at[1][i] + shift[1]) < static_cast<uint32_t>(w.in[1])) &
        (static_cast<uint32_t>(p.at[2][i] + shift[2]) < static_cast<uint32_t>(w.in[2]));
    const int32_t mask = -static_cast<int32_t>(inside);
    tap->inside_mask[i] = mask;
    tap->index[i] = static_cast<int32_t>(p.offset[i] + delta) & mask;
  }
  for (int64_t i = p.count; i < kWidth; ++i) tap->inside_mask[i] = tap->index[i] = 0;
}

Vec gather(const float* in, const int32_t* index) {
  float values[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) values[i] = in[index[i]];
  return load(values);
}

// Copies one line of a panel: the input of the tap for all pixels. `base` is the start of the
// channel.
void copy_line(const Window& w, const Pixels& pixels, const Tap& tap, int64_t base, int64_t pitch,
               float* out) {
  for (int64_t v = 0; v * kLanes < pitch; ++v) {
    const int stride = pixels.lane_stride[v];
    const int64_t start = base + tap.delta + pixels.offset[v * kLanes];
    // Lanes in the padding are read and masked out, so all of them must be inside of the tensor.
    const bool readable = stride != 0 && start >= 0 && start + stride * kLanes <= w.size;
    const Vec values = !readable     ? gather(w.data + base, tap.index + v * kLanes)
                       : stride == 1 ? load(w.data + start)
                                     : load_even(w.data + start);
    const IntVec mask = load_int(tap.inside_mask + v * kLanes);
    store(out + v * kLanes, from_bits(bits(values) & mask));
  }
}

void pack_taps(const Window& w, int64_t first, int count, int64_t k0, int64_t n, float* out,
               int64_t pitch) {
  const int64_t taps = static_cast<int64_t>(w.kernel[0]) * w.kernel[1] * w.kernel[2];
  const bool cached = taps <= kCachedTaps && n > taps;
  Tap cache[kCachedTaps];
  Pixels pixels = {};
  locate(w, first, count, &pixels);
  int64_t channel = k0 / taps;
  int64_t t = k0 % taps;
  const int64_t new_taps = cached ? taps : n;
  for (int64_t k = 0; k < n; ++k) {
    Tap& tap = cache[cached ? t : 0];
    if (k < new_taps) {
      const int32_t position[] = {static_cast<int32_t>(t / w.kernel[2] / w.kernel[1]),
                                  static_cast<int32_t>(t / w.kernel[2] % w.kernel[1]),
                                  static_cast<int32_t>(t % w.kernel[2])};
      meet(w, pixels, position, &tap);
    }
    copy_line(w, pixels, tap, w.origin + channel * w.channel_stride, pitch, out);
    out += pitch;
    if (++t == taps) {
      t = 0;
      ++channel;
    }
  }
}

// Zeros that are read for pixels in the padding, one piece of a run of channels at a time.
constexpr int64_t kZeroRun = 256;
constexpr float kZeros[kZeroRun] = {};

void pack_channels(const Window& w, int64_t first, int count, int64_t k0, int64_t n, float* out,
                   int64_t pitch) {
  Pixels pixels = {};
  locate(w, first, count, &pixels);
  int64_t channel = k0 % w.channels;
  int64_t t = k0 / w.channels;
  const float* rows[kWidth];
  Tap tap;
  for (int64_t done = 0, run = 0; done < n; done += run) {
    const int32_t position[] = {static_cast<int32_t>(t / w.kernel[2] / w.kernel[1]),
                                static_cast<int32_t>(t / w.kernel[2] % w.kernel[1]),
                                static_cast<int32_t>(t % w.kernel[2])};
    meet(w, pixels, position, &tap);
    run = w.channels - channel;
    if (run > n - done) run = n - done;
    if (run > kZeroRun) run = kZeroRun;
    for (int i = 0; i < count; ++i) {
      const bool inside = tap.inside_mask[i] != 0;
      rows[i] = inside ? w.data + w.origin + tap.index[i] + channel * w.channel_stride : kZeros;
    }
    // Starts with the last group, as the product's own packing does.
    for (int64_t i = (count - 1) / kLanes * kLanes; i >= 0; i -= kLanes) {
      const int group = static_cast<int>(count - i < kLanes ? count - i : kLanes);
      gemm_loops.pack_rows(rows + i, group, run, out + done * pitch + i, pitch);
    }
    channel += run;
    if (channel == w.channels) {
      channel = 0;
      ++t;
    }
  }
}

void pack(const Window& w, int64_t first, int count, int64_t k0, int64_t n, float* out,
          int64_t pitch) {
  (w.channels_innermost ? pack_channels : pack_taps)(w, first, count, k0, n, out, pitch);
}

}  // namespace

const WindowLoops window_loops = {pack};

}  // namespace rushlight::kernels::RL_ISA
