// Matrix products of bytes with packed weights.
#include "rushlight/engine/kernels/products/dot_product.h"

#include "rushlight/engine/operators/quantized_results.h"

namespace rushlight::engine {
namespace {

// A is uint8 [rows, depth], `out` has as many rows, and `panels` hold the weights of its columns.
Status prepare_sizes(const Setup& setup, const View* panels, int32_t bits,
                     QuantizedProduct* product) {
  const View* a = setup.input(0);
  const View* out = setup.output(0);
  Rows in_rows;
  Rows out_rows;
  RL_TRY(setup.check_no_repeats("input", 0, *a));
  RL_TRY(read_product_rows(setup, *a, *out, &in_rows, &out_rows));
  RL_TRY(check_terms(setup, in_rows.width));
  const int64_t quads = panel_quads(in_rows.width, bits);
  RL_TRY(setup.check_elements("its panels", *panels,
                              bounded_product({panels_of(out_rows.width), quads, kQuadBytes})));
  product->rows = out_rows.count;
  product->depth = in_rows.width;
  product->bits = bits;
  product->columns = out_rows.width;
  product->a_stride = in_rows.stride;
  product->results.stride = out_rows.stride;
  return {};
}

class StaticProduct final : public Operator {
 public:
  Status prepare(const QuantizedProductParameters& parameters, Setup& setup) {
    RL_TRY(check_result_dtypes(setup));
    a_ = setup.input(0);
    panels_ = setup.input(1);
    RL_TRY(prepare_sizes(setup, panels_, 8, &product_));
    return results_.prepare(setup, parameters, product_.rows, product_.columns,
                            product_.results.stride);
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    QuantizedProduct product = product_;
    product.a = frame.at<uint8_t>(a_);
    product.panels = frame.at<void>(panels_);
    product.results = results_.bind(frame, bound);
    multiply(product, frame.workers);
    return {};
  }

 private:
  const View* a_ = nullptr;
  const View* panels_ = nullptr;
  QuantizedProduct product_;
  ResultsPlan results_;
};

// What products of rows that are quantised at run time share.
class DynamicRowsProduct : public Operator {
 protected:
  // Input 0 are the rows, inputs `panels` and `panels` + 1 the weights and their scales.
  Status read_operands(const Setup& setup, const DynamicProductParameters& parameters,
                       size_t panels) {
    product_.bits = parameters.bits;
    if (parameters.bits != 8 && parameters.bits != 4) {
      return setup.refuse("its weights have %d bits, but must have 8 or 4",
                          static_cast<int>(parameters.bits));
    }
    a_ = setup.input(0);
    panels_ = setup.input(panels);
    scales_ = setup.input(panels + 1);
    out_ = setup.output(0);
    return {};
  }
  DType weights_dtype() const { return product_.bits == 8 ? DType::Int8 : DType::UInt8; }
  // The dtype of groups' scales, which may have several.
  DType group_scales_dtype() {
    const bool known = scales_ != nullptr && read_scale_type(*scales_, &product_.groups.type);
    return known ? scales_->dtype : DType::Float32;
  }
  // Groups of `size` weights, which divide the depth.
  Status prepare_groups(const Setup& setup, int64_t size) {
    product_.groups.groups = product_.depth / size;
    const int64_t columns = panels_of(product_.columns) * kPanel;
    return setup.check_elements("its groups' scales", *scales_,
                                bounded_product({columns, product_.groups.groups}));
  }
  Status prepare_epilogue(Setup& setup, const DynamicProductParameters& parameters) {
    return epilogue_.prepare(setup, parameters.epilogue, setup.input(5), product_.rows,
                             product_.columns);
  }
  // For one run; `bound` must live until it is over.
  QuantizedProduct bind(const Frame& frame, BoundTiles& bound) const {
    QuantizedProduct product = product_;
    product.a = frame.at<uint8_t>(a_);
    product.panels = frame.at<void>(panels_);
    if (product.groups.groups != 0) product.groups.scales = frame.at<void>(scales_);
    product.results.floats = frame.at(out_);
    product.results.epilogue = epilogue_.bind(frame, bound);
    return product;
  }

