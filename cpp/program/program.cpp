#include "rushlight/program/program.h"

#include "rushlight/program/plan_check.h"
#include "rushlight/program/program_fb.h"

namespace rushlight {
namespace {

constexpr size_t kHeaderOffset = 8;
constexpr size_t kMinHeader = 24;    // magic, length, program size, segment base
constexpr size_t kSizedHeader = 32;  // the same, with the size of the segment data
constexpr char kHeaderMagic[] = "eh00";

char printable(uint8_t byte) { return byte >= 0x20 && byte < 0x7f ? static_cast<char>(byte) : '?'; }

Status fail_identifier(const uint8_t* identifier, Message& message) {
  const char* hint = "";
  if (std::memcmp(identifier, "FT01", 4) == 0) hint = "; this is a data file (.ptd)";
  if (std::memcmp(identifier, "BP08", 4) == 0) {
    hint = "; this is a bundled program (.bpte), with a program in it";
  }
  if (identifier[0] == 'E' && identifier[1] == 'T') hint = "; it has another version of the format";
  return message.fail(Code::InvalidProgram,
                      "not a .pte program: the identifier is '%c%c%c%c', not 'ET12'%s",
                      printable(identifier[0]), printable(identifier[1]), printable(identifier[2]),
                      printable(identifier[3]), hint);
}

// True if [offset, offset + size) is inside of `limit` bytes.
bool in_range(uint64_t offset, uint64_t size, uint64_t limit) {
  return offset <= limit && size <= limit - offset;
}

// The bytes from part `index` of a segment to the end of the segment; empty if there is no such
// part.
Span<const uint8_t> part(const Program& program, fb::SubsegmentOffsets table, size_t index) {
  if (index == 0 || index >= table.offsets().size()) return {};
  const Span<const uint8_t> segment = program.segment(table.segment_index());
  const size_t offset = static_cast<size_t>(table.offsets()[index]);
  return {segment.data() + offset, segment.size() - offset};
}

Status check_parts(const Program& program, fb::SubsegmentOffsets table, const char* what,
                   Message& message) {
  const fb::Vector<uint64_t> offsets = table.offsets();
  if (offsets.size() <= 1) return {};  // the first one is a placeholder
  if (table.segment_index() >= program.n_segments()) {
    return message.fail(Code::InvalidProgram, "the %s are in segment %u of %zu", what,
                        static_cast<unsigned>(table.segment_index()), program.n_segments());
  }
  const size_t size = program.segment(table.segment_index()).size();
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] <= size) continue;
    return message.fail(Code::InvalidProgram,
                        "number %zu of the %s starts at byte %llu of a segment of %zu bytes", i,
                        what, static_cast<unsigned long long>(offsets[i]), size);
  }
  return {};
}

}  // namespace

Status Program::load(DataLoader& loader) {
  message_.clear();
  order_.clear();
  image_ = flatbuffer_ = segments_ = {};
  Result<Span<const uint8_t>> image = loader.load(0, loader.size());
  if (!image.ok()) return message_.fail(image.status().code(), "the program cannot be read");
  image_ = image.value();
  loader_ = &loader;
  Status status = read_header(message_);
  if (status.ok()) status = check_root(message_);
  if (!status.ok()) image_ = flatbuffer_ = segments_ = {};
  return status;
}

Status Program::read_header(Message& message) {
  const uint8_t* data = image_.data();
  const uint64_t size = image_.size();
  if (size < kHeaderOffset) {
    return message.fail(Code::InvalidProgram, "not a .pte program: only %zu bytes", image_.size());
  }
  if (!fb::has_identifier(data, image_.size(), fb::kProgramIdentifier)) {
    return fail_identifier(data + 4, message);
  }
  flatbuffer_ = image_;
  if (size < kHeaderOffset + 4 || std::memcmp(data + kHeaderOffset, kHeaderMagic, 4) != 0) {
    return {};  // the program has no segments
  }
  const uint8_t* header = data + kHeaderOffset;
  const uint32_t length = size >= kHeaderOffset + 8 ? fb::read<uint32_t>(header + 4) : 0;
  if (length < kMinHeader || !in_range(kHeaderOffset, length, size)) {
    return message.fail(Code::InvalidProgram, "the header is damaged: its length is %lu",
                        static_cast<unsigned long>(length));
  }
  const uint64_t program_size = fb::read<uint64_t>(header + 8);
  const uint64_t segment_base = fb::read<uint64_t>(header + 16);
  const uint64_t segment_bytes = length >= kSizedHeader ? fb::read<uint64_t>(header + 24) : 0;
  if (program_size > size || !in_range(segment_base, segment_bytes, size)) {
    return message.fail(Code::InvalidProgram,
                        "the file has %zu bytes, but its header speaks of a program of %llu and of "
                        "segments at %llu of %llu bytes; it may have been cut",
                        image_.size(), static_cast<unsigned long long>(program_size),
                        static_cast<unsigned long long>(segment_base),
                        static_cast<unsigned long long>(segment_bytes));
  }
  flatbuffer_ = {data, static_cast<size_t>(program_size)};
  segments_ = {data + segment_base, static_cast<size_t>(size - segment_base)};
  return {};
}

