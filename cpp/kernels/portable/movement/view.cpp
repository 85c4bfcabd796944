#include "rushlight/kernels/portable/movement/view.h"

#include <algorithm>
#include <cstring>

#include "rushlight/kernels/portable/loops/elementwise/convert.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

// True if loops compute in this type (see compute_index).
bool is_computed(DType dtype) {
  return dtype == DType::Float32 || dtype == DType::Float64 || dtype == DType::Int64 ||
         dtype == DType::Int32 || dtype == DType::Bool;
}

ConvertFn find_convert(DType from, DType to) {
  const size_t f = static_cast<size_t>(from);
  const size_t t = static_cast<size_t>(to);
  if (f >= kConvertedDTypes || t >= kConvertedDTypes) return nullptr;
  const ConvertLoops& loops = convert_loops();
  if (is_computed(to)) return loops.to[compute_index(to)][f];
  if (is_computed(from)) return loops.from[compute_index(from)][t];
  return nullptr;
}

// An intermediate type for converting between two types that are not computed in.
DType middle_type(DType from) { return is_floating(from) ? DType::Float32 : DType::Int64; }

}  // namespace

void StridedReader::init(const View& view, const Tensor& out) {
  data_ = static_cast<const uint8_t*>(view.data);
  element_size_ = element_size(view.dtype);
  dims_ = 0;
  offset_ = 0;
  for (size_t k = out.rank; k-- > 0;) {
    const size_t dim = out.dim_order[k];
    const int64_t size = out.sizes[dim];
    const int64_t stride = view.strides[dim];
    if (size == 1) continue;
    if (dims_ > 0 && stride == strides_[dims_ - 1] * sizes_[dims_ - 1]) {
      sizes_[dims_ - 1] *= size;
      continue;
    }
    sizes_[dims_] = size;
    strides_[dims_] = stride;
    index_[dims_] = 0;
    ++dims_;
  }
}

void StridedReader::seek(int64_t position) {
  offset_ = 0;
  for (size_t d = 0; d < dims_; ++d) {
    index_[d] = position % sizes_[d];
    position /= sizes_[d];
    offset_ += index_[d] * strides_[d];
  }
}

const void* StridedReader::next(size_t n, void* buffer) {
  const uint8_t* here = data_ + offset_ * static_cast<int64_t>(element_size_);
  if (dims_ == 0) return here;
  if (strides_[0] == 1 && static_cast<int64_t>(n) < sizes_[0] - index_[0]) {
    index_[0] += static_cast<int64_t>(n);
    offset_ += static_cast<int64_t>(n);
    return here;
  }
  switch (element_size_) {
    case 1:
      gather(static_cast<uint8_t*>(buffer), n);
      break;
    case 2:
      gather(static_cast<uint16_t*>(buffer), n);
      break;
    case 4:
      gather(static_cast<uint32_t*>(buffer), n);
      break;
    case 8:
      gather(static_cast<uint64_t*>(buffer), n);
      break;
    default:
      gather(static_cast<Bytes16*>(buffer), n);
      break;
  }
  return buffer;
}

template <typename T>
void StridedReader::gather(T* out, size_t n) {
  const T* base = reinterpret_cast<const T*>(data_);
  const int64_t stride = strides_[0];
  while (n > 0) {
    const int64_t left = sizes_[0] - index_[0];
    const int64_t run = std::min(left, static_cast<int64_t>(n));
    const T* in = base + offset_;
    if (stride == 1) {
      std::memcpy(out, in, static_cast<size_t>(run) * sizeof(T));
    } else if (stride == 0) {
      std::fill(out, out + run, *in);
    } else {
      for (int64_t i = 0; i < run; ++i) out[i] = in[i * stride];
    }
    out += run;
    n -= static_cast<size_t>(run);
    index_[0] += run;
    offset_ += run * stride;
    for (size_t d = 0; index_[d] == sizes_[d];) {
      offset_ -= sizes_[d] * strides_[d];
      index_[d] = 0;
      if (++d == dims_) break;
      ++index_[d];
      offset_ += strides_[d];
    }
  }
}

View broadcast_view(const Tensor& tensor, const Tensor& out) {
  View view;
  view.data = tensor.data;
  view.dtype = tensor.dtype;
  const size_t lead = out.rank - tensor.rank;
  for (size_t d = 0; d < out.rank; ++d) {
    const bool repeated = d < lead || tensor.sizes[d - lead] == 1;
    view.strides[d] = repeated ? 0 : tensor.strides[d - lead];
  }
  return view;
}

