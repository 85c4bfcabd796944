// Looks up rows of a quantized embedding and dequantizes them: (element - zero point) * scale, with
// one scale for each row or for each group of its elements.
//
// Elements of 4 and 2 bits are unsigned and packed into bytes: two with the first one in the upper
// half, or four with the first one in the lowest bits.
#include <algorithm>

#include "rushlight/kernels/portable/declarations.h"
#include "rushlight/kernels/portable/element.h"
#include "rushlight/kernels/portable/helpers.h"
#include "rushlight/kernels/portable/index/indexing.h"
#include "rushlight/kernels/portable/movement/strided_copy.h"
#include "rushlight/kernels/portable/movement/view.h"
#include "rushlight/kernels/portable/promote.h"

namespace rushlight::kernels {
namespace {

struct Table {
  const Tensor& weight;   // [rows, bytes]
  const Tensor& scales;   // [rows] or [rows, groups]
  const Tensor* zeros;    // same shape as scales, or nullptr
  const Tensor& indices;  // any shape
  int bits;

  int64_t width() const { return int64_t{weight.sizes[1]} * (8 / bits); }
  int64_t groups() const { return scales.rank == 2 ? scales.sizes[1] : 1; }
};

// Unpacks n elements of a row to floats, starting with element `first`.
void unpack(const Table& table, const uint8_t* row, int64_t first, int64_t n, float* to) {
  if (table.bits == 8) {
    if (table.weight.dtype == DType::Int8) {
      const int8_t* from = reinterpret_cast<const int8_t*>(row) + first;
      for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = row[first + i];
    }
  } else if (table.bits == 4) {
    for (int64_t i = first; i < first + n; ++i) {
      const int both = row[i / 2];
      *to++ = static_cast<float>((i % 2 == 0 ? both >> 4 : both & 15) - 8);
    }
  } else {
    for (int64_t i = first; i < first + n; ++i) {
      *to++ = static_cast<float>((row[i / 4] >> (2 * (i % 4)) & 3) - 2);
    }
  }
}

void write_row(const Table& table, int64_t index, const Tensor& out, int64_t to) {
  const uint8_t* row = table.weight.as<const uint8_t>() + index * table.weight.sizes[1];
  const int64_t group = table.width() / table.groups();
  float values[kChunk];
  for (int64_t g = 0; g < table.groups(); ++g) {
    const float scale = float_at(table.scales, index * table.groups() + g);
    const float zero =
        table.zeros == nullptr ? 0.0F : float_at(*table.zeros, index * table.groups() + g);
    for (int64_t done = 0; done < group; done += static_cast<int64_t>(kChunk)) {
      const int64_t first = g * group + done;
      const int64_t n = std::min(static_cast<int64_t>(kChunk), group - done);
      unpack(table, row, first, n, values);
      for (int64_t i = 0; i < n; ++i) values[i] = (values[i] - zero) * scale;
      convert(values, DType::Float32, element_at(out, to + first), out.dtype,
              static_cast<size_t>(n));
    }
  }
}

Status check_parameters(KernelContext& ctx, const char* name, const Tensor& tensor,
                        const Table& table) {
  RL_TRY(check_floating(ctx, name, tensor));
  bool fits = (tensor.rank == 1 || tensor.rank == 2) && tensor.is_contiguous() &&
              tensor.sizes[0] == table.weight.sizes[0] && tensor.rank == table.scales.rank;
  if (fits && tensor.rank == 2) {
    fits = tensor.sizes[1] > 0 && tensor.sizes[1] == table.scales.sizes[1] &&
           table.width() % tensor.sizes[1] == 0;
  }
  if (fits) return {};
  return ctx.fail(
      Code::InvalidArgument,
      "%s has shape %s, but must have one element for each of the %d rows of weight, or "
      "for each group of elements, which divide its width of %lld",
      name, ShapeText(tensor.shape()).text(), table.weight.sizes[0],
      static_cast<long long>(table.width()));
}

Status check_range(KernelContext& ctx, const EValue& low, const EValue& high, int bits) {
  const int64_t from = low.to_int();
  const int64_t to = high.to_int();
  const int64_t half = int64_t{1} << (bits - 1);
  if (bits == 8 ? from <= to : from == -half && to == half - 1) return {};
  return ctx.fail(Code::InvalidArgument,
                  "weight_quant_min is %lld and weight_quant_max %lld, but %d bits hold %lld to "
                  "%lld",
                  static_cast<long long>(from), static_cast<long long>(to), bits,
                  static_cast<long long>(-half), static_cast<long long>(half - 1));
}

Status pick(KernelContext& ctx, const Table& table, const EValue* dtype, Tensor& out) {
  RL_TRY(check_rank(ctx, "weight", table.weight, 2));
  const bool bytes =
      table.weight.dtype == DType::UInt8 || (table.bits == 8 && table.weight.dtype == DType::Int8);
  if (!bytes || !table.weight.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "weight is %s, but must be %s, in row-major order",
                    dtype_name(table.weight.dtype), table.bits == 8 ? "int8 or uint8" : "uint8");
  }
  RL_TRY(check_parameters(ctx, "weight_scales", table.scales, table));
  if (table.zeros != nullptr) {
    RL_TRY(check_parameters(ctx, "weight_zero_points", *table.zeros, table));
  }
  RL_TRY(check_index_type(ctx, "indices", table.indices));
  RL_TRY(check_floating(ctx, "out", out));
  if (dtype != nullptr && !dtype->is_none() && dtype->to_int() != static_cast<int64_t>(out.dtype)) {
    return ctx.fail(Code::InvalidArgument, "dtype is %lld, but out is %s",
                    static_cast<long long>(dtype->to_int()), dtype_name(out.dtype));
  }
  Shape shape(table.indices.shape());
  if (!shape.push(table.width()) || !table.indices.is_contiguous()) {
    return ctx.fail(Code::InvalidArgument,
                    "indices has shape %s: too many dimensions, or not in row-major order",
                    ShapeText(table.indices.shape()).text());
  }
  for (int64_t i = 0; i < table.indices.numel; ++i) {
    const int64_t index = index_at(table.indices, i);
    if (index < 0 || index >= table.weight.sizes[0]) {
      return index_out_of_range(ctx, index, 0, table.weight.sizes[0], 0);
    }
  }
  RL_TRY(ctx.resize(out, shape.span()));
  if (out.numel == 0) return {};
  if (!out.is_contiguous()) {
    return ctx.fail(Code::NotSupported, "out does not lie in row-major order");
  }
  const int64_t width = table.width();
  ctx.parallel(table.indices.numel, kGrain / width + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      write_row(table, index_at(table.indices, i), out, i * width);
    }
  });
  return {};
}

