// The runtime of the backend in export.py: a list of functions, which are applied to each element.
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

struct Function {
  enum Kind { Scale, Sin, Exp, Neg } kind;
  float factor;
};

struct Table {
  std::vector<Function> functions;
};

float apply(const Table& table, float value) {
  for (const Function& function : table.functions) {
    switch (function.kind) {
      case Function::Scale:
        value *= function.factor;
        break;
      case Function::Sin:
        value = std::sin(value);
        break;
      case Function::Exp:
        value = std::exp(value);
        break;
      case Function::Neg:
        value = -value;
        break;
    }
  }
  return value;
}

bool read_function(const std::string& line, Function* function) {
  function->factor = 1;
  if (line.rfind("scale ", 0) == 0) {
    *function = {Function::Scale, std::strtof(line.c_str() + 6, nullptr)};
  } else if (line == "sin") {
    function->kind = Function::Sin;
  } else if (line == "exp") {
    function->kind = Function::Exp;
  } else if (line == "neg") {
    function->kind = Function::Neg;
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
      Function function{};
      if (!read_function(line, &function)) {
        ET_LOG(Error, "TableBackend has no function '%s'", line.c_str());
        table->~Table();
        return Error::InvalidProgram;
      }
      table->functions.push_back(function);
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
