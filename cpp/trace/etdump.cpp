#include "rushlight/trace/etdump.h"

#include <climits>
#include <cstring>

namespace rushlight {
namespace {

// Every table of a kind has the same size, so that all places are known before anything is written;
// fields that are absent keep their room, and only the vtable omits them. Tables are multiples of
// eight bytes, behind a head that is one.
constexpr uint32_t kRootBytes = 16, kRunBytes = 24, kEventBytes = 8, kProfileBytes = 48;
constexpr uint32_t kDebugBytes = 32, kValueBytes = 16, kBoolBytes = 8, kNumberBytes = 16;
constexpr uint32_t kTensorBytes = 24, kVectorHead = 8;
constexpr uint32_t kAllocatorBytes = 8, kAllocationBytes = 16, kAllocationEventBytes = 16;
constexpr uint8_t kInt = 1, kBool = 2, kDouble = 4, kTensor = 5;  // ValueType

uint64_t rounded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// The vtables that tables refer to, in front of them. A vtable is its own bytes, those of its
// table, and where each field is in the table (0: absent).
class Vtables {
 public:
  // Where the vtable begins, from the first one.
  template <typename... Fields>
  uint32_t add(uint32_t table_bytes, Fields... fields) {
    const uint32_t begin = used_ * 2;
    for (const uint32_t word :
         {uint32_t{4 + 2 * sizeof...(fields)}, table_bytes, static_cast<uint32_t>(fields)...}) {
      words_[used_++] = static_cast<uint16_t>(word);
    }
    return begin;
  }
  uint32_t bytes() const { return static_cast<uint32_t>(rounded(uint64_t{2} * used_)); }
  const uint16_t* words() const { return words_; }

 private:
  uint16_t words_[320] = {};
  uint32_t used_ = 0;
};

struct Layout {
  Vtables vtables;
  uint32_t root, run, profile_event, debug_event, tensor, number, boolean;
  uint32_t allocator, allocation_event, allocation;
  uint32_t profile[8];   // by which texts there are: name 1, id 2, metadata 4
  uint32_t debug[2];     // by whether the id is a text
  uint32_t value[8][2];  // by ValueType, and whether it is an output

  Layout() {
    root = vtables.add(12, 4, 8);
    run = vtables.add(20, 4, 8, 12, 16);
    profile_event = vtables.add(8, 4, 0, 0);
    debug_event = vtables.add(8, 0, 0, 4);
    tensor = vtables.add(24, 12, 4, 8, 16);
    number = vtables.add(16, 8);
    boolean = vtables.add(8, 4);
    allocator = vtables.add(kAllocatorBytes, 4);
    allocation_event = vtables.add(kAllocationEventBytes, 4, 8, 0);
    allocation = vtables.add(kAllocationBytes, 4, 8);
    for (uint32_t mask = 0; mask < 8; ++mask) {
      profile[mask] = vtables.add(kProfileBytes, mask & 1 ? 4 : 0, 8, 12, 16, mask & 2 ? 20 : 0,
                                  mask & 4 ? 24 : 0, 32, 40);
    }
    for (uint32_t has_id = 0; has_id < 2; ++has_id) {
      debug[has_id] = vtables.add(kDebugBytes, 8, 4, 16, 20, has_id ? 24 : 0, 0);
    }
    for (uint32_t kind = 0; kind < 8; ++kind) {
      for (uint32_t is_output = 0; is_output < 2; ++is_output) {
        value[kind][is_output] =
            vtables.add(kValueBytes, 12, kind == kTensor ? 4 : 0, 0, kind == kInt ? 4 : 0, 0,
                        kind == kDouble ? 4 : 0, kind == kBool ? 4 : 0, is_output ? 8 : 0);
      }
    }
  }
};

uint64_t event_bytes(const Record& record) {
  if (record.kind == RecordKind::Profile) return kEventBytes + kProfileBytes;
  if (record.kind == RecordKind::Allocation) {
    return kAllocationEventBytes + kProfileBytes + kAllocationBytes;
  }
  const uint64_t head = kEventBytes + kDebugBytes + kValueBytes + kBoolBytes;
  if (record.value != kTensor) return head + kNumberBytes;
  return head + kTensorBytes + 2 * (kVectorHead + uint64_t{record.rank} * 8);
}

uint64_t events_bytes(uint32_t n_events) { return rounded(4 + uint64_t{n_events} * 4); }

uint64_t allocators_bytes(uint32_t n) {
  return n == 0 ? 0 : events_bytes(n) + uint64_t{n} * kAllocatorBytes;
}

// Writes numbers in turn, and knows where it is.
class Writer {
 public:
  explicit Writer(ByteSink* sink) : sink_(sink) {}

