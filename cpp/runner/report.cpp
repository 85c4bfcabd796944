#include "rushlight/runner/report.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace rushlight {
namespace {

float from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const float sign = (bits & 0x8000) != 0 ? -1.0f : 1.0f;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

float from_bfloat16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof(value));
  return value;
}

// NaN for a dtype whose elements are not simple numbers.
double element(const Tensor& tensor, int64_t i) {
  switch (tensor.dtype) {
    case DType::Float32:
      return tensor.as<float>()[i];
    case DType::Float64:
      return tensor.as<double>()[i];
    case DType::Float16:
      return from_half(tensor.as<uint16_t>()[i]);
    case DType::BFloat16:
      return from_bfloat16(tensor.as<uint16_t>()[i]);
    case DType::Int64:
      return static_cast<double>(tensor.as<int64_t>()[i]);
    case DType::UInt64:
      return static_cast<double>(tensor.as<uint64_t>()[i]);
    case DType::Int32:
      return tensor.as<int32_t>()[i];
    case DType::UInt32:
      return tensor.as<uint32_t>()[i];
    case DType::Int16:
      return tensor.as<int16_t>()[i];
    case DType::UInt16:
      return tensor.as<uint16_t>()[i];
    case DType::Int8:
      return tensor.as<int8_t>()[i];
    case DType::UInt8:
    case DType::Bool:
      return tensor.as<uint8_t>()[i];
    default:
      return NAN;
  }
}

std::string shape_text(Span<const int32_t> sizes) {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(sizes[i]);
  }
  return text + "]";
}

void print_tensor(const Tensor& tensor, bool all) {
  std::printf("%s %s", dtype_name(tensor.dtype), shape_text(tensor.shape()).c_str());
  double least = INFINITY;
  double greatest = -INFINITY;
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel; ++i) {
    const double v = element(tensor, i);
    least = std::fmin(least, v);
    greatest = std::fmax(greatest, v);
    sum += v;
  }
  if (tensor.numel > 0) {
    std::printf("  min %g  mean %g  max %g", least, sum / static_cast<double>(tensor.numel),
                greatest);
  }
  std::printf("\n");
  for (int64_t i = 0; all && i < tensor.numel; ++i) {  // in memory order
    std::printf("%s%.9g%s", i % 8 == 0 ? "    " : " ", element(tensor, i),
                i % 8 == 7 || i + 1 == tensor.numel ? "\n" : "");
  }
}

}  // namespace

std::string describe(const ValueMeta& meta) {
  switch (meta.tag) {
    case Tag::Tensor: {
      const bool bounded = meta.tensor.dynamism == Dynamism::Bounded;
      return std::string(dtype_name(meta.tensor.dtype)) + " " + (bounded ? "at most " : "") +
             shape_text(meta.tensor.shape());
    }
    case Tag::Int:
      return "int " + std::to_string(meta.i);
    case Tag::Bool:
      return meta.i != 0 ? "bool true" : "bool false";
    case Tag::Double:
      return "float " + std::to_string(meta.d);
    case Tag::String:
      return "string '" + std::string(meta.text.data(), meta.text.size()) + "'";
    default:
      return tag_name(meta.tag);
  }
}

void print_program(Module& module) {
  const Program& program = module.program();
  for (size_t m = 0; m < program.n_methods(); ++m) {
    const StringView name = program.method_name(m);
    Message message;
    Result<MethodMeta> meta = program.method_meta(name, &message);
    if (!meta.ok()) {
      std::printf("method %.*s: %s\n", name.len(), name.data(), message.text());
      continue;
    }
    std::printf("method %.*s: %zu instructions, %zu operators, %zu delegates\n", name.len(),
                name.data(), meta->n_instructions(), meta->n_operators(), meta->n_delegates());
    for (size_t i = 0; i < meta->n_inputs(); ++i) {
      std::printf("  input %zu   %s\n", i, describe(meta->input(i)).c_str());
    }
    for (size_t i = 0; i < meta->n_outputs(); ++i) {
      std::printf("  output %zu  %s\n", i, describe(meta->output(i)).c_str());
    }
    Result<MemoryUse> use = module.memory_use(name);
    if (!use.ok()) continue;
    const auto number = [](uint64_t bytes) { return static_cast<unsigned long long>(bytes); };
    std::printf(
        "  memory    %llu bytes: arenas %llu, structures %llu, outputs %llu, scratch %llu\n",
        number(use->total()), number(use->arenas + use->shared_arenas), number(use->structures),
        number(use->outputs), number(use->scratch));
  }
}

void print_kernels(const KernelTable& table) {
  for (size_t i = 0; i < table.size(); ++i) {
    const Kernel& kernel = table[i];
    std::printf("%s %s%s%s\n", kernel.name, kernel.signature, kernel.key != nullptr ? " " : "",
                kernel.key != nullptr ? kernel.key : "");
  }
}

void print_value(size_t index, const EValue& value, bool all) {
  std::printf("output %zu: ", index);
  switch (value.tag) {
    case Tag::Tensor:
      return print_tensor(value.tensor(), all);
    case Tag::Int:
      std::printf("%lld\n", static_cast<long long>(value.to_int()));
      break;
    case Tag::Bool:
      std::printf("%s\n", value.to_bool() ? "true" : "false");
      break;
    case Tag::Double:
      std::printf("%g\n", value.to_double());
      break;
    case Tag::String:
      std::printf("'%.*s'\n", value.string().len(), value.string().data());
      break;
    default:
      std::printf("%s\n", tag_name(value.tag));
  }
}

}  // namespace rushlight
