// For fuzzing readers of payloads: changes some of their numbers.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <utility>
#include <vector>

#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace test {

// The position of a number in a payload.
struct Slot {
  size_t at;
  size_t width;
};

// Collects the numbers of tables that were verified.
class SlotList {
 public:
  explicit SlotList(const uint8_t* base) : base_(base) {}
  const std::vector<Slot>& slots() const { return slots_; }

 protected:
  struct Fields : fb::Table {
    explicit Fields(const fb::Table& table) : Table(table) {}
    using fb::Table::field;
  };
  struct Field {
    unsigned id;
    size_t width;
  };

  template <typename T>
  void add(fb::Vector<T> numbers, size_t width = sizeof(T)) {
    for (size_t i = 0; i < numbers.size() * sizeof(T); i += width) {
      slots_.push_back({static_cast<size_t>(numbers.bytes() - base_) + i, width});
    }
  }
  void add_fields(const fb::Table& table, std::initializer_list<Field> fields) {
    for (const Field& field : fields) {
      const uint8_t* at = Fields(table).field(field.id);
      if (at != nullptr) slots_.push_back({static_cast<size_t>(at - base_), field.width});
    }
  }

 private:
  const uint8_t* base_;
  std::vector<Slot> slots_;
};

class Damage {
 public:
  Damage(std::vector<Slot> slots, uint32_t seed) : slots_(std::move(slots)), random_(seed) {}

  void operator()(std::vector<uint8_t>& payload) {
    const unsigned n = random_() % 3 == 0 ? 2 : 1;
    for (unsigned i = 0; i < n; ++i) {
      const unsigned way = random_() % 20;
      if (way == 0) payload.resize(1 + random_() % payload.size());
      if (way == 1) payload[random_() % payload.size()] ^= static_cast<uint8_t>(random_());
      if (way == 2) put(payload, {random_() % payload.size(), 4}, number());
      if (way > 2) change_numbers(payload, way < 8);
    }
  }

 private:
  int64_t number() {
    static constexpr int64_t kNumbers[] = {
        0, 1, -1, 2, 3, 5, 7, 15, 16, 17, 64, 1000, 1 << 14, 1 << 16, 1 << 20, 1 << 24, 0x7fffffff};
    static constexpr int kShifts[] = {10, 30, 31, 32, 33, 39, 40, 41, 48, 59, 60, 61, 62, 63};
    const unsigned way = random_() % 3;
    if (way == 0) return static_cast<int64_t>(random_() % 40);
    if (way == 1) return kNumbers[random_() % (sizeof kNumbers / sizeof kNumbers[0])];
    const int shift = kShifts[random_() % (sizeof kShifts / sizeof kShifts[0])];
    return static_cast<int64_t>((uint64_t{1} << shift) - random_() % 2);
  }

  // Changes one number, or all numbers of this width that are equal to it, so that sizes still
  // match.
  void change_numbers(std::vector<uint8_t>& payload, bool all) {
    const Slot& slot = slots_[random_() % slots_.size()];
    const int64_t old = get(payload, slot);
    int64_t to = number();
    const unsigned way = random_() % 4;
    if (way == 0) {  // a neighbouring number, also for the greatest number
      to = static_cast<int64_t>(static_cast<uint64_t>(old) +
                                (random_() % 2 != 0 ? 1u : ~uint64_t{0}));
    }
    if (way == 1) to = get(payload, slots_[random_() % slots_.size()]);
    if (!all) return put(payload, slot, to);
    for (size_t i = 0; i < slots_.size(); ++i) {
      const Slot& other = slots_[i];
      if (other.width == slot.width && get(payload, other) == old) put(payload, other, to);
    }
  }

  static int64_t get(const std::vector<uint8_t>& payload, const Slot& slot) {
    int64_t number = 0;
    if (slot.at + slot.width > payload.size()) return 0;
    std::memcpy(&number, &payload[slot.at], slot.width);
    return number;
  }
  static void put(std::vector<uint8_t>& payload, const Slot& slot, int64_t number) {
    if (slot.at + slot.width > payload.size()) return;
    std::memcpy(&payload[slot.at], &number, slot.width);
  }

  std::vector<Slot> slots_;
  std::mt19937 random_;
};

}  // namespace test
}  // namespace rushlight
