#include "rushlight/backends/xnnpack/weights/packed_cache.h"

#include <cstring>

#include "rushlight/core/digest.h"

namespace rushlight::xnnpack {
namespace {

constexpr uint8_t kMagic[8] = {'R', 'L', 'P', 'A', 'C', 'K', 'E', 'D'};
// Raise it whenever the packing or the keys change.
constexpr uint32_t kVersion = 1;
constexpr uint32_t kByteOrder = 0x01020304;
constexpr size_t kAlignment = 64;
constexpr size_t kFirstParts = 3;  // of the file: header, entries, alignment before the floats

size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

template <typename T>
Span<const uint8_t> bytes_of(Span<const T> items) {
  return {reinterpret_cast<const uint8_t*>(items.data()), items.size() * sizeof(T)};
}

bool same(PackedKey a, PackedKey b) { return a.words[0] == b.words[0] && a.words[1] == b.words[1]; }

// A digest of the keys and sizes of a program's named data, which identifies its weights.
uint64_t digest_of_program(const NamedData* data) {
  uint64_t sum = 0;
  const size_t n = data != nullptr ? data->n_keys() : 0;
  for (size_t i = 0; i < n; ++i) {
    const StringView key = data->key(i);
    const auto stored = data->get(key);
    const uint64_t numbers[] = {sum, digest_of(bytes_of(Span<const char>(key.data(), key.size()))),
                                stored.ok() ? stored.value().size() : 0};
    sum = digest_of(bytes_of(Span<const uint64_t>(numbers)));
  }
  return sum;
}

Status wrong_type(const BackendInit& init, const char* key, const char* wanted) {
  return init.message->fail(Code::InvalidArgument, "the option '%s' must be %s", key, wanted);
}

}  // namespace

struct PackedCache::Header {
  uint8_t magic[8];
  uint32_t version;
  uint32_t byte_order;
  uint64_t program;
  uint64_t size;  // of the whole file
  uint64_t n_entries;
  uint64_t digest;  // of the header, computed with the digest of the entries in this field
  uint64_t unused[2];

  uint64_t digest_with(Span<const Entry> entries) const {
    Header copy = *this;
    copy.digest = digest_of(bytes_of(entries));
    return digest_of(bytes_of(Span<const Header>(&copy, 1)));
  }
};

struct PackedCache::Entry {
  PackedKey key;
  uint64_t offset;
  uint64_t size;    // bytes
  uint64_t digest;  // of these bytes
};

PackedKey packed_key(Span<const int64_t> how, Span<const uint8_t> what) {
  const uint64_t parts[] = {digest_of(bytes_of(how)), digest_of(what), what.size()};
  const uint64_t again[] = {parts[1], parts[0], parts[2]};
  PackedKey key;
  key.words[0] = digest_of(bytes_of(Span<const uint64_t>(parts)));
  key.words[1] = digest_of(bytes_of(Span<const uint64_t>(again)));
  return key;
}

Status PackedCache::open(const BackendInit& init, FileStore* files) {
  if (is_asked_) return {};
  is_asked_ = true;
  const BackendOption* path = init.options.find("packed_cache_path");
  const BackendOption* writes = init.options.find("save_weight_cache_on_disk");
  if (path != nullptr && path->kind != BackendOption::Kind::String) {
    return wrong_type(init, "packed_cache_path", "text");
  }
  if (writes != nullptr && writes->kind != BackendOption::Kind::Bool) {
    return wrong_type(init, "save_weight_cache_on_disk", "a bool");
  }
  if (path == nullptr || path->text.empty()) return {};
  if (files == nullptr) {
    warn(
        "packed_cache_path: this runtime was built without files; weights are packed at each load");
    return {};
  }
  files_ = files;
  writes_ = writes == nullptr || writes->i != 0;
  std::memcpy(path_, path->text.data(), path->text.size());  // no longer than the array
  path_[path->text.size()] = '\0';
  allocator_ = init.allocator;
  added_ = List<Added>(allocator_);
  program_ = digest_of_program(init.named_data);
  Message why;
  const auto file = files_->open(path_, why);
  if (file.ok()) file_ = file.value();
  if (file.status().code() == Code::NotFound) return {};
  const char* problem = file.ok() ? check() : why.text();
  if (problem == nullptr) return {};
  warn("the packed weights in '%s' are not used: %s", path_, problem);
  if (file.ok()) files_->close(file_);
  file_ = {};
  return {};
}

// Why the file cannot be used; nullptr if it can.
const char* PackedCache::check() {
  const Span<const uint8_t> bytes = file_.bytes;
  Header header;
  if (bytes.size() < sizeof(kMagic) || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0) {
    return "it is another kind of file";
  }
  if (bytes.size() < sizeof(header)) return "it is cut";
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kVersion || header.byte_order != kByteOrder) {
    return "it was written by another version of this runtime";
  }
  if (header.size > bytes.size()) return "it is cut";
  const size_t room = (bytes.size() - sizeof(header)) / sizeof(Entry);
  if (header.size != bytes.size() || header.n_entries > room) return "it is damaged";
  const Span<const Entry> all(entries(), static_cast<size_t>(header.n_entries));
  if (header.digest != header.digest_with(all)) return "it is damaged";
  for (const Entry& entry : all) {
    const bool is_inside = entry.offset <= bytes.size() &&
                           entry.size <= bytes.size() - static_cast<size_t>(entry.offset);
    if (!is_inside || entry.offset % kAlignment != 0) return "it is damaged";
  }
  if (header.program != program_) return "it was written for other weights";
  n_entries_ = all.size();
  return nullptr;
}

