// The verifier against files that are made to deceive it, and against damaged real files.
//
// Usage: test_flatbuffer [ROUNDS FILE...]: in addition to the hand-made cases, damages each program
// file ROUNDS times and reads everything that the verifier accepts. Most useful with sanitizers.

#include "rushlight/program/flatbuffer.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "program_walk.h"
#include "rushlight/program/flat_tensor_fb.h"
#include "rushlight/program/program_fb.h"
#include "seed.h"

namespace {

namespace fb = rushlight::fb;
using rushlight::test::sum;

// ---- Writing by hand: tables first, then what they point to ----

class Image {
 public:
  std::vector<uint8_t> bytes;

  size_t end() const { return bytes.size(); }
  template <typename T>
  void put(T value) {
    const size_t at = end();
    bytes.resize(at + sizeof(T));
    std::memcpy(&bytes[at], &value, sizeof(T));
  }
  template <typename T>
  void set(size_t at, T value) {
    std::memcpy(&bytes[at], &value, sizeof(T));
  }
  // Makes the offset at `at` point to the current end.
  void lead_here(size_t at) { set<uint32_t>(at, static_cast<uint32_t>(end() - at)); }
  void lead(size_t at, size_t target) { set<uint32_t>(at, static_cast<uint32_t>(target - at)); }

  // A vtable and its table, with all fields zero. A field of 0 bytes is absent.
  struct Table {
    size_t start;
    std::vector<size_t> fields;
    size_t vtable;
  };
  Table table(std::initializer_list<unsigned> widths) {
    Table made;
    made.vtable = end();
    put<uint16_t>(static_cast<uint16_t>(4 + 2 * widths.size()));
    uint16_t size = 4;
    for (unsigned width : widths) size = static_cast<uint16_t>(size + width);
    put<uint16_t>(size);
    uint16_t offset = 4;
    for (unsigned width : widths) {
      put<uint16_t>(width != 0 ? offset : uint16_t{0});
      offset = static_cast<uint16_t>(offset + width);
    }
    made.start = end();
    put<int32_t>(static_cast<int32_t>(made.start - made.vtable));
    size_t at = end();
    for (unsigned width : widths) {
      made.fields.push_back(at);
      at += width;
    }
    bytes.resize(at);
    return made;
  }
  // A vector of `count` offsets. Returns the position of the first one.
  size_t offsets(uint32_t count) {
    put<uint32_t>(count);
    const size_t first = end();
    bytes.resize(first + 4 * size_t{count});
    return first;
  }
  size_t text(const char* chars) {
    const size_t start = end();
    put<uint32_t>(static_cast<uint32_t>(std::strlen(chars)));
    bytes.insert(bytes.end(), chars, chars + std::strlen(chars) + 1);
    return start;
  }
};

// Memory of exactly this size, so that a sanitizer sees every read beyond it.
class Exact {
 public:
  explicit Exact(const std::vector<uint8_t>& bytes)
      : size_(bytes.size()), data_(static_cast<uint8_t*>(std::calloc(size_ != 0 ? size_ : 1, 1))) {
    if (size_ != 0) std::memcpy(data_.get(), bytes.data(), size_);
  }
  const uint8_t* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  size_t size_;
  std::unique_ptr<uint8_t, Free> data_;
};

bool verify(const Image& image) {
  const Exact exact(image.bytes);
  return fb::verify_Program(exact.data(), exact.size());
}

// ---- Hand-made files ----

// A root with only `plans` execution plans. Returns the position of their offsets.
size_t begin_program(Image* image, uint32_t plans) {
  image->put<uint32_t>(0);
  image->put<uint32_t>(0x32315445);  // "ET12"
  const Image::Table root = image->table({0, 4});
  image->lead(0, root.start);
  image->lead_here(root.fields[1]);
  return image->offsets(plans);
}

// A program with one plan that has one value. The value's table has the given fields.
struct OneValue {
  Image image;
  size_t plans;  // position of the plan's offset
  Image::Table plan, value;

