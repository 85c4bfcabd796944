#include "rushlight/backends/demo/demo_backend.h"

#include <cmath>
#include <cstring>

#include "rushlight/backends/demo/demo_program.h"

namespace rushlight {
namespace {

using demo::Instruction;
using demo::kMaxDims;
using demo::Op;
using demo::Program;
using demo::Value;

const char* name_of(Op op) {
  constexpr const char* kNames[] = {"sin", "add", "mul", "mm", "linear"};
  return kNames[static_cast<size_t>(op)];
}

// One instruction at work: its operands, and where its result goes.
struct Call {
  const Instruction& instruction;
  const Value* x;
  const Value* y;     // nullptr if there is none
  const Value* bias;  // likewise
  Value& result;
};

// Gives the result its sizes; false if they are more than it has room for.
bool shape(const Call& call, const int32_t* sizes, uint8_t rank) {
  call.result.rank = rank;
  std::memcpy(call.result.sizes, sizes, rank * sizeof(int32_t));
  call.result.data = call.instruction.memory;
  return count_elements({call.result.sizes, rank}, &call.result.numel) &&
         call.result.numel <= call.instruction.capacity;
}

bool elementwise(const Call& call) {
  const Value& x = *call.x;
  const Value& y = call.y != nullptr ? *call.y : x;
  const bool same =
      x.rank == y.rank && std::memcmp(x.sizes, y.sizes, x.rank * sizeof(int32_t)) == 0;
  if (!same && x.numel != 1 && y.numel != 1) return false;
  // One element takes the other's sizes, and lends its rank: [1, 1] and [3] make [1, 3].
  const Value& larger = x.numel == 1 ? y : x;
  const uint8_t rank = x.rank > y.rank ? x.rank : y.rank;
  const uint8_t ones = static_cast<uint8_t>(rank - larger.rank);
  int32_t sizes[kMaxDims] = {1, 1, 1, 1};
  std::memcpy(sizes + ones, larger.sizes, larger.rank * sizeof(int32_t));
  if (!shape(call, sizes, rank)) return false;
  float* out = call.instruction.memory;
  for (int64_t i = 0; i < call.result.numel; ++i) {
    const float a = x.data[x.numel == 1 ? 0 : i], b = y.data[y.numel == 1 ? 0 : i];
    switch (call.instruction.op) {
      case Op::Sin:
        out[i] = std::sin(a);
        break;
      case Op::Add:
        out[i] = a + b;
        break;
      default:
        out[i] = a * b;
        break;
    }
  }
  return true;
}

// Products of rows: mm takes columns of y, linear its rows.
bool product(const Call& call) {
  const Value &x = *call.x, &y = *call.y;
  const bool is_mm = call.instruction.op == Op::Mm;
  if (x.rank < 1 || y.rank != 2 || (is_mm && x.rank != 2)) return false;
  const int32_t inner = x.sizes[x.rank - 1];
  const int32_t columns = is_mm ? y.sizes[1] : y.sizes[0];
  if (inner != (is_mm ? y.sizes[0] : y.sizes[1])) return false;
  if (call.bias != nullptr && call.bias->numel != columns) return false;
  int32_t sizes[kMaxDims];
  std::memcpy(sizes, x.sizes, x.rank * sizeof(int32_t));
  sizes[x.rank - 1] = columns;
  if (!shape(call, sizes, x.rank)) return false;
  const int64_t rows = columns == 0 ? 0 : call.result.numel / columns;
  float* out = call.instruction.memory;
  for (int64_t r = 0; r < rows; ++r) {
    for (int32_t c = 0; c < columns; ++c) {
      float sum = call.bias != nullptr ? call.bias->data[c] : 0.0f;
      for (int64_t k = 0; k < inner; ++k) {
        sum += x.data[r * inner + k] * y.data[is_mm ? k * columns + c : int64_t{c} * inner + k];
      }
      out[r * columns + c] = sum;
    }
  }
  return true;
}

bool run(const Call& call) {
  const Op op = call.instruction.op;
  return op == Op::Mm || op == Op::Linear ? product(call) : elementwise(call);
}

// Fills in the value of an input; false if the backend does not take such an argument.
bool read(const EValue& arg, Value* value) {
  if (!arg.is_tensor()) return false;
  const Tensor& tensor = arg.tensor();
  if (tensor.dtype != DType::Float32 || tensor.rank > kMaxDims || !tensor.is_contiguous()) {
    return false;
  }
  if (tensor.data == nullptr && tensor.numel > 0) return false;
  value->data = tensor.as<float>();
  value->rank = tensor.rank;
  value->numel = tensor.numel;
  for (size_t d = 0; d < tensor.rank; ++d) value->sizes[d] = tensor.sizes[d];
  return true;
}

// What the option "fail_init_at" asks for.
Status fail_init_at(BackendInit& init, const Program& program) {
  const BackendOption* option = init.options.find("fail_init_at");
  if (option == nullptr || option->kind != BackendOption::Kind::Int || option->i < 0 ||
      static_cast<uint64_t>(option->i) >= program.n_instructions) {
    return {};
  }
  init.place->set(option->i);
  return init.message->fail(Code::DelegateInvalidCompatibility,
                            "%s: it was told to fail here (option fail_init_at)",
                            name_of(program.instructions[option->i].op));
}

}  // namespace

Result<void*> DemoBackend::init(BackendInit& init) {
  Program* program = init.allocator->allocate_array<Program>(1);
  if (program == nullptr) {
    return init.message->fail(Code::DelegateMemoryAllocationFailed,
                              "the method's memory has no room for the delegate");
  }
  *program = Program();
  RL_TRY(demo::parse(init, program));
  const BackendOption* fail_at = init.options.find("fail_at");
  if (fail_at != nullptr && fail_at->kind == BackendOption::Kind::Int) {
    program->fail_at = fail_at->i;
  }
  RL_TRY(fail_init_at(init, *program));
  init.keeps_payload = false;  // all of it was parsed
  return static_cast<void*>(program);
}

Status DemoBackend::execute(const BackendRun& context, void* handle, EValue* const* args,
                            size_t n_args) {
  Program& program = *static_cast<Program*>(handle);
  if (n_args != program.n_inputs + program.n_outputs) {
    return context.message->fail(Code::DelegateInvalidHandle,
                                 "the delegate has %zu arguments, its payload %zu", n_args,
                                 program.n_inputs + program.n_outputs);
  }
  for (size_t i = 0; i < program.n_inputs; ++i) {
    if (!read(*args[i], &program.values[i])) {
      return context.message->fail(
          Code::InvalidArgument,
          "input %zu is not a dense row-major float32 tensor of up to %zu dimensions", i, kMaxDims);
    }
  }
  for (size_t i = 0; i < program.n_instructions; ++i) {
    const Instruction& at = program.instructions[i];
    Value* const values = program.values;
    const Call call = {at, &values[at.operands[0]],
                       at.n_operands > 1 ? &values[at.operands[1]] : nullptr,
                       at.n_operands > 2 ? &values[at.operands[2]] : nullptr, values[at.result]};
    if (static_cast<int64_t>(i) == program.fail_at || !run(call)) {
      context.place->set(static_cast<int64_t>(i));
      const bool asked = static_cast<int64_t>(i) == program.fail_at;
      return context.message->fail(
          Code::InvalidArgument, "%s: %s", name_of(at.op),
          asked ? "it was told to fail here (option fail_at)" : "the sizes of its operands differ");
    }
  }
  for (size_t i = 0; i < program.n_outputs; ++i) {
    const Value& value = program.values[program.outputs[i]];
    EValue& arg = *args[program.n_inputs + i];
    if (!arg.is_tensor() || arg.tensor().dtype != DType::Float32) {
      return context.message->fail(Code::InvalidArgument, "output %zu is not a float32 tensor", i);
    }
    RL_TRY(context.resize(arg.tensor(), {value.sizes, value.rank}));
    if (!arg.tensor().is_contiguous()) {
      return context.message->fail(Code::InvalidArgument, "output %zu is not row-major", i);
    }
    if (value.numel > 0) {
      // memmove: an input that is passed on may be the output's own memory.
      std::memmove(arg.tensor().data, value.data, static_cast<size_t>(value.numel) * sizeof(float));
    }
  }
  return {};
}

}  // namespace rushlight
