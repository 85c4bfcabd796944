// A file of packed weights, which the delegates of a method share: one load packs the weights, the
// next one maps them. A file that is cut, damaged, of another version or for other weights is not
// used but written again, and the log says why.
//
// The file: a header, entries, then the packed floats of each entry at a multiple of 64. An entry's
// key says what was packed and how, not for which node. Packed weights are the same on every
// instruction set.
#pragma once

#include "rushlight/backends/xnnpack/translate/builder.h"
#include "rushlight/delegate/backend.h"
#include "rushlight/delegate/file_store.h"

namespace rushlight::xnnpack {

// A key: what was packed, and how.
struct PackedKey {
  uint64_t words[2] = {};
};

// From the parameters of the packing, and from a constant's bytes or, better, a text that
// identifies them.
PackedKey packed_key(Span<const int64_t> how, Span<const uint8_t> what);

class PackedCache {
 public:
  // The options of the first delegate of a method: `packed_cache_path`, and whether to write there,
  // `save_weight_cache_on_disk`. Without a path, there is no file. InvalidArgument for an option of
  // another type. `files` may be nullptr.
  Status open(const BackendInit& init, FileStore* files);
  bool is_open() const { return files_ != nullptr; }
  // The packed floats, valid while the file is open; empty if they are missing or damaged.
  Span<const float> find(PackedKey key, int64_t floats, Workers* workers);
  // Adds floats that were packed and not in the file. They must not move until save().
  void add(PackedKey key, Span<const float> packed);
  // Writes the file if something was added.
  void save(Workers* workers);
  void close();

 private:
  struct Entry;
  struct Header;
  struct Added {
    PackedKey key;
    Span<const float> packed;
  };

  const char* check();
  const Entry* entries() const;
  const Entry* find_entry(PackedKey key) const;
  Status write(Span<Entry> entries, Span<Span<const uint8_t>> parts, Workers* workers,
               Message& why);

  FileStore* files_ = nullptr;
  FileStore::File file_;
  size_t n_entries_ = 0;
  uint64_t program_ = 0;
  bool is_asked_ = false;
  bool writes_ = true;
  char path_[BackendOption::kMaxText + 1] = {};
  Allocator* allocator_ = nullptr;
  List<Added> added_{nullptr};
};

}  // namespace rushlight::xnnpack
