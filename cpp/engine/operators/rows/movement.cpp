// Data movement: rows of a table, and copies between layouts.
#include "rushlight/engine/kernels/products/product.h"
#include "rushlight/engine/kernels/rows/rows.h"
#include "rushlight/engine/operators/operator.h"

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
    if (table_ == nullptr || indices_ == nullptr || out_ == nullptr) {
      return setup.refuse("a value is missing");
    }
    if (indices_->dtype != DType::Int64) return setup.refuse("its indices are not int64");
    const int64_t columns = parameters.columns;
    gather_.panels = columns != 0;
    if (scales_ != nullptr) return prepare_integers(columns, setup);
    int64_t width = table_->rank == 2 ? table_->sizes[1] : 0;
    gather_.rows = table_->rank == 2 ? table_->sizes[0] : 0;
    if (gather_.panels) {
      const bool is_real = table_->dtype == DType::Float32 || table_->dtype == DType::Float16 ||
                           table_->dtype == DType::BFloat16;
      if (columns < 0 || columns > kMaxViewNumel || !is_real || out_->dtype != DType::Float32) {
        return setup.refuse("its panels are not valid");
      }
      gather_.rows = columns;
      width = table_->numel / (panels_of(columns) * kPanel);
      if (table_->numel != panels_of(columns) * kPanel * width) {
        return setup.refuse("its panels have other sizes");
      }
    } else if (table_->rank != 2) {
      return setup.refuse("its table is not [rows, width]");
    }
    // Float32 if the table has a half type, or else the table's dtype.
    const bool fits = table_->dtype == out_->dtype || out_->dtype == DType::Float32;
    if (!fits || !find_conversion(table_->dtype, out_->dtype, &gather_.conversion) ||
        !is_dense(*table_) || !is_dense(*indices_) || !is_dense(*out_) ||
        out_->numel != bounded_product({indices_->numel, width})) {
      return setup.refuse("its values have other sizes, or gaps");
    }
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
    const bool halves = scales_->dtype == DType::BFloat16;
    if (columns <= 0 || columns > kMaxViewNumel || (!is_byte && table_->dtype != DType::UInt8) ||
        (!halves && scales_->dtype != DType::Float32) || out_->dtype != DType::Float32) {
      return setup.refuse("its panels are not integers with scales, or its result is not float32");
    }
    gather_.bits = is_byte ? 8 : 4;
    gather_.rows = columns;
    gather_.count = indices_->numel;
    const int64_t width = out_->rank > 0 ? out_->sizes[out_->rank - 1] : 0;
    const int64_t filled = panels_of(columns) * kPanel;
    const int64_t groups = scales_->numel / filled;
    const int64_t numel =
        bounded_product({panels_of(columns), panel_quads(width, gather_.bits), kQuadBytes});
    if (!is_dense(*table_) || !is_dense(*indices_) || !is_dense(*out_) || !is_dense(*scales_) ||
        table_->numel != numel || out_->numel != bounded_product({indices_->numel, width}) ||
        groups < 1 || scales_->numel != groups * filled || width % groups != 0) {
      return setup.refuse("its panels, scales or rows have other sizes, or gaps");
    }
    gather_.width = width;
    gather_.scales.groups = groups;
    gather_.scales.bfloat16 = halves;
    return {};
  }

  const View* table_ = nullptr;
  const View* indices_ = nullptr;
  const View* scales_ = nullptr;  // of integers
  const View* out_ = nullptr;
  Gather gather_;
};

class CopyOperator final : public Operator {
 public:
  Status prepare(const CopyParameters&, Setup& setup) {
    in_ = setup.input(0);
    out_ = setup.output(0);
    if (in_ == nullptr || out_ == nullptr) return setup.refuse("a value is missing");
    if (!find_conversion(in_->dtype, out_->dtype, &copy_.conversion) || !same_sizes(*in_, *out_) ||
        in_->rank > kCopyRank || has_repeats(*out_)) {
      return setup.refuse("its values differ in dtype or sizes");
    }
    copy_.rank = in_->rank;
    for (size_t d = 0; d < in_->rank; ++d) {
      copy_.sizes[d] = in_->sizes[d];
      copy_.in_strides[d] = in_->strides[d];
      copy_.out_strides[d] = out_->strides[d];
    }
    copy_.element_size = element_size(in_->dtype);
    if (copy_.element_size > 8) return setup.refuse("its elements are too large");
    return {};
  }

  Status run(const Frame& frame) const override {
    Copy kernel = copy_;
    kernel.in = frame.at<void>(in_);
    kernel.out = frame.at<void>(out_);
    copy(kernel, frame.workers);
    return {};
  }

 private:
  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Copy copy_;
};

}  // namespace

Result<Operator*> make_operator(const GatherParameters& parameters, Setup& setup) {
  return setup.make<GatherOperator>(parameters);
}

Result<Operator*> make_operator(const CopyParameters& parameters, Setup& setup) {
  return setup.make<CopyOperator>(parameters);
}

}  // namespace rushlight::engine