// embedding_*(weight, weight_scales, weight_zero_points, weight_quant_min, weight_quant_max,
//             indices, *, [dtype,] out)
Status embedding(KernelContext& ctx, EValue* const* args, int bits, bool has_dtype) {
  RL_TRY(check_range(ctx, *args[3], *args[4], bits));
  const Table table{args[0]->tensor(), args[1]->tensor(), args[2]->tensor_or_null(),
                    args[5]->tensor(), bits};
  return pick(ctx, table, has_dtype ? args[6] : nullptr, args[has_dtype ? 7 : 6]->tensor());
}

}  // namespace

Status embedding_2bit_out(KernelContext& ctx, EValue* const* args) {
  return embedding(ctx, args, 2, false);
}

Status embedding_2bit_dtype_out(KernelContext& ctx, EValue* const* args) {
  return embedding(ctx, args, 2, true);
}

Status embedding_4bit_out(KernelContext& ctx, EValue* const* args) {
  return embedding(ctx, args, 4, false);
}

Status embedding_4bit_dtype_out(KernelContext& ctx, EValue* const* args) {
  return embedding(ctx, args, 4, true);
}

Status embedding_byte_out(KernelContext& ctx, EValue* const* args) {
  return embedding(ctx, args, 8, false);
}

Status embedding_byte_dtype_out(KernelContext& ctx, EValue* const* args) {
  return embedding(ctx, args, 8, true);
}

}  // namespace rushlight::kernels
