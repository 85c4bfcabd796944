// Creates a Method from a checked plan: values, instructions with their kernels, delegates.
#pragma once

#include "rushlight/method/method.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {

class MethodLoader {
 public:
  MethodLoader(Method& method, const MethodMemory& memory)
      : method_(method),
        parts_(method.parts_),
        plan_(method.meta_.plan()),
        memory_(memory),
        message_(method.message_) {}

  // On failure `method` keeps what was created so far, including the delegates that are ready.
  Status load();

 private:
  friend struct DelegateCode;

  Status take_structures();
  Status prepare_arenas();
  Status make_values();
  Status make_tensor(size_t i, fb::Tensor from, Tensor* to);
  Status make_unbounded(size_t i, Tensor* to);
  Status place_data(fb::Tensor from, Tensor* to);
  void make_lists();
  void make_interface();
  void make_instructions();
  void make_instruction(fb::Instruction from, uint32_t chain_start, Instruction* to);
  void count_delegate_inputs();
  void mark_given(const EValue& value);
  bool is_given(const EValue& value) const;
  void resolve_kernels();
  Status check_missing();
  Status check_kernel_arguments();
  bool is_view(const Instruction& instruction) const;
  Status keep_view_targets();
  Status init_delegates();
  Status init_delegate(size_t i, size_t* next_spec);
  bool calls_foreign_code() const;
  Status take_shadow();
  EValue** point_args(fb::Vector<int32_t> args);
  EValue** point_arg(int32_t index);

  Method& method_;
  Structures& parts_;
  fb::ExecutionPlan plan_;
  const MethodMemory& memory_;
  Message& message_;
  size_t next_tensor_ = 0;
  size_t next_dim_ = 0;
  size_t next_item_ = 0;
  size_t next_double_ = 0;
  size_t next_arg_ = 0;
  size_t next_constant_ = 0;
};

}  // namespace rushlight
