// The runtime of the backend in export.py: a list of steps, which are applied to each element.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/log.h>

#include <cmath>
#include <cstdlib>
#include <new>
#include <sstream>
#include <string>
#include <vector>

using executorch::aten::ScalarType;
using executorch::aten::Tensor;
using executorch::runtime::ArrayRef;
using executorch::runtime::Backend;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::BackendInterface;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace {

struct Step {
  enum Kind { Scale, Sin, Exp, Neg } kind;
  float factor;
};

struct Table {
  std::vector<Step> steps;
};

float apply(const Table& table, float value) {
  for (const Step& step : table.steps) {
    switch (step.kind) {
      case Step::Scale:
        value *= step.factor;
        break;
      case Step::Sin:
        value = std::sin(value);
        break;
      case Step::Exp:
        value = std::exp(value);
        break;
      case Step::Neg:
        value = -value;
        break;
    }
  }
  return value;
}

bool read_step(const std::string& line, Step* step) {
  step->factor = 1;
  if (line.rfind("scale ", 0) == 0) {
    *step = {Step::Scale, std::strtof(line.c_str() + 6, nullptr)};
  } else if (line == "sin") {
    step->kind = Step::Sin;
  } else if (line == "exp") {
    step->kind = Step::Exp;
  } else if (line == "neg") {
    step->kind = Step::Neg;
  } else {
    return false;
  }
  return true;
}

class TableBackend final : public BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext& context, FreeableBuffer* processed,
                               ArrayRef<CompileSpec> /*compile_specs*/) const override {
    auto* table = context.get_runtime_allocator()->allocateInstance<Table>();
    if (table == nullptr) return Error::MemoryAllocationFailed;
    new (table) Table();
    std::stringstream text(
        std::string(static_cast<const char*>(processed->data()), processed->size()));
    for (std::string line; std::getline(text, line);) {
      Step step{};
      if (!read_step(line, &step)) {
        ET_LOG(Error, "TableBackend has no step '%s'", line.c_str());
        table->~Table();
        return Error::InvalidProgram;
      }
      table->steps.push_back(step);
    }
    processed->Free();
    return static_cast<DelegateHandle*>(table);
  }

  Error execute(BackendExecutionContext& /*context*/, DelegateHandle* handle,
                Span<EValue*> args) const override {
    const Tensor& x = args[0]->toTensor();
    Tensor& out = args[1]->toTensor();
    ET_CHECK_OR_RETURN_ERROR(x.scalar_type() == ScalarType::Float, InvalidArgument,
                             "TableBackend takes float32 alone");
    const Error error = executorch::runtime::resize_tensor(out, x.sizes());
    if (error != Error::Ok) return error;
    for (ssize_t i = 0; i < x.numel(); ++i) {
      out.mutable_data_ptr<float>()[i] =
          apply(*static_cast<Table*>(handle), x.const_data_ptr<float>()[i]);
    }
    return Error::Ok;
  }

  void destroy(DelegateHandle* handle) const override { static_cast<Table*>(handle)->~Table(); }
};

TableBackend backend;
const auto registered = executorch::runtime::register_backend(Backend{"TableBackend", &backend});

}  // namespace
