// Data movement: rows of a table, and copies between layouts.
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/operators/unary.h"

namespace rushlight::engine {
namespace {

// The conversion from one dtype to another; None if they are equal. False if there is none.
bool find_conversion(DType from, DType to, Conversion* conversion) {
  *conversion = Conversion::None;
  if (from == DType::Float16 && to == DType::Float32) *conversion = Conversion::HalfToFloat;
  if (from == DType::Float32 && to == DType::Float16) *conversion = Conversion::FloatToHalf;
  if (from == DType::BFloat16 && to == DType::Float32) *conversion = Conversion::BFloatToFloat;
  if (from == DType::Float32 && to == DType::BFloat16) *conversion = Conversion::FloatToBFloat;
  return from == to || *conversion != Conversion::None;
}

class GatherOperator final : public Operator {
 public:
  Status prepare(const GatherParameters& parameters, Setup& setup) {
    table_ = setup.input(0);
    indices_ = setup.input(1);
    scales_ = setup.input(2);
    out_ = setup.output(0);
    RL_TRY(setup.check_present(2));
    if (indices_->dtype != DType::Int64) {
      return setup.refuse("its indices are %s, but must be int64", dtype_name(indices_->dtype));
    }
    const int64_t columns = parameters.columns;
    gather_.panels = columns != 0;
    if (scales_ != nullptr) return prepare_integers(columns, setup);
    int64_t width = table_->rank == 2 ? table_->sizes[1] : 0;
    gather_.rows = table_->rank == 2 ? table_->sizes[0] : 0;
    if (gather_.panels) {
      const bool is_real = table_->dtype == DType::Float32 || table_->dtype == DType::Float16 ||
                           table_->dtype == DType::BFloat16;
      if (columns < 0 || columns > kMaxViewNumel) {
        return setup.refuse("its table has %lld rows, but must have 0 to %lld",
                            static_cast<long long>(columns), static_cast<long long>(kMaxViewNumel));
      }
      if (!is_real || out_->dtype != DType::Float32) {
        return setup.refuse("its panels are %s and its result %s, but must be floats and float32",
                            dtype_name(table_->dtype), dtype_name(out_->dtype));
      }
      gather_.rows = columns;
      width = table_->numel / (panels_of(columns) * kPanel);
      RL_TRY(setup.check_elements("its table", *table_, panels_of(columns) * kPanel * width));
    } else if (table_->rank != 2) {
      return setup.refuse("its table has sizes %s, but must be [rows, width]",
                          text_of(*table_).text());
    }
    // Float32 if the table has a half type, or else the table's dtype.
    const bool fits = table_->dtype == out_->dtype || out_->dtype == DType::Float32;
    if (!fits || !find_conversion(table_->dtype, out_->dtype, &gather_.conversion)) {
      return setup.refuse("its table is %s and its result %s, but must be the same, or float32",
                          dtype_name(table_->dtype), dtype_name(out_->dtype));
    }
    RL_TRY(setup.check_elements("its table", *table_, table_->numel));
    RL_TRY(setup.check_elements("its indices", *indices_, indices_->numel));
    RL_TRY(setup.check_elements("its result", *out_, bounded_product({indices_->numel, width})));
    gather_.width = width;
    gather_.element_size = static_cast<int64_t>(element_size(table_->dtype));
    gather_.count = indices_->numel;
    return {};
  }

  Status run(const Frame& frame) const override {
    Gather job = gather_;
    job.table = frame.at<void>(table_);
    job.scales.scales = frame.at<void>(scales_);
    job.indices = frame.at<int64_t>(indices_);
    job.out = frame.at<void>(out_);
    int64_t bad = 0;
    if (gather(job, &bad, frame.workers)) return {};
    return frame.message->fail(Code::InvalidArgument,
                               "index %lld at position %lld is not within 0..%lld",
                               static_cast<long long>(job.indices[bad]),
                               static_cast<long long>(bad), static_cast<long long>(job.rows - 1));
  }

 private:
  // Columns of a matrix of integers in panels.
  Status prepare_integers(int64_t columns, Setup& setup) {
    const bool is_byte = table_->dtype == DType::Int8;
    if (columns <= 0 || columns > kMaxViewNumel || (!is_byte && table_->dtype != DType::UInt8) ||
        !read_scale_type(*scales_, &gather_.scales.type) || out_->dtype != DType::Float32) {
      return setup.refuse(
          "its panels are %s of %lld columns, its scales %s and its result %s, but must be int8 or "
          "uint8, float32, bfloat16 or float16, and float32",
          dtype_name(table_->dtype), static_cast<long long>(columns), dtype_name(scales_->dtype),
          dtype_name(out_->dtype));
    }
    gather_.bits = is_byte ? 8 : 4;
    gather_.rows = columns;
    gather_.count = indices_->numel;
    const int64_t width = out_->rank > 0 ? out_->sizes[out_->rank - 1] : 0;
    const int64_t filled = panels_of(columns) * kPanel;
    const int64_t groups = scales_->numel / filled;
    const int64_t numel =
        bounded_product({panels_of(columns), panel_quads(width, gather_.bits), kQuadBytes});
    RL_TRY(setup.check_elements("its table", *table_, numel));
    RL_TRY(setup.check_elements("its indices", *indices_, indices_->numel));
    RL_TRY(setup.check_elements("its result", *out_, bounded_product({indices_->numel, width})));
    RL_TRY(setup.check_elements("its scales", *scales_, groups * filled));
    if (groups < 1 || width % groups != 0) {
      return setup.refuse("its rows have %lld elements, which do not divide into %lld groups",
                          static_cast<long long>(width), static_cast<long long>(groups));
    }
    gather_.width = width;
    gather_.scales.groups = groups;
    return {};
  }

  const View* table_ = nullptr;
  const View* indices_ = nullptr;
  const View* scales_ = nullptr;  // of integers
  const View* out_ = nullptr;
  Gather gather_;
};

class CopyOperator final : public UnaryOperator<Copy, copy> {
 public:
  Status prepare(const CopyParameters&, Setup& setup) {
    in_ = setup.input(0);
    out_ = setup.output(0);
    RL_TRY(setup.check_present(1));
    if (!find_conversion(in_->dtype, out_->dtype, &job_.conversion)) {
      return setup.refuse("its input is %s and its result %s: only half types and float32 convert",
                          dtype_name(in_->dtype), dtype_name(out_->dtype));
    }
    RL_TRY(setup.check_same_sizes("its input", *in_, "its result", *out_));
    RL_TRY(setup.check_no_repeats("output", 0, *out_));
    if (in_->rank > kCopyRank) {
      return setup.refuse("its input has %u dimensions, but at most %zu are allowed",
                          unsigned{in_->rank}, size_t{kCopyRank});
    }
    job_.rank = in_->rank;
    for (size_t d = 0; d < in_->rank; ++d) {
      job_.sizes[d] = in_->sizes[d];
      job_.in_strides[d] = in_->strides[d];
      job_.out_strides[d] = out_->strides[d];
    }
    job_.element_size = element_size(in_->dtype);
    if (job_.element_size > 8) {
      return setup.refuse("its input is %s, whose elements have more than 8 bytes",
                          dtype_name(in_->dtype));
    }
    return {};
  }
};

}  // namespace

Result<Operator*> make_operator(const GatherParameters& parameters, Setup& setup) {
  return setup.make<GatherOperator>(parameters);
}

Result<Operator*> make_operator(const CopyParameters& parameters, Setup& setup) {
  return setup.make<CopyOperator>(parameters);
}

}  // namespace rushlight::engine
