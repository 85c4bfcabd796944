#include "rushlight/llm/session/saved_session.h"

#include <cstring>
#include <vector>

#include "rushlight/core/digest.h"
#include "rushlight/module/files/desktop_files.h"

namespace rushlight::llm {
namespace {

constexpr char kMagic[8] = {'R', 'L', 'S', 'E', 'S', 'S', '0', '2'};

// A file begins with it. The tokens follow, and the pages after them.
struct Header {
  char magic[8];
  uint64_t model;   // and its adapter
  uint64_t tokens;  // how many
  uint64_t cached;  // how many of them are in the pages
  uint64_t page_bytes;
  uint32_t dtype;
  uint32_t layers;
  uint32_t heads;
  uint32_t width;
  uint32_t value_width;
  uint32_t page_tokens;
  uint64_t digest;  // of all of the file but these eight bytes
};
static_assert(sizeof(Header) == 72, "it has no gaps");

bool is_little_endian() {
  const uint16_t one = 1;
  uint8_t first;
  std::memcpy(&first, &one, 1);
  return first == 1;
}

// Of the model, and of the adapter if there is one.
uint64_t origin_digest(const SessionOrigin& origin) {
  if (origin.adapter == 0) return origin.model;
  const uint64_t digest = origin.adapter;
  return extend_digest(origin.model, {reinterpret_cast<const uint8_t*>(&digest), sizeof(digest)});
}

Header header_of(const SessionOrigin& origin) {
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.model = origin_digest(origin);
  header.page_bytes = origin.page_bytes;
  header.dtype = static_cast<uint32_t>(origin.layout.dtype);
  header.layers = origin.layout.layers;
  header.heads = origin.layout.heads;
  header.width = origin.layout.width;
  header.value_width = origin.layout.value_width;
  header.page_tokens = kPageTokens;
  return header;
}

uint64_t digest_of(const Header& header, Span<const uint8_t> tokens,
                   Span<const Span<const uint8_t>> pages) {
  Header plain = header;
  plain.digest = 0;
  uint64_t digest = extend_digest(0, {reinterpret_cast<const uint8_t*>(&plain), sizeof(plain)});
  digest = extend_digest(digest, tokens);
  for (const Span<const uint8_t>& page : pages) digest = extend_digest(digest, page);
  return digest;
}

}  // namespace

Status save_sequence(const Sequence& sequence, const SessionOrigin& origin, const char* path,
                     Message* message) {
  if (!is_little_endian()) {
    return message->fail(Code::NotSupported, "sessions are saved on little-endian machines only");
  }
  const size_t pages = sequence.cached / kPageTokens;
  Header header = header_of(origin);
  header.tokens = sequence.tokens.size();
  header.cached = pages * kPageTokens;
  const Span<const uint8_t> tokens(reinterpret_cast<const uint8_t*>(sequence.tokens.data()),
                                   sequence.tokens.size() * sizeof(int32_t));
  std::vector<Span<const uint8_t>> parts(2);
  for (size_t i = 0; i < pages; ++i) {
    parts.push_back({sequence.table.page(i), origin.page_bytes});
  }
  header.digest = digest_of(header, tokens, {parts.data() + 2, parts.size() - 2});
  parts[0] = {reinterpret_cast<const uint8_t*>(&header), sizeof(header)};
  parts[1] = tokens;
  const Status status =
      desktop_files().replace(path, {parts.data(), parts.size()}, FileStore::Flush::Yes, *message);
  if (!status.ok()) message->prepend("cannot save the session to '%s': ", path);
  return status;
}

SavedSession::~SavedSession() {
  if (file_ != nullptr) desktop_files().close({{}, file_});
}

Status SavedSession::open(const char* path, const SessionOrigin& origin, Message* message) {
  const Result<FileStore::File> file = desktop_files().open(path, *message);
  if (!file.ok()) {
    if (file.status().code() == Code::NotFound) {
      return message->fail(Code::AccessFailed, "'%s': there is no such file", path);
    }
    message->prepend("'%s': ", path);
    return file.status();
  }
  file_ = file.value().handle;
  const Status status = read(file.value().bytes, origin, message);
  if (!status.ok()) message->prepend("'%s': ", path);
  return status;
}

Status SavedSession::read(Span<const uint8_t> file, const SessionOrigin& origin, Message* message) {
  Header header;
  if (file.size() < sizeof(header) || std::memcmp(file.data(), kMagic, sizeof(kMagic)) != 0) {
    return message->fail(Code::InvalidExternalData,
                         "it is no saved session: give a file that Session.save() wrote");
  }
  std::memcpy(&header, file.data(), sizeof(header));
  Header wanted = header_of(origin);
  if (header.model != wanted.model && header.model == origin.model) {
    return message->fail(Code::InvalidExternalData,
                         "the session was saved without an adapter: leave adapter out");
  }
  if (header.model != wanted.model) {
    return message->fail(Code::InvalidExternalData,
                         "the session was saved with another model or adapter: load the program "
                         "that it was saved with, and give the adapter if it had one");
  }
  if (header.dtype != wanted.dtype) {
    return message->fail(Code::InvalidExternalData,
                         "the session was saved with a cache of another type: load the model with "
                         "the kv that it was saved with");
  }
  wanted.tokens = header.tokens;
  wanted.cached = header.cached;
  wanted.digest = header.digest;
  const auto damaged = [&](const char* what) {
    return message->fail(Code::InvalidExternalData,
                         "the saved session is damaged (%s): save it again", what);
  };
  if (std::memcmp(&header, &wanted, sizeof(header)) != 0) return damaged("its layout");
  if (header.tokens > origin.context || header.cached > header.tokens) return damaged("its length");
  const size_t token_bytes = header.tokens * sizeof(int32_t);
  const size_t pages = pages_for(header.cached);
  const size_t left = file.size() - sizeof(header);
  if (left < token_bytes || (left - token_bytes) / origin.page_bytes != pages ||
      (left - token_bytes) % origin.page_bytes != 0) {
    return damaged("its size");
  }
  tokens_ = {file.data() + sizeof(header), token_bytes};
  pages_ = {tokens_.end(), pages * origin.page_bytes};
  cached_ = header.cached;
  page_bytes_ = origin.page_bytes;
  std::vector<Span<const uint8_t>> parts;
  parts.reserve(pages);
  for (size_t i = 0; i < pages; ++i) parts.push_back({page(i), page_bytes_});
  if (digest_of(header, tokens_, {parts.data(), parts.size()}) != header.digest) {
    return damaged("its content");
  }
  for (size_t i = 0; i < header.tokens; ++i) {
    int32_t token;
    std::memcpy(&token, tokens_.data() + i * sizeof(token), sizeof(token));
    if (token < 0 || static_cast<size_t>(token) >= origin.vocabulary) return damaged("its tokens");
  }
  return {};
}

}  // namespace rushlight::llm
