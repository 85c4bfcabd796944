// Reads flatbuffers from untrusted sources: they are verified once, then read without checks.
//
// verify_flatbuffer visits all of a buffer, following a description of its tables (generated from
// schema/*.fbs), and checks every offset, vtable, vector, string and union in it. Afterwards the
// view classes below read fields without checks. Views are pointers: they own nothing and are valid
// as long as the buffer.
//
// All reads use memcpy, so that the buffer needs no alignment. A default-constructed view stands
// for an absent table or vector: its scalars have their defaults, its strings and vectors are
// empty.
//
// Format: https://flatbuffers.dev/internals. Little-endian hosts only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rushlight/core/span.h"

namespace rushlight {
namespace fb {

#if defined(__BYTE_ORDER__)
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "flatbuffers are read as they lie");
#endif

template <typename T>
inline T read(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}
// A byte of a file may have any value, but a bool may only be 0 or 1.
template <>
inline bool read<bool>(const uint8_t* at) {
  return *at != 0;
}

// The address that the offset stored at `at` points to.
inline const uint8_t* follow(const uint8_t* at) { return at + read<uint32_t>(at); }

// A vector of numbers or enums.
template <typename T>
class Vector {
 public:
  constexpr Vector() = default;
  // `data` is the number of elements, followed by the elements.
  explicit constexpr Vector(const uint8_t* data) : data_(data) {}

  size_t size() const { return data_ != nullptr ? read<uint32_t>(data_) : 0; }
  bool empty() const { return size() == 0; }
  T operator[](size_t i) const { return read<T>(bytes() + i * sizeof(T)); }
  // The elements in the file, which are not aligned for T.
  const uint8_t* bytes() const { return data_ + 4; }

 private:
  const uint8_t* data_ = nullptr;
};

// The bytes of a [ubyte] vector.
inline Span<const uint8_t> as_span(Vector<uint8_t> bytes) {
  return bytes.empty() ? Span<const uint8_t>() : Span<const uint8_t>(bytes.bytes(), bytes.size());
}

// A vector of tables, read by the view class T.
template <typename T>
class Tables {
 public:
  constexpr Tables() = default;
  explicit constexpr Tables(const uint8_t* data) : data_(data) {}

  size_t size() const { return data_ != nullptr ? read<uint32_t>(data_) : 0; }
  bool empty() const { return size() == 0; }
  T operator[](size_t i) const { return T(follow(data_ + 4 + i * 4)); }

 private:
  const uint8_t* data_ = nullptr;
};

// Reads of a table's fields. `table` is nullptr for an absent table.
//
// A loader does little else, so a build for size calls these functions rather than inlining them.
#if !defined(__OPTIMIZE_SIZE__)
#define RL_CALLED inline
#elif defined(__clang__)
#define RL_CALLED [[gnu::noinline]] inline
#else
#define RL_CALLED [[gnu::noinline, gnu::noclone]] inline
#endif

// The address of field `id`, or nullptr if it is absent.
RL_CALLED const uint8_t* field_of(const uint8_t* table, unsigned id) {
  if (table == nullptr) return nullptr;
  const uint8_t* vtable = table - read<int32_t>(table);
  const unsigned slot = 4 + 2 * id;
  if (slot >= read<uint16_t>(vtable)) return nullptr;
  const uint16_t offset = read<uint16_t>(vtable + slot);
  return offset != 0 ? table + offset : nullptr;
}
// The address that the offset in field `id` points to, or nullptr if the field is absent.
RL_CALLED const uint8_t* target_of(const uint8_t* table, unsigned id) {
  const uint8_t* at = field_of(table, id);
  return at != nullptr ? follow(at) : nullptr;
}
// The bits of the number in field `id`, or `fallback` if it is absent.
template <typename Bits>
RL_CALLED Bits bits_of(const uint8_t* table, unsigned id, Bits fallback) {
  const uint8_t* at = field_of(table, id);
  return at != nullptr ? read<Bits>(at) : fallback;
}
// The value of the union whose type is in field `id`, or nullptr if that type is not `type`.
RL_CALLED const uint8_t* member_of(const uint8_t* table, unsigned id, uint8_t type) {
  return bits_of<uint8_t>(table, id, 0) == type ? target_of(table, id + 1) : nullptr;
}
RL_CALLED StringView string_of(const uint8_t* table, unsigned id) {
  const uint8_t* at = target_of(table, id);
  if (at == nullptr) return StringView();
  return StringView(reinterpret_cast<const char*>(at + 4), read<uint32_t>(at));
}
#undef RL_CALLED

// The base class of the generated views.
class Table {
 public:
  constexpr Table() = default;
  explicit constexpr Table(const uint8_t* data) : data_(data) {}
  bool present() const { return data_ != nullptr; }

 protected:
  const uint8_t* field(unsigned id) const { return field_of(data_, id); }
  const uint8_t* target(unsigned id) const { return target_of(data_, id); }
  const uint8_t* member(unsigned id, uint8_t type) const { return member_of(data_, id, type); }
  StringView string(unsigned id) const { return string_of(data_, id); }
  template <typename T>
  T scalar(unsigned id, T fallback) const {
    if constexpr (sizeof(T) == 1) {
      return from_bits<T>(bits_of(data_, id, to_bits<uint8_t>(fallback)));
    } else if constexpr (sizeof(T) == 4) {
      return from_bits<T>(bits_of(data_, id, to_bits<uint32_t>(fallback)));
    } else if constexpr (sizeof(T) == 8) {
      return from_bits<T>(bits_of(data_, id, to_bits<uint64_t>(fallback)));
    } else {
      const uint8_t* at = field(id);
      return at != nullptr ? read<T>(at) : fallback;
    }
  }

 private:
  template <typename Bits, typename T>
  static Bits to_bits(T value) {
    Bits bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  template <typename T, typename Bits>
  static T from_bits(Bits bits) {
    return read<T>(reinterpret_cast<const uint8_t*>(&bits));
  }

  const uint8_t* data_ = nullptr;
};

// ---- Verification ----

enum class FieldKind : uint8_t {
  Scalar,      // arg: log2 of its size in bytes
  String,      // arg: unused
  Vector,      // arg: log2 of the size of an element in bytes
  Table,       // arg: index into tables
  Tables,      // arg: index into tables
  Union,       // arg: index into unions; this field is the type byte
  UnionValue,  // arg: unused; the field after a Union
};

struct FieldLayout {
  FieldKind kind;
  uint8_t arg;
};

struct TableLayout {
  uint16_t first_field;
  uint8_t n_fields;
};

// The k-th type of a union is table members[first_member + k - 1].
struct UnionLayout {
  uint8_t first_member;
  uint8_t n_members;
};

// The tables of a schema; table 0 is the root. Tables must not contain themselves, so the depth of
// the verifier's recursion is limited by the schema.
struct Layout {
  const FieldLayout* fields;
  const TableLayout* tables;
  const UnionLayout* unions;
  const uint8_t* members;
};

// True if everything that views of this layout can reach is inside the buffer. A union of a type
// that the layout does not have is accepted, since its value is never read. The time is linear in
// the size: a buffer is refused if its tables are visited more often than it can hold references to
// them, so that files cannot make it visit the same tables again and again.
bool verify_flatbuffer(const uint8_t* data, size_t size, const Layout& layout);

// True if the buffer has the four characters of `identifier` at bytes 4 to 7.
bool has_identifier(const uint8_t* data, size_t size, const char* identifier);

}  // namespace fb
}  // namespace rushlight
