// Matrix products: with packed weights, and of operands that are both computed.
#include "rushlight/engine/kernels/products/product.h"

#include "rushlight/engine/operators/epilogue.h"

namespace rushlight::engine {
namespace {

size_t panel_floats(int64_t depth, int64_t columns) {
  return static_cast<size_t>(panels_of(columns) * depth * kPanel);
}

class PackedProduct final : public Operator {
 public:
  Status prepare(const ProductParameters& parameters, Setup& setup) {
    a_ = setup.input(0);
    panels_ = setup.input(1);
    scales_ = setup.input(3);
    out_ = setup.output(0);
    RL_TRY(check_dtypes(setup));
    Rows a;
    Rows out;
    RL_TRY(read_product_rows(setup, *a_, *out_, &a, &out));
    product_.rows = out.count;
    product_.depth = a.width;
    product_.columns = out.width;
    product_.a_stride = a.stride;
    product_.c_stride = out.stride;
    RL_TRY(has_scales(product_.type) ? check_scales(setup) : check_panels(setup, a.width, kPanel));
    setup.want_scratch(product_scratch(product_, setup.threads));
    return epilogue_.prepare(setup, parameters.epilogue, setup.input(2), out.count, out.width);
  }

  Status run(const Frame& frame) const override {
    BoundTiles bound;
    Product product = product_;
    product.a = frame.at(a_);
    product.panels = frame.at<void>(panels_);
    product.scales.scales = frame.at<void>(scales_);
    product.c = frame.at(out_);
    product.epilogue = epilogue_.bind(frame, bound);
    multiply(product, frame.scratch, frame.scratch_size, frame.workers);
    return {};
  }

 private:
  Status check_dtypes(const Setup& setup) {
    const DType type = panels_ == nullptr ? DType::Float32 : panels_->dtype;
    if (type == DType::BFloat16) product_.type = PanelType::BFloat16;
    if (type == DType::Float16) product_.type = PanelType::Float16;
    if (type == DType::Int8) product_.type = PanelType::Int8;
    if (type == DType::UInt8) product_.type = PanelType::Int4;
    if (!has_scales(product_.type)) return setup.check_floats(3, 2, 1, 1);
    const bool known = scales_ != nullptr && read_scale_type(*scales_, &product_.scales.type);
    const DType scales = known ? scales_->dtype : DType::Float32;
    RL_TRY(setup.check_dtypes({DType::Float32, type, DType::Float32, scales}, {DType::Float32}, 2));
    return setup.check_no_repeats("input", 0, *a_);
  }
  // Checks panels of `rows` rows with so many elements each.
  Status check_panels(const Setup& setup, int64_t rows, int64_t elements) const {
    const int64_t numel = bounded_product({panels_of(product_.columns), rows, elements});
    return setup.check_elements("its panels", *panels_, numel);
  }
  Status check_scales(const Setup& setup) {
    const int32_t bits = product_.type == PanelType::Int8 ? 8 : 4;
    RL_TRY(check_panels(setup, panel_quads(product_.depth, bits), kQuadBytes));
    const int64_t columns = panels_of(product_.columns) * kPanel;
    const bool fits = scales_ != nullptr && is_dense(*scales_) &&
                      (columns == 0 ? scales_->numel == 0 : scales_->numel % columns == 0);
    const int64_t groups = fits && columns > 0 ? scales_->numel / columns : 1;
    const int64_t depth = product_.depth;
    const bool divides = groups == 1 || (groups > 0 && depth % groups == 0 && depth > 0 &&
                                         depth / groups % kOct == 0);
    if (!fits || !divides) {
      return setup.refuse(
          "its %lld scales are neither one for each of %lld columns nor one for each group of a "
          "multiple of 8 terms",
          static_cast<long long>(scales_ == nullptr ? 0 : scales_->numel),
          static_cast<long long>(columns));
    }
    product_.scales.groups = groups;
    return {};
  }

  const View* a_ = nullptr;
  const View* panels_ = nullptr;
  const View* scales_ = nullptr;  // of integers
  const View* out_ = nullptr;
  Product product_;
  EpiloguePlan epilogue_;
};

// [batch, rows, depth] by [batch, depth, columns]: the right matrices are packed, one by one.
class BatchProduct final : public Operator {
 public:
  Status prepare(const BatchProductParameters&, Setup& setup) {
    RL_TRY(setup.check_floats(2, 2));
    a_ = setup.input(0);
    b_ = setup.input(1);
    out_ = setup.output(0);
    const bool fits = a_->rank == 3 && b_->rank == 3 && out_->rank == 3 &&
                      a_->sizes[0] == out_->sizes[0] && b_->sizes[0] == out_->sizes[0] &&
                      a_->sizes[1] == out_->sizes[1] && a_->sizes[2] == b_->sizes[1] &&
                      b_->sizes[2] == out_->sizes[2];
    if (!fits) {
      return setup.refuse(
          "its matrices have sizes %s and %s and its result %s, but must be [batch, rows, depth], "
          "[batch, depth, columns] and [batch, rows, columns]",
          text_of(*a_).text(), text_of(*b_).text(), text_of(*out_).text());
    }
    const bool rows = (a_->strides[2] == 1 || a_->sizes[2] <= 1) &&
                      (out_->strides[2] == 1 || out_->sizes[2] <= 1);
    if (!rows) {
      return setup.refuse(
          "its input 0 has strides %s and its result %s, but rows must have no gaps",
          text_of(a_->strides, 3).text(), text_of(out_->strides, 3).text());
    }
    product_.rows = out_->sizes[1];
    product_.depth = a_->sizes[2];
    product_.columns = out_->sizes[2];
    product_.a_stride = a_->strides[1];
    product_.c_stride = out_->strides[1];
    panels_ = panel_floats(product_.depth, product_.columns);
    panels_ = (panels_ + kPanel - 1) / kPanel * kPanel;
    setup.want_scratch(panels_ * sizeof(float) + product_scratch(product_, setup.threads));
    return {};
  }

  Status run(const Frame& frame) const override {
    if (out_->numel == 0) return {};
    float* panels = static_cast<float*>(frame.scratch);
    const size_t used = panels_ * sizeof(float);
    for (int64_t i = 0; i < out_->sizes[0]; ++i) {
      Product product = product_;
      product.a = frame.at(a_) + i * a_->strides[0];
      product.panels = panels;
      product.c = frame.at(out_) + i * out_->strides[0];
      pack_panels(frame.at(b_) + i * b_->strides[0], b_->strides[1], b_->strides[2], product.depth,
                  product.columns, panels, frame.workers);
      multiply(product, panels + panels_, frame.scratch_size - used, frame.workers);
    }
    return {};
  }

 private:
  const View* a_ = nullptr;
  const View* b_ = nullptr;
  const View* out_ = nullptr;
  Product product_;
  size_t panels_ = 0;  // floats
};

}  // namespace

Result<Operator*> make_operator(const ProductParameters& parameters, Setup& setup) {
  return setup.make<PackedProduct>(parameters);
}

Result<Operator*> make_operator(const BatchProductParameters& parameters, Setup& setup) {
  return setup.make<BatchProduct>(parameters);
}

}  // namespace rushlight::engine
