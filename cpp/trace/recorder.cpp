#include "rushlight/trace/recorder.h"

#include <climits>
#include <cstring>
#include <new>

#include "rushlight/platform/platform.h"

namespace rushlight {
namespace {

constexpr size_t kAlignment = 8;
// The number that ExecuTorch gives a type of value (ValueType in schema/etdump.fbs).
constexpr uint8_t kInt = 1, kBool = 2, kDouble = 4, kTensor = 5;

const char* call_name(InstructionKind kind) {
  switch (kind) {
    case InstructionKind::Kernel:
      return "OPERATOR_CALL";
    case InstructionKind::Delegate:
      return "DELEGATE_CALL";
    case InstructionKind::Move:
      return "MOVE_CALL";
    case InstructionKind::JumpFalse:
      return "JF_CALL";
    case InstructionKind::Free:
      return "FREE_CALL";
  }
  return "?";
}

size_t rounded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The block of what was dropped, and its events; they are kept while there is room.
constexpr const char* kDroppedTexts[] = {"Dropped", "rushlight::events", "rushlight::values"};

constexpr size_t kDigits = 24;

// A number's text, which lies in `digits`.
StringView decimal(int64_t number, char (&digits)[kDigits]) {
  size_t at = kDigits;
  uint64_t left = number < 0 ? 0 - static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
  do digits[--at] = static_cast<char>('0' + left % 10);
  while ((left /= 10) != 0);
  if (number < 0) digits[--at] = '-';
  return {digits + at, kDigits - at};
}

StringView id_text(DelegateId id, char (&digits)[kDigits]) {
  return id.text != nullptr ? StringView(id.text) : decimal(id.number, digits);
}

// FNV-1a.
uint32_t hash_of(const uint8_t* bytes, size_t size) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 16777619u;
  return hash ^ (hash >> 16);
}

}  // namespace

TraceRecorder::TraceRecorder(Span<uint8_t> memory, ValueStore* values, ValueLevel level)
    : memory_(memory), values_(values), level_(values != nullptr ? level : ValueLevel::None) {
  // Records are read in place: the buffer begins at an aligned address and ends at a size that the
  // places of texts, of 32 bits, reach.
  const size_t skipped = (kAlignment - reinterpret_cast<uintptr_t>(memory.data())) % kAlignment;
  const size_t size = memory.size() < skipped ? 0 : memory.size() - skipped;
  const size_t limit = size < UINT32_MAX ? size : UINT32_MAX;
  memory_ = {memory.data() + (size > 0 ? skipped : 0), limit / kAlignment * kAlignment};
  clear();
}

void TraceRecorder::clear() {
  front_ = 0;
  back_ = memory_.size();
  in_block_ = in_instruction_ = false;
  dropped_ = dropped_values_ = 0;
  std::memset(heads_, 0, sizeof heads_);
  for (uint32_t i = 0; i < 3; ++i) dropped_texts_[i] = text_of(kDroppedTexts[i]);
}

const Record* TraceRecorder::at(size_t offset) const {
  return offset < front_ ? reinterpret_cast<const Record*>(memory_.data() + offset) : nullptr;
}

const Record* TraceRecorder::first() const { return at(0); }

const Record* TraceRecorder::next(const Record& record) const {
  const auto* begin = reinterpret_cast<const uint8_t*>(&record);
  return at(static_cast<size_t>(begin - memory_.data()) + record.bytes);
}

const RecordDim* TraceRecorder::dims(const Record& record) const {
  return reinterpret_cast<const RecordDim*>(&record + 1);
}

StringView TraceRecorder::text(uint32_t place) const {
  if (place == 0) return {};
  Text text;
  std::memcpy(&text, memory_.data() + place, sizeof text);
  return {reinterpret_cast<const char*>(memory_.data() + place + sizeof text), text.size};
}

Span<const uint8_t> TraceRecorder::texts() const {
  return {memory_.data() + back_, memory_.size() - back_};
}

