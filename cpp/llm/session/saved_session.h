// Sessions in files: the tokens of a text, and the pages with their keys and values as they lie in
// memory. A file belongs to the model that wrote it, by the digest of its program, and to the
// layout of its pages. It may come from anywhere: everything is checked before anything is used.
//
// Only pages that the text fills are written: the end of another one may hold what was taken back,
// or what another text has. Its tokens are computed again when the text goes on.
//
// The file is a header, the tokens, and the pages; see Header in saved_session.cpp. All numbers are
// little-endian.
#pragma once

#include <cstdint>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/delegate/kv_cache.h"
#include "rushlight/llm/session/sequence.h"

namespace rushlight::llm {

// What a session is saved with and must be restored with.
struct SessionOrigin {
  uint64_t model = 0;  // StepModel::digest()
  size_t vocabulary = 0;
  size_t context = 0;
  KvLayout layout;
  size_t page_bytes = 0;
  uint64_t adapter = 0;  // Adapter::digest(); 0: none
};

// Writes a file beside `path`, flushes it to the disk and renames it over it. Returns AccessFailed
// if it cannot be written; what was at `path` is still there then.
Status save_sequence(const Sequence& sequence, const SessionOrigin& origin, const char* path,
                     Message* message);

// A saved session, mapped.
class SavedSession {
 public:
  SavedSession() = default;
  ~SavedSession();
  SavedSession(const SavedSession&) = delete;
  SavedSession& operator=(const SavedSession&) = delete;

  // Returns AccessFailed for a file that cannot be read, InvalidExternalData for one that is no
  // session, is damaged, or is of another origin.
  Status open(const char* path, const SessionOrigin& origin, Message* message);
  // The same for bytes in memory, which must live as long as this object.
  Status read(Span<const uint8_t> file, const SessionOrigin& origin, Message* message);

  Span<const uint8_t> token_bytes() const { return tokens_; }  // int32 each, not aligned
  size_t tokens() const { return tokens_.size() / sizeof(int32_t); }
  size_t cached() const { return cached_; }
  const uint8_t* page(size_t i) const { return pages_.data() + i * page_bytes_; }

 private:
  void* file_ = nullptr;  // a FileMap
  Span<const uint8_t> tokens_;
  Span<const uint8_t> pages_;
  size_t cached_ = 0;
  size_t page_bytes_ = 0;
};

}  // namespace rushlight::llm
