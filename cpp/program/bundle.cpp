#include "rushlight/program/bundle.h"

namespace rushlight {
namespace {

namespace bundled = fb::bundled;

// Of programs in memory; see MemoryLoader.
constexpr size_t kProgramAlignment = 16;

bool is_aligned(const uint8_t* data, size_t alignment) {
  return reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

Status read_tensor(bundled::Tensor tensor, HostTensor* to, Message& message) {
  const auto dtype = static_cast<DType>(tensor.scalar_type());
  const size_t rank = tensor.sizes().size();
  const size_t element = element_size(dtype);
  const auto fail = [&](const char* what) {
    return message.fail(Code::InvalidProgram, "the file's %s tensor of %zu dimensions %s",
                        dtype_name(dtype), rank, what);
  };
  if (element == 0) return fail("has a dtype that this runtime cannot hold");
  if (rank > kMaxRank) return fail("has more dimensions than a tensor can have");
  if (tensor.has_dim_order() && tensor.dim_order().size() != rank) {
    return fail("has a dim order of another length");
  }
  int32_t sizes[kMaxRank] = {};
  uint8_t dim_order[kMaxRank] = {};
  for (size_t i = 0; i < rank; ++i) {
    sizes[i] = tensor.sizes()[i];
    dim_order[i] = tensor.has_dim_order() ? tensor.dim_order()[i] : static_cast<uint8_t>(i);
  }
  const Span<const uint8_t> data = fb::as_span(tensor.data());
  *to = HostTensor(dtype, {sizes, rank}, data.data(), dim_order);
  if (!to->valid()) return fail("has sizes or a dim order that no tensor has");
  const auto numel = static_cast<uint64_t>(to->tensor().numel);
  if (data.size() % element != 0 || numel != data.size() / element) {
    return message.fail(
        Code::InvalidProgram, "the file has %zu bytes for a %s tensor of %llu elements of %zu",
        data.size(), dtype_name(dtype), static_cast<unsigned long long>(numel), element);
  }
  if (!is_aligned(data.data(), element_alignment(dtype))) {
    return fail("begins at an address that its elements cannot have");
  }
  return {};
}

Status read_value(bundled::Value from, BundledValue* to, Message& message) {
  switch (from.val_type()) {
    case bundled::ValueUnion::Tensor:
      to->tag = Tag::Tensor;
      return read_tensor(from.val_as_Tensor(), &to->tensor, message);
    case bundled::ValueUnion::Int:
      to->tag = Tag::Int;
      to->i = from.val_as_Int().int_val();
      return {};
    case bundled::ValueUnion::Bool:
      to->tag = Tag::Bool;
      to->i = from.val_as_Bool().bool_val() ? 1 : 0;
      return {};
    case bundled::ValueUnion::Double:
      to->tag = Tag::Double;
      to->d = from.val_as_Double().double_val();
      return {};
    case bundled::ValueUnion::NONE:
      to->tag = Tag::None;
      return {};
  }
  return message.fail(Code::InvalidProgram, "the file's value is of kind %u, which is not known",
                      static_cast<unsigned>(from.val_type()));
}

}  // namespace

Status BundledCase::input(size_t i, BundledValue* value, Message& message) const {
  return read_value(root_.inputs()[i], value, message);
}

Status BundledCase::expected(size_t i, BundledValue* value, Message& message) const {
  return read_value(root_.expected_outputs()[i], value, message);
}

Tolerance BundledCase::tolerance(size_t output) const {
  const bundled::CaseNotes notes = root_.notes();
  Tolerance tolerance;
  if (output < notes.rtol().size()) tolerance.rtol = notes.rtol()[output];
  if (output < notes.atol().size()) tolerance.atol = notes.atol()[output];
  return tolerance;
}

bool Bundle::is_bundle(Span<const uint8_t> file) {
  return fb::has_identifier(file.data(), file.size(), bundled::kBundledProgramIdentifier);
}

Status Bundle::load(Span<const uint8_t> file, Message& message) {
  root_ = {};
  if (!is_bundle(file)) {
    return message.fail(Code::InvalidProgram, "not a bundled program: its identifier is missing");
  }
  if (!bundled::verify_BundledProgram(file.data(), file.size())) {
    return message.fail(Code::InvalidProgram,
                        "the bundled program is damaged: its tables lead outside of its %zu bytes",
                        file.size());
  }
  const bundled::BundledProgram root = bundled::root_BundledProgram(file.data());
  const Span<const uint8_t> program = fb::as_span(root.program());
  if (program.empty()) {
    return message.fail(Code::InvalidProgram, "the bundled program has no program in it");
  }
  if (!is_aligned(program.data(), kProgramAlignment)) {
    return message.fail(Code::InvalidProgram,
                        "the program in the bundled program begins at byte %zu, at an address that "
                        "is no multiple of %zu",
                        static_cast<size_t>(program.data() - file.data()), kProgramAlignment);
  }
  root_ = root;
  return {};
}

size_t Bundle::first_case(size_t suite) const {
  size_t before = 0;
  for (size_t i = 0; i < suite; ++i) {
    if (method(i) == method(suite)) before += n_cases(i);
  }
  return before;
}

Result<BundledCase> Bundle::find(StringView method, size_t index, Message& message) const {
  size_t known = 0;
  for (size_t i = 0; i < n_suites(); ++i) {
    if (this->method(i) != method) continue;
    if (index - known < n_cases(i)) {
      return BundledCase(root_.method_test_suites()[i].test_cases()[index - known]);
    }
    known += n_cases(i);
  }
  return message.fail(Code::InvalidArgument,
                      "there is no test case %zu of method '%.*s', which has %zu", index,
                      method.len(), method.data(), known);
}

}  // namespace rushlight