// The file starts at a multiple of 64.
const PackedCache::Entry* PackedCache::entries() const {
  return reinterpret_cast<const Entry*>(file_.bytes.data() + sizeof(Header));
}

const PackedCache::Entry* PackedCache::find_entry(PackedKey key) const {
  for (size_t i = 0; i < n_entries_; ++i) {
    if (same(entries()[i].key, key)) return &entries()[i];
  }
  return nullptr;
}

Span<const float> PackedCache::find(PackedKey key, int64_t floats, Workers* workers) {
  const Entry* entry = find_entry(key);
  if (entry == nullptr) return {};
  const Span<const uint8_t> bytes(file_.bytes.data() + entry->offset,
                                  static_cast<size_t>(entry->size));
  const bool fits = entry->size == static_cast<uint64_t>(floats) * sizeof(float);
  if (fits && digest_of(bytes, workers) == entry->digest) {
    return {reinterpret_cast<const float*>(bytes.data()), static_cast<size_t>(floats)};
  }
  warn("packed weights in '%s' are damaged, and are packed anew", path_);
  return {};
}

void PackedCache::add(PackedKey key, Span<const float> packed) {
  for (const Added& added : added_.span()) {
    if (same(added.key, key)) return;  // another node has the same weights
  }
  added_.push({key, packed});
}

void PackedCache::save(Workers* workers) {
  if (added_.size() == 0 || !writes_) return;
  const size_t most = n_entries_ + added_.size();
  auto* entries = allocator_->allocate_array<Entry>(most);
  const size_t n_parts = kFirstParts + 2 * most;
  auto* parts = allocator_->allocate_array<Span<const uint8_t>>(n_parts);
  Message why;
  Status status = Code::MemoryAllocationFailed;
  if (entries == nullptr || parts == nullptr || !added_.ok()) {
    status =
        why.fail(Code::MemoryAllocationFailed, "the method's memory has no room for its index");
  } else {
    status = write({entries, most}, {parts, n_parts}, workers, why);
  }
  if (!status.ok()) warn("packed weights cannot be written to '%s': %s", path_, why.text());
  added_ = List<Added>(allocator_);
}

// Keeps the entries of the old file: they may be another method's.
Status PackedCache::write(Span<Entry> all, Span<Span<const uint8_t>> parts, Workers* workers,
                          Message& why) {
  static constexpr uint8_t kZeros[kAlignment] = {};
  size_t n = 0;
  size_t n_parts = kFirstParts;
  size_t offset = 0;  // from the end of the entries, whose number is not known yet
  const auto append = [&](PackedKey key, Span<const uint8_t> bytes, uint64_t sum) {
    all[n++] = {key, offset, bytes.size(), sum};
    parts[n_parts++] = bytes;
    parts[n_parts++] = {kZeros, aligned(bytes.size()) - bytes.size()};
    offset += aligned(bytes.size());
  };
  for (const Added& added : added_.span()) {
    const Span<const uint8_t> bytes = bytes_of(added.packed);
    append(added.key, bytes, digest_of(bytes, workers));
  }
  const size_t n_added = n;
  for (size_t i = 0; i < n_entries_; ++i) {
    const Entry& old = entries()[i];
    bool is_replaced = false;
    for (size_t k = 0; k < n_added; ++k) is_replaced = is_replaced || same(all[k].key, old.key);
    if (is_replaced) continue;
    append(old.key, {file_.bytes.data() + old.offset, static_cast<size_t>(old.size)}, old.digest);
  }
  const size_t unaligned = sizeof(Header) + n * sizeof(Entry);
  const size_t start = aligned(unaligned);
  for (size_t i = 0; i < n; ++i) all[i].offset += start;
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.version = kVersion;
  header.byte_order = kByteOrder;
  header.program = program_;
  header.size = start + offset;
  header.n_entries = n;
  header.digest = header.digest_with({all.data(), n});
  parts[0] = bytes_of(Span<const Header>(&header, 1));
  parts[1] = bytes_of(Span<const Entry>(all.data(), n));
  parts[2] = {kZeros, start - unaligned};
  return files_->replace(path_, {parts.data(), n_parts}, FileStore::Flush::No, why);
}

void PackedCache::close() {
  if (file_.handle != nullptr) files_->close(file_);
  file_ = {};
  files_ = nullptr;
  n_entries_ = 0;
}

}  // namespace rushlight::xnnpack