  explicit OneValue(std::initializer_list<unsigned> value_fields) {
    plans = begin_program(&image, 1);
    plan = image.table({4, 0, 4});
    image.lead(plans, plan.start);
    image.lead(plan.fields[0], image.text("forward"));
    image.lead_here(plan.fields[2]);
    const size_t values = image.offsets(1);
    value = image.table(value_fields);
    image.lead(values, value.start);
  }
};

OneValue with_int() {
  OneValue made({1, 4});
  made.image.bytes[made.value.fields[0]] = static_cast<uint8_t>(fb::KernelTypes::Int);
  const Image::Table number = made.image.table({8});
  made.image.lead(made.value.fields[1], number.start);
  made.image.set<int64_t>(number.fields[0], -7);
  return made;
}

void test_reads_back() {
  const OneValue made = with_int();
  const Exact exact(made.image.bytes);
  CHECK(fb::verify_Program(exact.data(), exact.size()));
  CHECK(fb::has_identifier(exact.data(), exact.size(), fb::kProgramIdentifier));
  CHECK(!fb::has_identifier(exact.data(), exact.size(), fb::flat_tensor::kFlatTensorIdentifier));
  const fb::Program program = fb::root_Program(exact.data());
  CHECK(program.execution_plan().size() == 1);
  const fb::ExecutionPlan plan = program.execution_plan()[0];
  CHECK(plan.name() == "forward");
  CHECK(plan.values()[0].val_type() == fb::KernelTypes::Int);
  CHECK(plan.values()[0].val_as_Int().int_val() == -7);
  // Absent fields are read as defaults or empty, at any depth.
  CHECK(!plan.values()[0].val_as_Tensor().present());
  CHECK(plan.values()[0].val_as_Tensor().extra_tensor_info().fully_qualified_name().empty());
  CHECK(!plan.has_delegates() && plan.delegates().empty() && plan.has_values());
  CHECK(!program.constant_segment().present() && program.constant_segment().offsets().empty());
  CHECK(fb::as_span(fb::Buffer().storage()).empty());
}

void test_unaligned_and_odd_bool() {
  OneValue made({1, 4});
  made.image.bytes[made.value.fields[0]] = static_cast<uint8_t>(fb::KernelTypes::Bool);
  const Image::Table flag = made.image.table({1});
  made.image.lead(made.value.fields[1], flag.start);
  made.image.bytes[flag.fields[0]] = 0x82;
  std::vector<uint8_t> shifted(made.image.bytes.size() + 1);
  std::memcpy(&shifted[1], made.image.bytes.data(), made.image.bytes.size());
  CHECK(fb::verify_Program(&shifted[1], made.image.bytes.size()));
  const fb::Program program = fb::root_Program(&shifted[1]);
  CHECK(program.execution_plan()[0].values()[0].val_as_Bool().bool_val() == true);
}

void test_too_short() {
  const OneValue made = with_int();
  CHECK(!fb::verify_Program(nullptr, 0));
  for (size_t size = 0; size < made.image.bytes.size(); ++size) {
    const Exact cut({made.image.bytes.begin(), made.image.bytes.begin() + static_cast<long>(size)});
    CHECK(!fb::verify_Program(cut.data(), cut.size()));
    CHECK(fb::has_identifier(cut.data(), size, fb::kProgramIdentifier) == (size >= 8));
  }
}

void test_bad_offsets() {
  for (const uint32_t bad : {0x7fffffffu, 0x80000000u, 0xfffffff0u, 0xffffffffu}) {
    OneValue made = with_int();
    made.image.set<uint32_t>(0, bad);  // the root
    CHECK(!verify(made.image));
    made = with_int();
    made.image.set<uint32_t>(made.plan.fields[0], bad);  // a string
    CHECK(!verify(made.image));
    made = with_int();
    made.image.set<uint32_t>(made.plan.fields[2], bad);  // a vector of tables
    CHECK(!verify(made.image));
    made = with_int();
    made.image.set<uint32_t>(made.value.fields[1], bad);  // a union's value
    CHECK(!verify(made.image));
    made = with_int();
    made.image.set<uint32_t>(made.value.start, bad);  // the offset of a vtable
    CHECK(!verify(made.image));
  }
}

// An offset that wraps around 2^32 would point back to valid data.
void test_backward_offset() {
  OneValue made = with_int();
  const size_t name = made.plan.fields[0];
  const size_t text = name + fb::read<uint32_t>(&made.image.bytes[name]);
  const Image::Table plan = made.image.table({4});
  made.image.lead(made.plans, plan.start);
  made.image.lead(plan.fields[0], text);
  CHECK(!verify(made.image));
  made.image.lead(plan.fields[0], made.image.text("again"));
  CHECK(verify(made.image));
}

void test_bad_counts() {
  const OneValue good = with_int();
  const size_t name = good.plan.fields[0];
  const size_t values = good.plan.fields[2];
  for (const size_t field : {name, values}) {
    const size_t vector = field + fb::read<uint32_t>(&good.image.bytes[field]);
    for (const uint32_t count : {0x10000u, 0x3fffffffu, 0x40000000u, 0x80000000u, 0xffffffffu}) {
      OneValue made = with_int();
      made.image.set<uint32_t>(vector, count);
      CHECK(!verify(made.image));
    }
  }
}

void test_bad_vtables() {
  struct Case {
    size_t at;  // position in the vtable: 0 its size, 2 the table's size, 4 the first field
    uint16_t value;
  };
  for (const Case& bad : {Case{0, 0}, Case{0, 3}, Case{0, 5}, Case{0, 0xfffe}, Case{2, 0},
                          Case{2, 3}, Case{2, 0xffff}, Case{4, 1}, Case{4, 3}, Case{4, 0xffff}}) {
    OneValue made = with_int();
    made.image.set<uint16_t>(made.plan.vtable + bad.at, bad.value);
    CHECK(!verify(made.image));
  }
}

void test_vtable_beyond_the_end() {
  OneValue made = with_int();
  made.image.set<int32_t>(made.value.start, static_cast<int32_t>(made.value.start) -
                                                static_cast<int32_t>(made.image.end()));
  made.image.put<uint16_t>(6);  // says that it has one field, but ends before it
  made.image.put<uint16_t>(9);
  CHECK(!verify(made.image));
  made.image.put<uint16_t>(0);
  CHECK(verify(made.image));
}

void test_field_over_the_way_to_the_vtable() {
  OneValue made({1, 4});
  made.image.bytes[made.value.fields[0]] = static_cast<uint8_t>(fb::KernelTypes::Int);
  const Image::Table number = made.image.table({8});
  made.image.lead(made.value.fields[1], number.start);
  CHECK(verify(made.image));
  made.image.set<uint16_t>(number.vtable + 4, 2);
  CHECK(!verify(made.image));
}

void test_string_without_nul() {
  OneValue made = with_int();
  const size_t name =
      made.plan.fields[0] + fb::read<uint32_t>(&made.image.bytes[made.plan.fields[0]]);
  made.image.bytes[name + 4 + 7] = 'x';
  CHECK(!verify(made.image));

  // The last byte of the file is the last character, so there is no room for the NUL.
  Image image;
  const size_t first = begin_program(&image, 1);
  const Image::Table plan = image.table({4});
  image.lead(first, plan.start);
  image.lead(plan.fields[0], image.text("forward"));
  CHECK(verify(image));
  image.bytes.pop_back();
  CHECK(!verify(image));
}

void test_unions() {
  OneValue no_value({1});  // a type without a field for the value
  no_value.image.bytes[no_value.value.fields[0]] = static_cast<uint8_t>(fb::KernelTypes::Int);
  CHECK(!verify(no_value.image));

  OneValue absent_value({1, 0});
  absent_value.image.bytes[absent_value.value.fields[0]] =
      static_cast<uint8_t>(fb::KernelTypes::Int);
  CHECK(!verify(absent_value.image));

  OneValue none({0, 0});
  CHECK(verify(none.image));

  OneValue unknown = with_int();  // from a newer schema: accepted, and read as unknown
  unknown.image.bytes[unknown.value.fields[0]] = 200;
  CHECK(verify(unknown.image));
  const Exact exact(unknown.image.bytes);
  const fb::EValue value = fb::root_Program(exact.data()).execution_plan()[0].values()[0];
  CHECK(static_cast<int>(value.val_type()) == 200);
  CHECK(!value.val_as_Int().present() && !value.val_as_Tensor().present());
}

// A few bytes that need very many visits: all plans are the same plan, with the same values.
void test_shared_tables() {
  constexpr uint32_t kCount = 20000;
  Image image;
  const size_t plans = begin_program(&image, kCount);
  const Image::Table plan = image.table({0, 0, 4});
  image.lead_here(plan.fields[2]);
  const size_t values = image.offsets(kCount);
  const Image::Table value = image.table({0, 0});
  for (size_t i = 0; i < kCount; ++i) {
    image.lead(plans + 4 * i, plan.start);
    image.lead(values + 4 * i, value.start);
  }
  CHECK(!verify(image));
}

// Sharing of equal tables, as valid writers do it, is not refused.
void test_shared_values() {
  constexpr uint32_t kCount = 1000;
  Image image;
  const size_t plans = begin_program(&image, 1);
  const Image::Table plan = image.table({0, 0, 4});
  image.lead(plans, plan.start);
  image.lead_here(plan.fields[2]);
  const size_t values = image.offsets(kCount);
  const Image::Table value = image.table({0, 0});
  for (size_t i = 0; i < kCount; ++i) image.lead(values + 4 * i, value.start);
  CHECK(verify(image));
}

// ---- Damaged real files ----

std::vector<uint8_t> read_file(const char* path) {
  std::vector<uint8_t> bytes;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return bytes;
  uint8_t block[4096];
  while (!std::feof(file) && !std::ferror(file)) {
    const size_t got = std::fread(block, 1, sizeof(block), file);
    bytes.insert(bytes.end(), block, block + got);
  }
  std::fclose(file);
  return bytes;
}

void damage(std::vector<uint8_t>* bytes, std::mt19937* random) {
  auto below = [random](size_t n) { return (*random)() % n; };
  for (size_t times = 1 + below(4); times != 0 && !bytes->empty(); --times) {
    const size_t at = below(bytes->size());
    switch (below(4)) {
      case 0:  // a bit
        (*bytes)[at] = static_cast<uint8_t>((*bytes)[at] ^ (1u << below(8)));
        break;
      case 1:  // a byte
        (*bytes)[at] = static_cast<uint8_t>(below(256));
        break;
      case 2: {  // an offset or a count
        const uint32_t choices[] = {0,
                                    1,
                                    4,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    static_cast<uint32_t>(below(bytes->size()))};
        const uint32_t value = choices[below(sizeof(choices) / sizeof(choices[0]))];
        if (bytes->size() - at >= 4) std::memcpy(&(*bytes)[at], &value, 4);
        break;
      }
      default:  // the rest is missing; rare, since few such files load
        if (below(8) == 0) bytes->resize(at);
    }
  }
}

void test_damaged(const char* path, long rounds) {
  const std::vector<uint8_t> good = read_file(path);
  const Exact exact(good);
  CHECK(fb::verify_Program(exact.data(), exact.size()));
  std::mt19937 random(rushlight::test::seed_for(good.size()));
  long passed = 0;
  uint64_t total = 0;
  for (long i = 0; i < rounds; ++i) {
    std::vector<uint8_t> bytes = good;
    damage(&bytes, &random);
    const Exact bad(bytes);
    if (fb::verify_Program(bad.data(), bad.size())) {
      ++passed;
      total += sum(fb::root_Program(bad.data()));
    }
    if (fb::flat_tensor::verify_FlatTensor(bad.data(), bad.size())) ++total;
  }
  std::printf("%s: %ld of %ld damaged copies still verify (%llu)\n", path, passed, rounds,
              static_cast<unsigned long long>(total));
}

}  // namespace

int main(int argc, char** argv) {
  test_reads_back();
  test_unaligned_and_odd_bool();
  test_too_short();
  test_bad_offsets();
  test_backward_offset();
  test_bad_counts();
  test_bad_vtables();
  test_vtable_beyond_the_end();
  test_field_over_the_way_to_the_vtable();
  test_string_without_nul();
  test_unions();
  test_shared_tables();
  test_shared_values();
  for (int i = 2; i < argc; ++i) test_damaged(argv[i], std::strtol(argv[1], nullptr, 10));
  return rushlight::test::check_result();
}