  bool ok() const { return ok_; }
  uint64_t place() const { return place_; }

  void bytes(const void* data, size_t size) {
    place_ += size;
    if (size > sizeof buffer_) {
      flush();
      write({static_cast<const uint8_t*>(data), size});
      return;
    }
    if (size > sizeof buffer_ - used_) flush();
    if (size > 0) std::memcpy(buffer_ + used_, data, size);
    used_ += size;
  }
  template <typename T>
  void put(T value) {
    bytes(&value, sizeof value);
  }
  // The way from here to a later place; 0 for none.
  void reach(uint64_t target) {
    put(target == 0 ? uint32_t{0} : static_cast<uint32_t>(target - place_));
  }
  // The start of a table, whose vtable is at this place.
  void table(uint64_t vtable) { put(static_cast<int32_t>(place_ - vtable)); }
  void flush() {
    if (used_ > 0) write({buffer_, used_});
    used_ = 0;
  }

 private:
  void write(Span<const uint8_t> bytes) { ok_ = ok_ && sink_->write(bytes); }

  ByteSink* sink_;
  bool ok_ = true;
  uint64_t place_ = 0;
  size_t used_ = 0;
  uint8_t buffer_[1024];
};

class Dump {
 public:
  explicit Dump(const TraceRecorder& recorder) : recorder_(recorder) { measure(); }

  uint64_t size() const { return texts_ + recorder_.texts().size(); }
  bool write(ByteSink& sink);

 private:
  static constexpr uint64_t kHead = 16;  // the size, the way to the root, the identifier, a gap

  bool has_dropped() const {
    return recorder_.dropped() + recorder_.dropped_values() > 0 && recorder_.dropped_texts()[2] > 0;
  }
  void measure();
  uint64_t block_bytes(const Record& block) const;
  uint64_t vtable(uint32_t begin) const { return kHead + begin; }
  // A string, behind the recorder's own four bytes.
  uint64_t text(uint32_t place) const {
    return place == 0 ? 0 : texts_ + (place - recorder_.texts_place()) + 4;
  }
  void write_root(Writer& out) const;
  uint32_t n_allocations(const Record& block) const;
  void write_run(Writer& out, uint32_t name, int32_t bundled_case, uint32_t n_allocators) const;
  void write_allocators(Writer& out, const Record& block, uint32_t n) const;
  // `allocator` is the number of an allocation in its block, from 1.
  void write_event(Writer& out, const Record& record, uint32_t allocator) const;
  void write_profile(Writer& out, const Record& record) const;
  void write_value(Writer& out, const Record& record) const;
  void write_tensor(Writer& out, const Record& record) const;
  void write_dropped(Writer& out) const;

