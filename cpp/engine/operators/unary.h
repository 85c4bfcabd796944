// What operators of one input and one result have in common: a run is a kernel's job with their
// addresses.
#pragma once

#include "rushlight/engine/operators/operator.h"

namespace rushlight::engine {

// `Job` is what the kernel takes, with pointers `in` and `out`.
template <typename Job, void (*kKernel)(const Job&, Workers*)>
class UnaryOperator : public Operator {
 public:
  Status run(const Frame& frame) const final {
    Job job = job_;
    frame.place(in_, &job.in);
    frame.place(out_, &job.out);
    if (out_->numel > 0) kKernel(job, frame.workers);
    return {};
  }

 protected:
  ~UnaryOperator() = default;

  const View* in_ = nullptr;
  const View* out_ = nullptr;
  Job job_;
};

}  // namespace rushlight::engine
