// Inputs and outputs of a method. Every setter checks everything before it changes anything.
#include <cstring>

#include "rushlight/core/shape_text.h"
#include "rushlight/method/method.h"
#include "rushlight/method/running_method.h"
#include "rushlight/program/plan_check.h"

namespace rushlight {
namespace {

// True if a Double input counts as equal to the traced value.
bool close(double number, double traced) {
  if (number == traced) return true;
  if (number != number || traced != traced) return number != number && traced != traced;
  const double limit = 1.7976931348623157e308;  // infinities are only equal to themselves
  if (number > limit || number < -limit || traced > limit || traced < -limit) return false;
  const double difference = number > traced ? number - traced : traced - number;
  const double size = traced < 0 ? -traced : traced;
  return difference <= 1e-4 + 1e-5 * size;
}

constexpr char kTracedOnly[] =
    "the program was exported with this value and holds no other; for a value that changes, export "
    "with a 0-d tensor";

}  // namespace

// `tensor` is nullptr if none was given.
Status Method::refused(size_t i, Status status, const Tensor* tensor) {
  message_.prepend("input %zu: ", i);
  named(status);
  if (report() != nullptr) report_input(i, tensor, status);
  return status;
}

Status Method::check_input(size_t i, Tag tag) {
  if (state_ != State::Ready) {
    return message_.fail(Code::InvalidState, "the method is not loaded");
  }
  RL_TRY(check_files());
  if (stepping_) {
    return named(message_.fail(Code::InvalidState,
                               "inputs cannot change between steps; finish and reset() first"));
  }
  if (i >= n_inputs_) {
    return refused(i, message_.fail(Code::InvalidArgument, "the method has %zu inputs", n_inputs_));
  }
  const Tag wanted = parts_.inputs[i].tag;
  if (tag == wanted) return {};
  const bool is_list = wanted >= Tag::BoolList;
  return refused(
      i, message_.fail(Code::InvalidArgument, "got %s%s, the method takes %s%s", tag_article(tag),
                       tag_name(tag), is_list ? "a " : tag_article(wanted),
                       is_list ? "list, which cannot be given" : tag_name(wanted)));
}

void Method::mark_set(size_t i) {
  if (parts_.inputs[i].is_set) return;
  parts_.inputs[i].is_set = true;
  --n_unset_inputs_;
}

// What never changes is read from the tensor itself: its dtype, its rank and sizes that are fixed.
Status Method::check_tensor(size_t i, const Tensor& tensor) {
  const Tensor& own = *parts_.inputs[i].tensor;
  if (tensor.dtype != own.dtype) {
    return message_.fail(Code::InvalidArgument, "got %s, the method takes %s",
                         dtype_name(tensor.dtype), dtype_name(own.dtype));
  }
  const bool is_static = own.dynamism == Dynamism::Static;
  int32_t bounds[kMaxRank];
  if (!is_static) meta_.copy_input_bounds(i, bounds);
  const int32_t* allowed = is_static ? own.sizes : bounds;
  bool fits = tensor.rank == own.rank;
  for (size_t k = 0; fits && k < own.rank; ++k) {
    const int32_t size = tensor.sizes[k];
    fits = is_static ? size == allowed[k] : size >= 0 && size <= allowed[k];
  }
  if (!fits) {
    return message_.fail(Code::NotSupported, "got sizes %s, %s %s",
                         ShapeText(tensor.shape()).text(),
                         is_static ? "the method takes" : "allowed are at most",
                         ShapeText({allowed, own.rank}).text());
  }
  if (tensor.numel == 0) return {};
  if (tensor.data == nullptr) {
    return message_.fail(Code::InvalidArgument, "its data is nullptr");
  }
  if (own.planned) return {};
  if (!is_aligned(tensor.data, own.dtype)) {
    return message_.fail(Code::InvalidArgument,
                         "its data is read where it lies and must be aligned for %s",
                         dtype_name(own.dtype));
  }
  int32_t strides[kMaxRank];
  bool same_order = strides_of(tensor.shape(), own.dim_order, strides);
  for (size_t k = 0; same_order && k < own.rank; ++k) {
    same_order = tensor.sizes[k] <= 1 || strides[k] == tensor.strides[k];
  }
  if (same_order) return {};
  return message_.fail(Code::InvalidArgument,
                       "its data is read where it lies and must have the dim order of the program");
}

Status Method::set_input(size_t i, const Tensor& tensor) {
  if (report() == nullptr) return take_input(i, tensor);
  const RunningMethod running(*this);
  running_input_ = static_cast<uint32_t>(i);
  const Status status = take_input(i, tensor);
  running_input_ = UINT32_MAX;
  return status;
}

Status Method::take_input(size_t i, const Tensor& tensor) {
  RL_TRY(check_input(i, Tag::Tensor));
  const Status status = check_tensor(i, tensor);
  if (!status.ok()) return refused(i, status, &tensor);
  InputSlot& slot = parts_.inputs[i];
  Tensor& own = *slot.tensor;
  slot.value->tag = Tag::Tensor;
  slot.value->t = slot.tensor;
  resized_ = resized_ || own.numel != tensor.numel;
  if (own.rank > 0) std::memcpy(own.sizes, tensor.sizes, own.rank * sizeof(int32_t));
  strides_of(own.shape(), own.dim_order, own.strides);
  count_elements(own.shape(), &own.numel);
  if (own.planned) {
    copy_elements(tensor, own);
  } else {
    own.data = tensor.data;
    own.capacity = own.numel;  // its memory has no room for more
    own.read_only = tensor.read_only;
  }
  mark_set(i);
  return {};
}

Status Method::set_input_int(size_t i, int64_t value) {
  RL_TRY(check_input(i, Tag::Int));
  const int64_t traced = meta_.input(i).i;
  if (value != traced && !options_.any_scalar_inputs) {
    return refused(i, message_.fail(Code::InvalidArgument, "got %lld, allowed is %lld: %s",
                                    static_cast<long long>(value), static_cast<long long>(traced),
                                    kTracedOnly));
  }
  parts_.inputs[i].value->set_int(value);
  mark_set(i);
  return {};
}

Status Method::set_input_double(size_t i, double value) {
  RL_TRY(check_input(i, Tag::Double));
  const double traced = meta_.input(i).d;
  if (!close(value, traced) && !options_.any_scalar_inputs) {
    return refused(i, message_.fail(Code::InvalidArgument, "got %g, allowed is %g: %s", value,
                                    traced, kTracedOnly));
  }
  parts_.inputs[i].value->set_double(options_.any_scalar_inputs ? value : traced);
  mark_set(i);
  return {};
}

Status Method::set_input_bool(size_t i, bool value) {
  RL_TRY(check_input(i, Tag::Bool));
  const bool traced = meta_.input(i).i != 0;
  if (value != traced && !options_.any_scalar_inputs) {
    return refused(i,
                   message_.fail(Code::InvalidArgument, "got %s, allowed is %s: %s",
                                 value ? "true" : "false", traced ? "true" : "false", kTracedOnly));
  }
  parts_.inputs[i].value->set_bool(value);
  mark_set(i);
  return {};
}

Status Method::set_input_string(size_t i, StringView value) {
  RL_TRY(check_input(i, Tag::String));
  const StringView traced = meta_.input(i).text;
  if (value != traced) {
    return refused(
        i, message_.fail(Code::InvalidArgument, "got '%.*s', allowed is '%.*s': %s", value.len(),
                         value.data(), traced.len(), traced.data(), kTracedOnly));
  }
  mark_set(i);
  return {};
}

Status Method::set_input_none(size_t i) {
  RL_TRY(check_input(i, Tag::None));
  mark_set(i);
  return {};
}

Status Method::set_output_data(size_t i, void* data, size_t bytes) {
  if (state_ != State::Ready) {
    return message_.fail(Code::InvalidState, "the method is not loaded");
  }
  if (i >= n_outputs_) {
    return named(message_.fail(Code::InvalidArgument, "output %zu: the method has %zu outputs", i,
                               n_outputs_));
  }
  const OutputSlot& slot = parts_.outputs[i];
  if (!slot.needs_data || stepping_) {
    return named(message_.fail(Code::InvalidState, "output %zu: %s", i,
                               stepping_ ? "cannot change between steps; finish and reset() first"
                                         : "has memory of its own, or is not a tensor"));
  }
  const TensorMeta meta = meta_.output_tensor(i);
  const size_t room = bytes / element_size(meta.dtype);
  const bool is_fixed = meta.dynamism == Dynamism::Static || meta.rank == 0;
  const bool too_small = is_fixed && bytes < meta.nbytes;
  if (too_small || data == nullptr || !is_aligned(data, meta.dtype)) {
    return named(message_.fail(Code::InvalidArgument,
                               "output %zu: got %zu bytes, it takes %zu, aligned for %s", i, bytes,
                               meta.nbytes, dtype_name(meta.dtype)));
  }
  Tensor& own = *slot.tensor;
  const size_t bound = meta.nbytes / element_size(meta.dtype);
  own.data = data;
  own.capacity = static_cast<int64_t>(room < bound ? room : bound);
  has_new_output_data_ = true;
  // Its initial sizes are its bounds. If it has less memory than that, it must not keep these sizes
  // until a kernel that writes it sets others.
  if (own.numel > own.capacity) own.shrink_to_nothing();
  for (size_t k = 0; k < n_views_; ++k) {
    ViewSlot& view = parts_.views[k];
    if (view.target->t != &own) continue;
    view.data = own.data;
    view.capacity = own.capacity;
  }
  return {};
}

}  // namespace rushlight