Status Program::check_root(Message& message) {
  if (!fb::verify_Program(flatbuffer_.data(), flatbuffer_.size())) {
    return message.fail(Code::InvalidProgram,
                        "the program is damaged: its tables lead outside of its %zu bytes",
                        flatbuffer_.size());
  }
  const fb::Program program = root();
  if (program.version() != 0) {
    return message.fail(Code::NotSupported,
                        "the program has schema version %lu; this runtime reads version 0",
                        static_cast<unsigned long>(program.version()));
  }
  for (size_t i = 0; i < program.segments().size(); ++i) {
    const fb::DataSegment segment = program.segments()[i];
    if (segment.size() == 0 && segments_.empty()) continue;
    if (in_range(segment.offset(), segment.size(), segments_.size())) continue;
    return message.fail(Code::InvalidProgram,
                        "segment %zu, at %llu of %llu bytes, leaves the %zu bytes of segments", i,
                        static_cast<unsigned long long>(segment.offset()),
                        static_cast<unsigned long long>(segment.size()), segments_.size());
  }
  RL_TRY(check_parts(*this, program.constant_segment(), "constants", message));
  if (!program.mutable_data_segments().empty()) {
    RL_TRY(check_parts(*this, program.mutable_data_segments()[0], "initial values", message));
  }
  uint64_t key_bytes = 0;
  for (size_t i = 0; i < program.named_data().size(); ++i) {
    key_bytes += program.named_data()[i].key().size();
    if (program.named_data()[i].segment_index() < program.segments().size()) continue;
    const StringView key = program.named_data()[i].key();
    return message.fail(Code::InvalidProgram, "the data named '%.*s' is in segment %lu of %zu",
                        key.len(), key.data(),
                        static_cast<unsigned long>(program.named_data()[i].segment_index()),
                        program.segments().size());
  }
  if (key_bytes > flatbuffer_.size()) {
    return message.fail(Code::InvalidProgram,
                        "the program is damaged: the names of its data take more bytes than it "
                        "has");
  }
  for (size_t i = 0; i < n_methods(); ++i) {
    if (!method_name(i).empty()) continue;
    return message.fail(Code::InvalidProgram, "method %zu has no name", i);
  }
  return {};
}

fb::Program Program::root() const { return fb::root_Program(flatbuffer_.data()); }

size_t Program::n_methods() const { return loaded() ? root().execution_plan().size() : 0; }

StringView Program::method_name(size_t i) const { return root().execution_plan()[i].name(); }

Result<MethodMeta> Program::method_meta(StringView name, Message* message) const {
  Message unread;
  Message& out = message != nullptr ? *message : unread;
  for (size_t i = 0; i < n_methods(); ++i) {
    if (method_name(i) != name) continue;
    MethodMeta meta;
    meta.program_ = this;
    meta.index_ = static_cast<uint32_t>(i);
    const Status status = check_plan(*this, meta.plan(), &meta.sizes_, out);
    if (!status.ok()) return status;
    return meta;
  }
  const Status status = out.fail(Code::InvalidArgument,
                                 "there is no method '%.*s'; there are:", name.len(), name.data());
  for (size_t i = 0; i < n_methods() && i < 32; ++i) {
    out.append(" %.*s", method_name(i).len(), method_name(i).data());
  }
  return status;
}

size_t Program::n_segments() const { return root().segments().size(); }

Span<const uint8_t> Program::segment(size_t i) const {
  const fb::DataSegment segment = root().segments()[i];
  if (segment.size() == 0) return {};
  return {segments_.data() + segment.offset(), static_cast<size_t>(segment.size())};
}

void Program::release(Span<const uint8_t> bytes) const {
  if (!bytes.empty()) loader_->release(bytes);
}

void Program::release(StringView key) const {
  const Result<Span<const uint8_t>> bytes = get(key);
  if (bytes.ok()) release(bytes.value());
}

Span<const uint8_t> Program::constant(size_t index) const {
  const fb::Program program = root();
  if (program.constant_segment().offsets().size() > 1) {
    return part(*this, program.constant_segment(), index);
  }
  if (index >= program.constant_buffer().size()) return {};
  return fb::as_span(program.constant_buffer()[index].storage());
}

Span<const uint8_t> Program::mutable_state(size_t index) const {
  const fb::Tables<fb::SubsegmentOffsets> tables = root().mutable_data_segments();
  return tables.empty() ? Span<const uint8_t>() : part(*this, tables[0], index);
}

Result<Span<const uint8_t>> Program::get(StringView key) const {
  const size_t i = order_.find(*this, key);
  if (i == n_keys()) return Code::NotFound;
  return segment(root().named_data()[i].segment_index());
}

void Program::sort_keys(uint32_t* order) { order_.sort(*this, order); }

size_t Program::n_keys() const { return loaded() ? root().named_data().size() : 0; }

StringView Program::key(size_t i) const { return root().named_data()[i].key(); }

}  // namespace rushlight
