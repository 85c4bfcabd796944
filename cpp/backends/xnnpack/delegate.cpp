#include "rushlight/backends/xnnpack/delegate.h"

#include <algorithm>
#include <new>

#include "rushlight/backends/xnnpack/payload/reader.h"
#include "rushlight/backends/xnnpack/payload/shapes.h"
#include "rushlight/backends/xnnpack/translate/fold_limits.h"
#include "rushlight/backends/xnnpack/translate/translate.h"

namespace rushlight::xnnpack {
namespace {

// The sizes of a tensor from the outermost dimension in memory to the innermost, as XNNPACK expects
// them.
Shape memory_shape(const Tensor& tensor) {
  Shape shape;
  shape.rank = tensor.rank;
  for (size_t d = 0; d < tensor.rank; ++d) shape.sizes[d] = tensor.sizes[tensor.dim_order[d]];
  return shape;
}

Status no_memory(Message& message) {
  return message.fail(Code::DelegateMemoryAllocationFailed,
                      "the method's memory has no room for the delegate");
}

}  // namespace

Status Delegate::load(BackendInit& init) {
  RL_TRY(read_graph(init, &graph_));
  fold_limits(&graph_);
  RL_TRY(number_arguments(init.allocator, init.message));
  RL_TRY(weights_.prepare(graph_, init, &workspace_->cache()));
  workers_ = init.workers;
  BackendInit inner = init;
  inner.allocator = &memory_;
  memory_.grow_from(init.allocator, workspace_);
  const Status status = plan(inner);
  memory_.stop_growing();
  return status;
}

Status Delegate::number_arguments(Allocator* allocator, Message* message) {
  const size_t n = graph_.values.size();
  Shape* shapes = allocator->allocate_array<Shape>(n);
  uint32_t* numbers = allocator->allocate_array<uint32_t>(2 * n);
  args_ = allocator->allocate_array<EValue*>(n);
  if ((shapes == nullptr || numbers == nullptr || args_ == nullptr) && n > 0) {
    return no_memory(*message);
  }
  shapes_ = {shapes, n};
  for (size_t i = 0; i < n; ++i) new (shapes + i) Shape(graph_.values[i].shape);
  ordinals_ = {numbers, n};
  size_t count = 0;
  for (const Role role : {Role::Input, Role::Output}) {
    const size_t first = count;
    for (uint32_t i = 0; i < n; ++i) {
      if (graph_.values[i].role == role) numbers[n + count++] = i;
    }
    std::sort(numbers + n + first, numbers + n + count, [&](uint32_t a, uint32_t b) {
      return graph_.values[a].argument < graph_.values[b].argument;
    });
    for (size_t k = first; k < count; ++k) {
      ordinals_[numbers[n + k]] = static_cast<uint32_t>(k - first);
    }
    if (role == Role::Input) n_inputs_ = count;
  }
  arguments_ = {numbers + n, count};
  return {};
}

Status Delegate::plan(BackendInit& init) {
  is_planned_ = false;
  memory_.clear();
  size_t failed = graph_.nodes.size();
  Status status = infer_shapes(graph_, shapes_, *init.message, &failed);
  engine::GraphParts parts;
  if (status.ok()) {
    Translator translator(graph_, shapes_, ordinals_, weights_, init.allocator, init.message);
    status = translator.run(n_inputs_, arguments_.size() - n_inputs_, &parts, &failed);
  }
  if (!status.ok()) {
    if (failed < graph_.nodes.size()) {
      init.place->set(static_cast<int64_t>(failed));
      init.message->prepend("node %zu (%s): ", failed, name_of(graph_.nodes[failed].kind));
    }
    return status;
  }
  engine_ = engine::Graph();
  RL_TRY(engine_.load(parts, init));
  is_planned_ = true;
  return {};
}

Status Delegate::read_sizes(EValue* const* args, Message& message, bool* changed) {
  for (size_t k = 0; k < n_inputs_; ++k) {
    const uint32_t value = arguments_[k];
    const uint32_t argument = graph_.values[value].argument;
    const EValue& arg = *args[argument];
    const DType dtype = dtype_of(graph_.values[value].datatype);
    if (!arg.is_tensor() || arg.tensor().dtype != dtype) {
      return message.fail(Code::InvalidArgument, "argument %u is not a tensor of %s", argument,
                          dtype_name(dtype));
    }
    const Tensor& tensor = arg.tensor();
    if (tensor.rank > kMaxRank) {
      return message.fail(Code::InvalidArgument, "argument %u has more than 6 dimensions",
                          argument);
    }
    Shape shape = memory_shape(tensor);
    if (shape.rank == 0) shape = graph_.values[value].shape;  // a scalar is passed as [1]
    if (same_shape(shape, shapes_[value])) continue;
    shapes_[value] = shape;
    *changed = true;
  }
  return {};
}

Status Delegate::resize_outputs(const BackendRun& run, EValue* const* args) {
  for (size_t k = n_inputs_; k < arguments_.size(); ++k) {
    const uint32_t value = arguments_[k];
    const uint32_t argument = graph_.values[value].argument;
    EValue& arg = *args[argument];
    if (!arg.is_tensor()) {
      return run.message->fail(Code::InvalidArgument, "argument %u is not a tensor", argument);
    }
    Tensor& tensor = arg.tensor();
    const Shape& shape = shapes_[value];
    if (tensor.rank == 0 && numel_of(shape) == 1) continue;
    if (tensor.rank != shape.rank) {
      return run.message->fail(Code::InvalidArgument,
                               "argument %u has %u dimensions, its result %zu", argument,
                               unsigned{tensor.rank}, shape.rank);
    }
    int32_t sizes[kMaxRank] = {};
    for (size_t d = 0; d < shape.rank; ++d) {
      if (shape.sizes[d] > INT32_MAX) {
        return run.message->fail(Code::InvalidArgument, "result %u is too large", argument);
      }
      sizes[tensor.dim_order[d]] = static_cast<int32_t>(shape.sizes[d]);
    }
    RL_TRY(run.resize(tensor, Span<const int32_t>(sizes, shape.rank)));
  }
  return {};
}

Status Delegate::run(const BackendRun& run, EValue* const* args, size_t n_args) {
  if (n_args < graph_.n_arguments) {
    return run.message->fail(Code::DelegateInvalidHandle,
                             "the delegate has %zu arguments, its payload %zu", n_args,
                             graph_.n_arguments);
  }
  bool changed = !is_planned_;
  RL_TRY(read_sizes(args, *run.message, &changed));
  if (changed) {
    BackendInit init = {};
    init.allocator = &memory_;
    init.message = run.message;
    init.place = run.place;
    init.workers = workers_;
    const Status status = plan(init);
    if (!status.ok()) {
      run.message->prepend("for the sizes of this call's inputs, ");
      return Code::InvalidArgument;
    }
  }
  RL_TRY(resize_outputs(run, args));
  for (size_t k = 0; k < arguments_.size(); ++k) {
    args_[k] = args[graph_.values[arguments_[k]].argument];
  }
  return engine_.run(run, args_, arguments_.size());
}

}  // namespace rushlight::xnnpack
