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

class DynamicProduct final : public Operator {
 public:
  Status prepare(const DynamicProductParameters& parameters, Setup& setup) {
    if (parameters.bits != 8 && parameters.bits != 4) {
      return setup.refuse("its weights have %d bits, but must have 8 or 4",
                          static_cast<int>(parameters.bits));
    }
    has_groups_ = parameters.group_size != 0;
    panels_ = setup.input(2);
    scales_ = setup.input(3);
    shares_ = setup.input(4);
    out_ = setup.output(0);
    const bool halves = has_groups_ && scales_ != nullptr && scales_->dtype == DType::BFloat16;
    RL_TRY(setup.check_dtypes(
        {DType::UInt8, DType::Float32, parameters.bits == 8 ? DType::Int8 : DType::UInt8,
         halves ? DType::BFloat16 : DType::Float32, has_groups_ ? DType::Float32 : DType::Int32,
         DType::Float32},
        {DType::Float32}, 1));
    a_ = setup.input(0);
    rows_ = setup.input(1);
    RL_TRY(prepare_sizes(setup, panels_, parameters.bits, &product_));
    RL_TRY(setup.check_elements("its rows' scales and zero points", *rows_, 2 * product_.rows));
    if (has_groups_) {
      RL_TRY(prepare_groups(setup, parameters));
    } else {
      RL_TRY(check_columns(setup, "its scales", *scales_, product_.columns));
    }
    RL_TRY(check_columns(setup, "its shares", *shares_, product_.columns));
    return epilogue_.prepare(setup, parameters.epilogue, setup.input(5), product_.rows,
                             product_.columns);
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    QuantizedProduct product = product_;
    product.a = frame.at<uint8_t>(a_);
    product.panels = frame.at<void>(panels_);
    if (has_groups_) {
      product.groups.scales = frame.at<void>(scales_);
      product.results.shares = frame.at(shares_);
    } else {
      product.results.multipliers = frame.at(scales_);
      product.results.start = frame.at<int32_t>(shares_);
    }
    product.results.row_scales = frame.at(rows_);
    product.results.floats = frame.at(out_);
    product.results.epilogue = epilogue_.bind(frame, bound);
    multiply(product, frame.workers);
    return {};
  }

 private:
  Status prepare_groups(const Setup& setup, const DynamicProductParameters& parameters) {
    const int64_t size = parameters.group_size;
    if (parameters.bits != 4 || size < 0 || size % (2 * kQuad) != 0 || product_.depth == 0 ||
        product_.depth % size != 0) {
      return setup.refuse(
          "its weights have %d bits in groups of %lld terms, but must have 4 bits, and groups of a "
          "multiple of 8 terms that divide its depth, %lld",
          static_cast<int>(parameters.bits), static_cast<long long>(size),
          static_cast<long long>(product_.depth));
    }
    product_.groups.groups = product_.depth / size;
    product_.groups.bfloat16 = scales_->dtype == DType::BFloat16;
    const int64_t columns = panels_of(product_.columns) * kPanel;
    return setup.check_elements("its groups' scales", *scales_,
                                bounded_product({columns, product_.groups.groups}));
  }

  bool has_groups_ = false;
  const View* a_ = nullptr;
  const View* rows_ = nullptr;
  const View* panels_ = nullptr;
  const View* scales_ = nullptr;
  const View* shares_ = nullptr;
  const View* out_ = nullptr;
  QuantizedProduct product_;
  EpiloguePlan epilogue_;
};

}  // namespace

Result<Operator*> make_operator(const QuantizedProductParameters& parameters, Setup& setup) {
  return setup.make<StaticProduct>(parameters);
}

Result<Operator*> make_operator(const DynamicProductParameters& parameters, Setup& setup) {
  return setup.make<DynamicProduct>(parameters);
}

}  // namespace rushlight::engine