Status broadcast_shape(KernelContext& ctx, const Tensor* const* tensors, size_t n, Shape* shape) {
  shape->rank = 0;
  for (size_t k = 0; k < n; ++k) shape->rank = std::max<size_t>(shape->rank, tensors[k]->rank);
  std::fill(shape->sizes, shape->sizes + shape->rank, 1);
  for (size_t k = 0; k < n; ++k) {
    const Tensor& t = *tensors[k];
    int32_t* sizes = shape->sizes + (shape->rank - t.rank);
    for (size_t d = 0; d < t.rank; ++d) {
      if (t.sizes[d] == sizes[d] || t.sizes[d] == 1) continue;
      if (sizes[d] != 1) {
        return ctx.fail(Code::InvalidArgument,
                        "shapes %s and %s cannot be broadcast: sizes %d and %d differ and neither "
                        "is 1",
                        ShapeText(tensors[0]->shape()).text(), ShapeText(t.shape()).text(),
                        static_cast<int>(sizes[d]), static_cast<int>(t.sizes[d]));
      }
      sizes[d] = t.sizes[d];
    }
  }
  return {};
}

namespace {

void real_to_complex(const void* in, DType from, float* out, size_t n) {
  float real[kChunk];
  const uint8_t* src = static_cast<const uint8_t*>(in);
  for (size_t done = 0; done < n;) {
    const size_t count = std::min(kChunk, n - done);
    convert(src + done * element_size(from), from, real, DType::Float32, count);
    for (size_t i = 0; i < count; ++i) {
      out[2 * (done + i)] = real[i];
      out[2 * (done + i) + 1] = 0.0F;
    }
    done += count;
  }
}

}  // namespace

bool can_convert(DType from, DType to) {
  if (from == to) return element_size(from) > 0;
  if (to == DType::Complex64) return is_real(from);
  if (find_convert(from, to) != nullptr) return true;
  const DType middle = middle_type(from);
  if (find_convert(from, middle) != nullptr && find_convert(middle, to) != nullptr) return true;
  if constexpr (selection::kLeavesDTypesOut) return can_convert_slowly(from, to);
  return false;
}

bool convert(const void* in, DType from, void* out, DType to, size_t n) {
  if (from == to) {
    if (in != out) std::memmove(out, in, n * element_size(from));
    return true;
  }
  const ConvertFn direct = find_convert(from, to);
  if (direct != nullptr) {
    direct(in, out, n);
    return true;
  }
  if (!can_convert(from, to)) return false;
  if (to == DType::Complex64) {
    real_to_complex(in, from, static_cast<float*>(out), n);
    return true;
  }
  const DType middle = middle_type(from);
  const ConvertFn first = find_convert(from, middle);
  const ConvertFn second = find_convert(middle, to);
  if constexpr (selection::kLeavesDTypesOut) {
    if (first == nullptr || second == nullptr) {
      convert_slowly(in, from, out, to, n);
      return true;
    }
  }
  alignas(64) uint64_t buffer[kChunk];
  const uint8_t* src = static_cast<const uint8_t*>(in);
  uint8_t* dst = static_cast<uint8_t*>(out);
  for (size_t done = 0; done < n;) {
    const size_t count = std::min(kChunk, n - done);
    first(src + done * element_size(from), buffer, count);
    second(buffer, dst + done * element_size(to), count);
    done += count;
  }
  return true;
}

Status copy_view(KernelContext& ctx, const View& view, Tensor& out) {
  if (!can_convert(view.dtype, out.dtype)) {
    return ctx.fail(Code::NotSupported, "%s cannot be converted to %s", dtype_name(view.dtype),
                    dtype_name(out.dtype));
  }
  if (out.numel == 0) return {};
  StridedReader reader;
  reader.init(view, out);
  const bool same = view.dtype == out.dtype;
  const int64_t in_size = static_cast<int64_t>(element_size(view.dtype));
  const int64_t out_size = static_cast<int64_t>(element_size(out.dtype));
  ctx.parallel(out.numel, kGrain, [&](int64_t begin, int64_t end) {
    uint8_t* dst = out.as<uint8_t>() + begin * out_size;
    if (reader.flat()) {
      const uint8_t* src = static_cast<const uint8_t*>(reader.data()) + begin * in_size;
      convert(src, view.dtype, dst, out.dtype, static_cast<size_t>(end - begin));
      return;
    }
    StridedReader part = reader;
    part.seek(begin);
    alignas(64) uint64_t buffer[kChunk];
    for (int64_t done = begin; done < end;) {
      const size_t count = std::min(kChunk, static_cast<size_t>(end - done));
      // If both types are equal, elements are gathered directly into the output.
      const void* src = part.next(count, same ? static_cast<void*>(dst) : buffer);
      convert(src, view.dtype, dst, out.dtype, count);
      dst += static_cast<int64_t>(count) * out_size;
      done += static_cast<int64_t>(count);
    }
  });
  return {};
}

}  // namespace rushlight::kernels