// Returns 0, which is the place of the first record, if there is no room.
uint32_t TraceRecorder::keep_text(const void* data, size_t size) {
  if (data == nullptr || size == 0) return 0;
  const auto* bytes = static_cast<const uint8_t*>(data);
  uint32_t& head = heads_[hash_of(bytes, size) % kBuckets];
  for (uint32_t place = head; place != 0;) {
    Text text;
    std::memcpy(&text, memory_.data() + place, sizeof text);
    if (text.size == size && std::memcmp(memory_.data() + place + sizeof text, bytes, size) == 0) {
      return place;
    }
    place = text.next;
  }
  const size_t room = back_ - front_;
  if (size >= room || rounded(sizeof(Text) + size + 1) >= room) return 0;
  const size_t taken = rounded(sizeof(Text) + size + 1);
  back_ -= taken;
  std::memset(memory_.data() + back_ + taken - kAlignment, 0, kAlignment);
  const Text text = {head, static_cast<uint32_t>(size)};
  std::memcpy(memory_.data() + back_, &text, sizeof text);
  std::memcpy(memory_.data() + back_ + sizeof text, bytes, size);
  head = static_cast<uint32_t>(back_);
  return head;
}

// Returns nullptr, and counts the event, if there is no room, or there was none for its block.
Record* TraceRecorder::append(RecordKind kind, size_t extra) {
  const size_t bytes = sizeof(Record) + extra;
  if (bytes > back_ - front_ || (kind != RecordKind::Block && !in_block_)) {
    ++(kind == RecordKind::Value ? dropped_values_ : dropped_);
    return nullptr;
  }
  auto* record = new (memory_.data() + front_) Record();
  record->bytes = static_cast<uint32_t>(bytes);
  record->kind = kind;
  front_ += bytes;
  if (in_block_) ++reinterpret_cast<Record*>(memory_.data() + block_)->number;
  return record;
}

void TraceRecorder::begin(const char* name, StringView method) {
  in_block_ = in_instruction_ = false;
  const bool is_run = StringView(name) == "Method::execute";
  const uint32_t block = text_of(is_run ? "Execute" : "Default");
  block_method_ = text_of(method);
  const size_t place = front_;
  Record* record = append(RecordKind::Block, 0);
  if (record != nullptr) {
    record->name = block;
    record->metadata = block_method_;
    record->instruction = is_run ? bundled_case_ : -1;
    record->number = 0;
    block_ = place;
    in_block_ = true;
  }
  block_start_ = now_ns();
}

void TraceRecorder::end(const char* name) {
  const uint64_t stop = now_ns();
  in_instruction_ = false;
  const uint32_t text = text_of(name);
  Record* record = append(RecordKind::Profile, 0);
  if (record != nullptr) {
    record->name = text;
    record->metadata = block_method_;
    record->first = block_start_;
    record->second = stop;
  }
  in_block_ = false;
}

void TraceRecorder::begin_instruction(uint32_t chain, uint32_t instruction, InstructionKind kind,
                                      StringView name) {
  in_instruction_ = true;
  chain_ = chain;
  instruction_ = instruction;
  kind_ = kind;
  called_ = name;
  name_ = 0;
  if (kind == InstructionKind::Kernel) {
    // As ExecuTorch calls them: without the namespace.
    for (size_t i = name.size(); i >= 2; --i) {
      if (name.data()[i - 1] != ':' || name.data()[i - 2] != ':') continue;
      name = {name.data() + i, name.size() - i};
      break;
    }
    char text[128] = "native_call_";
    constexpr size_t kPrefix = sizeof "native_call_" - 1;
    const size_t size = name.size() < sizeof text - kPrefix ? name.size() : sizeof text - kPrefix;
    std::memcpy(text + kPrefix, name.data(), size);
    name_ = keep_text(text, kPrefix + size);
  }
  start_ = now_ns();
}

void TraceRecorder::end_instruction(const InstructionArguments* arguments) {
  const uint64_t stop = now_ns();
  if (arguments != nullptr && wants_values(nullptr)) {
    const size_t begin = kind_ == InstructionKind::Delegate ? 0 : arguments->first_written;
    for (size_t i = begin; i < arguments->all.size(); ++i) {
      value(*arguments->all[i], false);
    }
  }
  const uint32_t names[] = {name_, text_of(call_name(kind_))};
  // The call of a delegate has its backend's name where others have metadata.
  const uint32_t backend = kind_ == InstructionKind::Delegate ? text_of(called_) : 0;
  for (const uint32_t name : names) {
    if (name == 0) continue;
    Record* record = append(RecordKind::Profile, 0);
    if (record == nullptr) continue;
    place(*record);
    record->name = name;
    record->metadata = backend;
    record->first = start_;
    record->second = stop;
  }
  in_instruction_ = false;
}