  const TraceRecorder& recorder_;
  Layout layout_;
  uint32_t n_blocks_ = 0;
  uint64_t texts_ = 0;  // where they begin
};

uint64_t Dump::block_bytes(const Record& block) const {
  const auto n_events = static_cast<uint32_t>(block.number);
  uint64_t bytes = kRunBytes + allocators_bytes(n_allocations(block)) + events_bytes(n_events);
  const Record* record = &block;
  for (uint32_t i = 0; i < n_events; ++i) {
    record = recorder_.next(*record);
    bytes += event_bytes(*record);
  }
  return bytes;
}

uint32_t Dump::n_allocations(const Record& block) const {
  uint32_t n = 0;
  const Record* record = &block;
  for (int32_t i = 0; i < block.number; ++i) {
    record = recorder_.next(*record);
    if (record->kind == RecordKind::Allocation) ++n;
  }
  return n;
}

void Dump::measure() {
  uint64_t blocks = 0;
  for (const Record* r = recorder_.first(); r != nullptr; r = recorder_.next(*r)) {
    if (r->kind != RecordKind::Block) continue;
    ++n_blocks_;
    blocks += block_bytes(*r);
  }
  if (has_dropped()) {
    ++n_blocks_;
    blocks += kRunBytes + events_bytes(2) + uint64_t{2} * (kEventBytes + kProfileBytes);
  }
  texts_ = kHead + layout_.vtables.bytes() + kRootBytes + events_bytes(n_blocks_) + blocks;
}

bool Dump::write(ByteSink& sink) {
  Writer out(&sink);
  out.put(static_cast<uint32_t>(size() - 4));
  out.reach(kHead + layout_.vtables.bytes());
  out.bytes("ED00", 4);
  out.put(uint32_t{0});
  out.bytes(layout_.vtables.words(), layout_.vtables.bytes());
  write_root(out);
  uint32_t allocator = 0;
  for (const Record* r = recorder_.first(); r != nullptr; r = recorder_.next(*r)) {
    if (r->kind != RecordKind::Block) {
      if (r->kind == RecordKind::Allocation) ++allocator;
      write_event(out, *r, allocator);
      continue;
    }
    allocator = 0;
    const auto n_events = static_cast<uint32_t>(r->number);
    const uint32_t n_allocators = n_allocations(*r);
    write_run(out, r->name, r->instruction, n_allocators);
    write_allocators(out, *r, n_allocators);
    uint64_t event = out.place() + events_bytes(n_events);
    out.put(n_events);
    const Record* record = r;
    for (uint32_t i = 0; i < n_events; ++i) {
      record = recorder_.next(*record);
      out.reach(event);
      event += event_bytes(*record);
    }
    if (n_events % 2 == 0) out.put(uint32_t{0});
  }
  if (has_dropped()) write_dropped(out);
  out.bytes(recorder_.texts().data(), recorder_.texts().size());
  out.flush();
  return out.ok();
}

void Dump::write_root(Writer& out) const {
  out.table(vtable(layout_.root));
  out.put(uint32_t{0});  // version
  out.reach(out.place() + 8);
  out.put(uint32_t{0});
  uint64_t block = out.place() + events_bytes(n_blocks_);
  out.put(n_blocks_);
  for (const Record* r = recorder_.first(); r != nullptr; r = recorder_.next(*r)) {
    if (r->kind != RecordKind::Block) continue;
    out.reach(block);
    block += block_bytes(*r);
  }
  if (has_dropped()) out.reach(block);
  if (n_blocks_ % 2 == 0) out.put(uint32_t{0});
}

void Dump::write_run(Writer& out, uint32_t name, int32_t bundled_case,
                     uint32_t n_allocators) const {
  out.table(vtable(layout_.run));
  out.reach(text(name));
  out.put(bundled_case);
  // Allocators are behind the table; if there are none, its last bytes are the empty vector.
  out.reach(out.place() + (n_allocators > 0 ? 12 : 8));
  out.reach(out.place() + 8 + allocators_bytes(n_allocators));  // events
  out.put(uint32_t{0});
}

// Each allocation has an allocator of its own, which has its name.
void Dump::write_allocators(Writer& out, const Record& block, uint32_t n) const {
  if (n == 0) return;
  const uint64_t first = out.place() + events_bytes(n);
  out.put(n);
  for (uint32_t i = 0; i < n; ++i) out.reach(first + uint64_t{i} * kAllocatorBytes);
  if (n % 2 == 0) out.put(uint32_t{0});
  const Record* record = &block;
  for (int32_t i = 0; i < block.number; ++i) {
    record = recorder_.next(*record);
    if (record->kind != RecordKind::Allocation) continue;
    out.table(vtable(layout_.allocator));
    out.reach(text(record->name));
  }
}

void Dump::write_event(Writer& out, const Record& record, uint32_t allocator) const {
  if (record.kind == RecordKind::Allocation) {
    // It is a stretch of no time as well: ExecuTorch's Inspector refuses events that are neither
    // that nor a value.
    out.table(vtable(layout_.allocation_event));
    out.reach(out.place() + 12);
    out.reach(out.place() + 8 + kProfileBytes);
    out.put(uint32_t{0});
    Record stretch = record;
    stretch.first = stretch.second;
    write_profile(out, stretch);
    out.table(vtable(layout_.allocation));
    out.put(allocator);
    out.put(record.first);
    return;
  }
  const bool is_profile = record.kind == RecordKind::Profile;
  out.table(vtable(is_profile ? layout_.profile_event : layout_.debug_event));
  out.reach(out.place() + 4);
  if (is_profile) return write_profile(out, record);
  write_value(out, record);
}

void Dump::write_profile(Writer& out, const Record& record) const {
  const uint32_t mask =
      (record.name != 0 ? 1 : 0) | (record.id_text != 0 ? 2 : 0) | (record.metadata != 0 ? 4 : 0);
  out.table(vtable(layout_.profile[mask]));
  out.reach(text(record.name));
  out.put(record.chain);
  out.put(record.instruction);
  out.put(record.number);
  out.reach(text(record.id_text));
  out.reach(text(record.metadata));
  out.put(uint32_t{0});
  out.put(record.first);
  out.put(record.second);
}

void Dump::write_value(Writer& out, const Record& record) const {
  out.table(vtable(layout_.debug[record.id_text != 0 ? 1 : 0]));
  out.put(record.instruction);
  out.put(static_cast<uint64_t>(int64_t{record.chain}));
  out.reach(out.place() + 16);
  out.put(record.number);
  out.reach(text(record.id_text));
  out.put(uint32_t{0});

  out.table(vtable(layout_.value[record.value][record.is_output ? 1 : 0]));
  out.reach(out.place() + 12 + kBoolBytes);
  out.reach(record.is_output ? out.place() + 8 : 0);
  out.put(uint32_t{record.value});
  out.table(vtable(layout_.boolean));
  out.put(uint32_t{1});

  if (record.value == kTensor) return write_tensor(out, record);
  out.table(vtable(layout_.number));
  out.put(uint32_t{0});
  out.put(record.first);
}

void Dump::write_tensor(Writer& out, const Record& record) const {
  out.table(vtable(layout_.tensor));
  // A vector of 64-bit numbers is behind a gap of four bytes, so that they are aligned.
  out.reach(out.place() + 20 + 4);
  out.reach(out.place() + 16 + kVectorHead + uint64_t{record.rank} * 8 + 4);
  out.put(uint32_t{static_cast<uint8_t>(record.dtype)});
  out.put(record.first);
  const RecordDim* dims = recorder_.dims(record);
  for (const bool is_stride : {false, true}) {
    out.put(uint32_t{0});
    out.put(uint32_t{record.rank});
    for (uint32_t i = 0; i < record.rank; ++i) {
      out.put(is_stride ? dims[i].stride : dims[i].size);
    }
  }
}

void Dump::write_dropped(Writer& out) const {
  const uint32_t* names = recorder_.dropped_texts();
  write_run(out, names[0], -1, 0);
  const uint64_t first = out.place() + events_bytes(2);
  out.put(uint32_t{2});
  out.reach(first);
  out.reach(first + kEventBytes + kProfileBytes);
  out.put(uint32_t{0});
  const uint64_t counts[] = {recorder_.dropped(), recorder_.dropped_values()};
  for (size_t i = 0; i < 2; ++i) {
    Record record;
    record.name = names[1 + i];
    record.second = counts[i];
    write_event(out, record, 0);
  }
}

}  // namespace

uint64_t etdump_size(const TraceRecorder& recorder) { return Dump(recorder).size(); }

Status write_etdump(const TraceRecorder& recorder, ByteSink& sink) {
  Dump dump(recorder);
  if (dump.size() > INT32_MAX) return Code::OutOfResources;
  return dump.write(sink) ? Status() : Status(Code::AccessFailed);
}

}  // namespace rushlight
