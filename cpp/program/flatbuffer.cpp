#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {
namespace {

// Positions are offsets into the buffer of at most kMaxSize, so that the sum of two never
// overflows.
constexpr uint32_t kMaxSize = 0x7fffffff;

class Verifier {
 public:
  Verifier(const uint8_t* data, uint32_t size, const Layout& layout)
      : data_(data), size_(size), layout_(layout), budget_(size / 4) {}

  // Checks that the offset at `at` points to a table of this type. `at` itself must have been
  // checked.
  bool table(uint32_t at, unsigned type);

 private:
  bool fits(uint32_t at, uint32_t bytes) const { return at <= size_ && bytes <= size_ - at; }
  bool follow(uint32_t at, uint32_t* target) const;
  bool field(const FieldLayout& layout, uint32_t at);
  bool vector(uint32_t at, unsigned log2_element, uint32_t* elements, uint32_t* count) const;
  bool string(uint32_t at) const;
  bool tables(uint32_t at, unsigned type);
  bool union_value(unsigned index, uint8_t type, uint32_t at);

  const uint8_t* data_;
  uint32_t size_;
  const Layout& layout_;
  uint32_t budget_;  // number of tables that may still be visited
};

// Reads the offset at `at`, whose 4 bytes must be inside, and checks that there are 4 bytes at its
// target.
bool Verifier::follow(uint32_t at, uint32_t* target) const {
  const uint32_t offset = read<uint32_t>(data_ + at);
  if (offset > size_ - at) return false;
  *target = at + offset;
  return fits(*target, 4);
}

bool Verifier::vector(uint32_t at, unsigned log2_element, uint32_t* elements,
                      uint32_t* count) const {
  uint32_t start;
  if (!follow(at, &start)) return false;
  *elements = start + 4;
  *count = read<uint32_t>(data_ + start);
  return *count <= (size_ - *elements) >> log2_element;
}

bool Verifier::string(uint32_t at) const {
  uint32_t chars, count;
  if (!vector(at, 0, &chars, &count)) return false;
  return count < size_ - chars && data_[chars + count] == 0;
}

bool Verifier::tables(uint32_t at, unsigned type) {
  uint32_t elements, count;
  if (!vector(at, 2, &elements, &count)) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!table(elements + 4 * i, type)) return false;
  }
  return true;
}

bool Verifier::union_value(unsigned index, uint8_t type, uint32_t at) {
  const UnionLayout& layout = layout_.unions[index];
  if (type == 0 || type > layout.n_members) return true;
  return at != 0 && table(at, layout_.members[layout.first_member + type - 1]);
}

bool Verifier::field(const FieldLayout& layout, uint32_t at) {
  uint32_t elements, count;
  switch (layout.kind) {
    case FieldKind::String:
      return string(at);
    case FieldKind::Vector:
      return vector(at, layout.arg, &elements, &count);
    case FieldKind::Table:
      return table(at, layout.arg);
    case FieldKind::Tables:
      return tables(at, layout.arg);
    default:
      return true;
  }
}

bool Verifier::table(uint32_t at, unsigned type) {
  uint32_t start;
  if (budget_ == 0 || !follow(at, &start)) return false;
  --budget_;

  // The stored distance is signed. Modulo 2^32, a vtable before the start of the buffer gives a
  // position of 2^31 or more, which is beyond every buffer.
  const uint32_t vtable = start - read<uint32_t>(data_ + start);
  if (!fits(vtable, 4)) return false;
  const uint16_t vtable_bytes = read<uint16_t>(data_ + vtable);
  const uint16_t table_bytes = read<uint16_t>(data_ + vtable + 2);
  if (vtable_bytes < 4 || vtable_bytes % 2 != 0 || !fits(vtable, vtable_bytes)) return false;
  if (!fits(start, table_bytes)) return false;

  const TableLayout& layout = layout_.tables[type];
  uint8_t union_type = 0;
  for (unsigned i = 0; i < layout.n_fields; ++i) {
    const FieldLayout& field_layout = layout_.fields[layout.first_field + i];
    const unsigned slot = 4 + 2 * i;
    const uint16_t offset = slot < vtable_bytes ? read<uint16_t>(data_ + vtable + slot) : 0;
    if (offset != 0) {
      const bool is_scalar = field_layout.kind == FieldKind::Scalar;
      const bool is_type = field_layout.kind == FieldKind::Union;
      const uint32_t bytes = is_scalar ? 1u << field_layout.arg : is_type ? 1 : 4;
      if (offset < 4 || offset + bytes > table_bytes) return false;
      if (!field(field_layout, start + offset)) return false;
    }
    if (field_layout.kind == FieldKind::Union) {
      union_type = offset != 0 ? data_[start + offset] : 0;
    } else if (field_layout.kind == FieldKind::UnionValue) {
      const unsigned index = layout_.fields[layout.first_field + i - 1].arg;
      if (!union_value(index, union_type, offset != 0 ? start + offset : 0)) return false;
    }
  }
  return true;
}

}  // namespace

bool verify_flatbuffer(const uint8_t* data, size_t size, const Layout& layout) {
  if (data == nullptr || size < 8 || size > kMaxSize) return false;
  return Verifier(data, static_cast<uint32_t>(size), layout).table(0, 0);
}

bool has_identifier(const uint8_t* data, size_t size, const char* identifier) {
  return data != nullptr && size >= 8 && std::memcmp(data + 4, identifier, 4) == 0;
}

}  // namespace fb
}  // namespace rushlight
