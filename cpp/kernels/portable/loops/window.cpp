#include "rushlight/kernels/portable/loops/window.h"

#include "rushlight/kernels/portable/loops/gemm.h"
#include "rushlight/kernels/portable/loops/vec.h"

namespace rushlight::kernels::RL_ISA {
namespace {

constexpr int kWidth = kPanelVectors * kLanes;
constexpr int kCachedTaps = 27;

// What one tap meets at each pixel of a panel, relative to the origin of a channel.
struct Tap {
  int64_t first;           // offset of lane 0, valid or not
  int32_t index[kWidth];   // offset, 0 where it lies outside
  int32_t inside_mask[kWidth];  // all ones where it lies inside, else zero
};

// The output pixels of a panel: where the kernel's first tap lies.
struct Pixels {
  int count;
  bool consecutive;  // lane i lies i elements after lane 0
  int32_t at[kMaxSpatial][kWidth];
  int64_t offset[kWidth];
};

void locate(const Window& w, int64_t first, int count, Pixels* pixels) {
  int64_t o[kMaxSpatial];
  o[2] = first % w.out[2];
  o[1] = first / w.out[2] % w.out[1];
  o[0] = first / w.out[2] / w.out[1];
  pixels->count = count;
  pixels->consecutive = true;
  for (int i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t s = 0; s < kMaxSpatial; ++s) {
      const int64_t at = o[s] * w.stride[s] - w.padding[s];
      pixels->at[s][i] = static_cast<int32_t>(at);
      offset += at * w.step[s];
    }
    pixels->offset[i] = offset;
    pixels->consecutive = pixels->consecutive && offset == pixels->offset[0] + i;
    for (size_t s = kMaxSpatial; s-- > 0;) {
      if (++o[s] < w.out[s] || s == 0) break;
      o[s] = 0;
    }
  }
}

void meet(const Window& w, const Pixels& p, const int32_t* position, Tap* tap) {
  int32_t shift[kMaxSpatial];
  int64_t delta = 0;
  for (size_t s = 0; s < kMaxSpatial; ++s) {
    shift[s] = position[s] * w.dilation[s];
    delta += shift[s] * w.step[s];
  }
  tap->first = p.offset[0] + delta;
  for (int i = 0; i < p.count; ++i) {
    // As unsigned numbers, negative positions are too great as well.
    const bool inside =
        (static_cast<uint32_t>(p.at[0][i] + shift[0]) < static_cast<uint32_t>(w.in[0])) &
        (static_cast<uint32_t>(p.at[1][i] + shift[1]) < static_cast<uint32_t>(w.in[1])) &
        (static_cast<uint32_t>(p.at[2][i] + shift[2]) < static_cast<uint32_t>(w.in[2]));
    const int32_t mask = -static_cast<int32_t>(inside);
    tap->inside_mask[i] = mask;
    tap->index[i] = static_cast<int32_t>(p.offset[i] + delta) & mask;
  }
  for (int i = p.count; i < kWidth; ++i) tap->inside_mask[i] = tap->index[i] = 0;
}

void copy_run(const float* in, const Tap& tap, int64_t pitch, float* out) {
  for (int64_t i = 0; i < pitch; i += kLanes) {
    const IntVec mask = load_int(tap.inside_mask + i);
    store(out + i, from_bits(bits(load(in + i)) & mask));
  }
}

void gather(const float* in, const Tap& tap, int64_t pitch, float* out) {
  float values[kWidth];
  for (int i = 0; i < kWidth; ++i) values[i] = in[tap.index[i]];
  for (int64_t i = 0; i < pitch; i += kLanes) {
    const IntVec mask = load_int(tap.inside_mask + i);
    store(out + i, from_bits(bits(load(values + i)) & mask));
  }
}

void pack_taps(const Window& w, int64_t first, int count, int64_t k0, int64_t n, float* out,
               int64_t pitch) {
  const int64_t taps = static_cast<int64_t>(w.kernel[0]) * w.kernel[1] * w.kernel[2];
  const bool cached = taps <= kCachedTaps && n > taps;
  Tap cache[kCachedTaps];
  Pixels pixels;
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
    const int64_t base = w.origin + channel * w.channel_step;
    const int64_t start = base + tap.first;
    if (pixels.consecutive && start >= 0 && start + pitch <= w.size) {
      copy_run(w.data + start, tap, pitch, out);
    } else {
      gather(w.data + base, tap, pitch, out);
    }
    out += pitch;
    if (++t == taps) {
      t = 0;
      ++channel;
    }
  }
}

}  // namespace

const WindowLoops window_loops = {pack_taps};

}  // namespace rushlight::kernels::RL_ISA
