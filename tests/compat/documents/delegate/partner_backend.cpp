// The runtime half of a partner's backend: init() reads the payload once, execute() computes and
// tells how long each instruction took, by the identifiers that preprocess gave them.
#include <executorch/runtime/backend/interface.h>
#include <executorch/runtime/core/event_tracer_hooks_delegate.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using executorch::aten::Tensor;
using executorch::runtime::ArrayRef;
using executorch::runtime::Backend;
using executorch::runtime::BackendExecutionContext;
using executorch::runtime::BackendInitContext;
using executorch::runtime::CompileSpec;
using executorch::runtime::DelegateHandle;
using executorch::runtime::Error;
using executorch::runtime::EValue;
using executorch::runtime::EventTracerEntry;
using executorch::runtime::FreeableBuffer;
using executorch::runtime::Result;
using executorch::runtime::Span;

namespace {

constexpr int32_t kVersion = 1, kConvolution = 1, kLinearRelu = 2;
constexpr int kUnset = -1;

struct Scale {
  float scale;
  int32_t zero;
};

struct Instruction {
  int32_t kind = 0;
  int32_t outputs = 0, inputs = 0, size = 1;
  Scale read{}, stored{}, written{};
  std::vector<float> weight, bias;
};

// Reads what follows, if there is so much.
class Reader {
 public:
  explicit Reader(const FreeableBuffer& buffer)
      : at_(static_cast<const char*>(buffer.data())), left_(buffer.size()) {}
  bool read(void* into, size_t size) {
    if (size > left_) return false;
    std::memcpy(into, at_, size);
    at_ += size;
    left_ -= size;
    return true;
  }
  bool read(std::vector<float>& into, int64_t count) {
    if (count < 0 || static_cast<size_t>(count) > left_ / sizeof(float)) return false;
    into.resize(static_cast<size_t>(count));
    return read(into.data(), into.size() * sizeof(float));
  }

 private:
  const char* at_;
  size_t left_;
};

bool read_instruction(Reader& reader, Instruction& made) {
  int32_t version = 0;
  if (!reader.read(&version, 4) || version != kVersion || !reader.read(&made.kind, 4) ||
      !reader.read(&made.outputs, 4) || !reader.read(&made.inputs, 4)) {
    return false;
  }
  if (made.kind == kConvolution) {
    if (!reader.read(&made.size, 4)) return false;
  } else if (made.kind != kLinearRelu || !reader.read(&made.read, 8) ||
             !reader.read(&made.stored, 8) || !reader.read(&made.written, 8)) {
    return false;
  }
  return reader.read(made.weight, int64_t{made.outputs} * made.inputs * made.size * made.size) &&
         reader.read(made.bias, made.outputs);
}

float rounded(float x, const Scale& by) {
  const float whole = std::nearbyint(x / by.scale) + static_cast<float>(by.zero);
  return (std::clamp(whole, -128.f, 127.f) - static_cast<float>(by.zero)) * by.scale;
}

void convolve(const Instruction& made, const Tensor& x, Tensor& y) {
  const auto height = x.size(2), width = x.size(3), rows = y.size(2), columns = y.size(3);
  const float* in = x.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  for (int32_t o = 0; o < made.outputs; ++o) {
    for (ssize_t r = 0; r < rows; ++r) {
      for (ssize_t c = 0; c < columns; ++c) {
        float sum = made.bias[o];
        for (int32_t i = 0; i < made.inputs; ++i) {
          for (int32_t k = 0; k < made.size * made.size; ++k) {
            const ssize_t row = r + k / made.size, column = c + k % made.size;
            sum += in[(i * height + row) * width + column] *
                   made.weight[(o * made.inputs + i) * made.size * made.size + k];
          }
        }
        out[(o * rows + r) * columns + c] = sum;
      }
    }
  }
}

void linear_relu(const Instruction& made, const Tensor& x, Tensor& y) {
  const ssize_t rows = x.numel() / made.inputs;
  for (ssize_t r = 0; r < rows; ++r) {
    for (int32_t o = 0; o < made.outputs; ++o) {
      float sum = made.bias[o];
      for (int32_t i = 0; i < made.inputs; ++i) {
        sum += rounded(x.const_data_ptr<float>()[r * made.inputs + i], made.read) *
               made.weight[o * made.inputs + i] * made.stored.scale;
      }
      y.mutable_data_ptr<float>()[r * made.outputs + o] = rounded(std::max(sum, 0.f), made.written);
    }
  }
}

class PartnerBackend final : public executorch::runtime::BackendInterface {
 public:
  bool is_available() const override { return true; }

  Result<DelegateHandle*> init(BackendInitContext&, FreeableBuffer* processed,
                               ArrayRef<CompileSpec>) const override {
    auto* made = new Instruction();
    Reader reader(*processed);
    if (!read_instruction(reader, *made)) {
      delete made;
      ET_LOG(Error, "the payload is of another version, or cut off");
      return Error::DelegateInvalidCompatibility;
    }
    processed->Free();
    return static_cast<DelegateHandle*>(made);
  }

  Error execute(BackendExecutionContext& context, DelegateHandle* handle,
                Span<EValue*> args) const override {
    const auto& made = *static_cast<const Instruction*>(handle);
    const bool is_convolution = made.kind == kConvolution;
    auto* tracer = context.event_tracer();
    const EventTracerEntry entry = executorch::runtime::event_tracer_start_profiling_delegate(
        tracer, is_convolution ? "conv" : "linear_relu", kUnset);
    const Tensor& x = args[0]->toTensor();
    Tensor& y = args[args.size() - 1]->toTensor();
    is_convolution ? convolve(made, x, y) : linear_relu(made, x, y);
    executorch::runtime::event_tracer_end_profiling_delegate(tracer, entry);
    return Error::Ok;
  }

  void destroy(DelegateHandle* handle) const override { delete static_cast<Instruction*>(handle); }
};

PartnerBackend backend;
[[maybe_unused]] const auto registered =
    executorch::runtime::register_backend(Backend{"PartnerBackend", &backend});

}  // namespace