void TraceRecorder::place(Record& record) const {
  if (!in_instruction_) return;
  record.chain = static_cast<int32_t>(chain_);
  record.instruction = static_cast<int32_t>(instruction_);
}

bool TraceRecorder::wants_values(const DelegateId* inside) const {
  if (level_ != ValueLevel::All) return false;
  if (chosen_.empty()) return true;
  char digits[kDigits];
  const StringView instruction = decimal(instruction_, digits);
  char id_digits[kDigits];
  const StringView place = inside != nullptr ? id_text(*inside, id_digits) : StringView();
  for (const StringView name : chosen_) {
    if (name == called_ || name == instruction) return true;
    const size_t size = instruction.size();
    if (inside == nullptr || name.size() != size + 1 + place.size()) continue;
    if (name.data()[size] == '/' && StringView(name.data(), size) == instruction &&
        StringView(name.data() + size + 1, place.size()) == place) {
      return true;
    }
  }
  return false;
}

// Numbers that the format has no room for become texts.
void TraceRecorder::set_id(Record& record, DelegateId id) {
  if (id.text == nullptr && id.number >= 0 && id.number <= INT_MAX) {
    record.number = static_cast<int32_t>(id.number);
    return;
  }
  char digits[kDigits];
  record.id_text = text_of(id_text(id, digits));
}

void TraceRecorder::delegate_event(DelegateId id, uint64_t start, uint64_t stop,
                                   Span<const uint8_t> metadata) {
  Record event;
  set_id(event, id);
  event.metadata = keep_text(metadata.data(), metadata.size());
  Record* record = append(RecordKind::Profile, 0);
  if (record == nullptr) return;
  place(*record);
  record->number = event.number;
  record->id_text = event.id_text;
  record->metadata = event.metadata;
  record->first = start;
  record->second = stop;
}

// Its elements are written without gaps, in row-major order, a row at a time.
void TraceRecorder::delegate_value(DelegateId id, const DelegateValue& value) {
  if (!wants_values(&id)) return;
  const size_t rank = value.sizes.size();
  const size_t width = element_size(value.dtype);
  size_t numel = 1;
  for (const int64_t size : value.sizes) numel *= static_cast<size_t>(size);
  Record event;
  set_id(event, id);
  Record* record = append_tensor(value.dtype, rank, numel);
  if (record == nullptr) return;
  record->number = event.number;
  record->id_text = event.id_text;
  auto* dims = reinterpret_cast<RecordDim*>(record + 1);
  int64_t stride = 1;
  for (size_t i = rank; i-- > 0;) {
    dims[i] = {value.sizes[i], stride};
    if (value.sizes[i] > 1) stride *= value.sizes[i];
  }
  if (numel == 0) return;
  const size_t row = rank > 0 ? static_cast<size_t>(value.sizes[rank - 1]) : 1;
  const int64_t step = rank > 0 ? value.strides[rank - 1] : 1;
  int64_t at[kMaxRank] = {};
  for (size_t done = 0; done < numel; done += row) {
    const uint8_t* from = value.data;
    for (size_t i = 0; i + 1 < rank; ++i) {
      from += at[i] * value.strides[i] * static_cast<int64_t>(width);
    }
    if (step == 1) {
      append_elements(value.dtype, from, row);
    } else {
      for (size_t k = 0; k < row; ++k) {
        append_elements(value.dtype, from + static_cast<int64_t>(k * width) * step, 1);
      }
    }
    for (size_t i = rank > 0 ? rank - 1 : 0; i-- > 0;) {
      if (++at[i] < value.sizes[i]) break;
      at[i] = 0;
    }
  }
}