  const View* a_ = nullptr;
  const View* panels_ = nullptr;
  const View* scales_ = nullptr;
  const View* out_ = nullptr;
  QuantizedProduct product_;
  EpiloguePlan epilogue_;
};

// Of rows with a scale and zero point each: uint8, these, panels, weights' scales, shares, bias.
class DynamicProduct final : public DynamicRowsProduct {
 public:
  Status prepare(const DynamicProductParameters& parameters, Setup& setup) {
    RL_TRY(read_operands(setup, parameters, 2));
    const bool has_groups = parameters.group_size != 0;
    rows_ = setup.input(1);
    shares_ = setup.input(4);
    RL_TRY(setup.check_dtypes({DType::UInt8, DType::Float32, weights_dtype(),
                               has_groups ? group_scales_dtype() : DType::Float32,
                               has_groups ? DType::Float32 : DType::Int32, DType::Float32},
                              {DType::Float32}, 1));
    RL_TRY(prepare_sizes(setup, panels_, parameters.bits, &product_));
    RL_TRY(setup.check_elements("its rows' scales and zero points", *rows_, 2 * product_.rows));
    if (has_groups) {
      RL_TRY(check_groups(setup, parameters));
      RL_TRY(prepare_groups(setup, parameters.group_size));
    } else {
      RL_TRY(check_columns(setup, "its scales", *scales_, product_.columns));
    }
    RL_TRY(check_columns(setup, "its shares", *shares_, product_.columns));
    return prepare_epilogue(setup, parameters);
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    QuantizedProduct product = bind(frame, bound);
    if (product.groups.groups != 0) {
      product.results.shares = frame.at(shares_);
    } else {
      product.results.multipliers = frame.at(scales_);
      product.results.start = frame.at<int32_t>(shares_);
    }
    product.results.row_scales = frame.at(rows_);
    multiply(product, frame.workers);
    return {};
  }

 private:
  Status check_groups(const Setup& setup, const DynamicProductParameters& parameters) const {
    const int64_t size = parameters.group_size;
    if (parameters.bits == 4 && size > 0 && size % kOct == 0 && product_.depth != 0 &&
        product_.depth % size == 0) {
      return {};
    }
    return setup.refuse(
        "its weights have %d bits in groups of %lld terms, but must have 4 bits, and groups of a "
        "multiple of 8 terms that divide its depth, %lld",
        static_cast<int>(parameters.bits), static_cast<long long>(size),
        static_cast<long long>(product_.depth));
  }

  const View* rows_ = nullptr;
  const View* shares_ = nullptr;
};

// Of rows in groups: int8, scales and sums of integers, panels, the weights' scales, bias.
class GroupedProduct final : public DynamicRowsProduct {
 public:
  Status prepare(const DynamicProductParameters& parameters, Setup& setup) {
    RL_TRY(read_operands(setup, parameters, 3));
    row_scales_ = setup.input(1);
    row_sums_ = setup.input(2);
    RL_TRY(setup.check_dtypes({DType::Int8, DType::Float32, DType::Int32, weights_dtype(),
                               group_scales_dtype(), DType::Float32},
                              {DType::Float32}, 1));
    RL_TRY(prepare_sizes(setup, panels_, parameters.bits, &product_));
    RL_TRY(prepare_row_groups(setup, parameters));
    product_.results.scaled = true;
    return prepare_epilogue(setup, parameters);
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    QuantizedProduct product = bind(frame, bound);
    product.row_groups.scales = frame.at(row_scales_);
    product.row_groups.sums = frame.at<int32_t>(row_sums_);
    multiply(product, frame.workers);
    return {};
  }

 private:
  Status prepare_row_groups(const Setup& setup, const DynamicProductParameters& parameters) {
    const int64_t depth = product_.depth;
    const int64_t of_rows = parameters.row_group_size;
    const int64_t size = parameters.group_size == 0 ? depth : parameters.group_size;
    const bool known = of_rows == kMaxRowGroup || of_rows == kMaxRowGroup / 2;
    if (!known || size <= 0 || size % of_rows != 0 || depth == 0 || depth % size != 0) {
      return setup.refuse(
          "its rows have groups of %lld terms and its weights of %lld, but rows must have 16 or "
          "32, which divide the weights', and these the depth, %lld",
          static_cast<long long>(of_rows), static_cast<long long>(size),
          static_cast<long long>(depth));
    }
    RL_TRY(prepare_groups(setup, size));
    product_.row_groups.groups = depth / of_rows;
    const int64_t of_all = bounded_product({product_.rows, product_.row_groups.groups});
    RL_TRY(setup.check_elements("the scales of its rows", *row_scales_, of_all));
    return setup.check_elements("the sums of its rows", *row_sums_, of_all);
  }

  const View* row_scales_ = nullptr;
  const View* row_sums_ = nullptr;
};

}  // namespace

Result<Operator*> make_operator(const QuantizedProductParameters& parameters, Setup& setup) {
  return setup.make<StaticProduct>(parameters);
}

Result<Operator*> make_operator(const DynamicProductParameters& parameters, Setup& setup) {
  if (parameters.row_group_size != 0) return setup.make<GroupedProduct>(parameters);
  return setup.make<DynamicProduct>(parameters);
}

}  // namespace rushlight::engine