void TraceRecorder::allocation(const char* memory, int32_t index, uint64_t bytes) {
  if (bytes == 0) return;
  char name[64];
  char digits[kDigits];
  const StringView number = index >= 0 ? decimal(index, digits) : StringView();
  const StringView words = memory;
  if (words.size() + 1 + number.size() > sizeof name) return;
  size_t size = words.size();
  std::memcpy(name, words.data(), size);
  if (number.size() > 0) {
    name[size++] = ' ';
    std::memcpy(name + size, number.data(), number.size());
    size += number.size();
  }
  const uint32_t text = keep_text(name, size);
  if (text == 0) {  // an allocator has a name
    ++dropped_;
    return;
  }
  Record* record = append(RecordKind::Allocation, 0);
  if (record == nullptr) return;
  record->name = text;
  record->instruction = -1;
  record->first = bytes;
  record->second = now_ns();
}

void TraceRecorder::output(const EValue& output) {
  in_instruction_ = false;
  if (level_ != ValueLevel::None) value(output, true);
}

void TraceRecorder::value(const EValue& value, bool is_output) {
  if (value.tag == Tag::Tensor) return tensor(*value.t, is_output);
  if (value.tag == Tag::TensorList || value.tag == Tag::OptionalTensorList) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (value.tensor_at(i) != nullptr) tensor(*value.tensor_at(i), is_output);
    }
    return;
  }
  if (!value.is_scalar()) return;
  Record* record = append(RecordKind::Value, 0);
  if (record == nullptr) return;
  place(*record);
  record->is_output = is_output;
  record->value = value.tag == Tag::Int ? kInt : value.tag == Tag::Bool ? kBool : kDouble;
  std::memcpy(&record->first, &value.i, sizeof record->first);
}

void TraceRecorder::tensor(const Tensor& tensor, bool is_output) {
  const size_t numel = tensor.data == nullptr ? 0 : static_cast<size_t>(tensor.numel);
  Record* record = append_tensor(tensor.dtype, tensor.rank, numel);
  if (record == nullptr) return;
  record->is_output = is_output;
  auto* dims = reinterpret_cast<RecordDim*>(record + 1);
  for (size_t i = 0; i < tensor.rank; ++i) dims[i] = {tensor.sizes[i], tensor.strides[i]};
  if (numel > 0) append_elements(tensor.dtype, static_cast<const uint8_t*>(tensor.data), numel);
}

// ExecuTorch's Inspector refuses traces with bfloat16, which float32 holds exactly.
DType TraceRecorder::recorded(DType dtype) {
  return dtype == DType::BFloat16 ? DType::Float32 : dtype;
}

void TraceRecorder::append_elements(DType dtype, const uint8_t* data, size_t count) {
  if (dtype != DType::BFloat16) {
    values_->append({data, count * element_size(dtype)});
    return;
  }
  constexpr size_t kAtATime = 64;
  uint32_t wide[kAtATime];
  while (count > 0) {
    const size_t n = count < kAtATime ? count : kAtATime;
    for (size_t i = 0; i < n; ++i) {
      uint16_t bits;
      std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
      wide[i] = uint32_t{bits} << 16;
    }
    values_->append({reinterpret_cast<const uint8_t*>(wide), n * sizeof wide[0]});
    data += n * sizeof(uint16_t);
    count -= n;
  }
}

// The record of a tensor whose elements the caller appends to the values. Returns nullptr if there
// is no room for either: neither tells anything without the other.
Record* TraceRecorder::append_tensor(DType dtype, size_t rank, size_t numel) {
  const size_t extra = rank * sizeof(RecordDim), bytes = numel * element_size(recorded(dtype));
  if (!in_block_ || rank > kMaxRank || sizeof(Record) + extra > back_ - front_) {
    ++dropped_values_;
    return nullptr;
  }
  const int64_t begin = bytes > 0 ? values_->begin(bytes) : -1;
  if (begin < 0 && bytes > 0) {
    ++dropped_values_;
    return nullptr;
  }
  Record* record = append(RecordKind::Value, extra);
  place(*record);
  record->value = kTensor;
  record->rank = static_cast<uint8_t>(rank);
  record->dtype = static_cast<int8_t>(recorded(dtype));
  record->first = static_cast<uint64_t>(begin);
  return record;
}

}  // namespace rushlight
