// Adapters (LoRA) of a language model, which change its linear layers for single texts: files
// (.ptd) that rushlight.llm.adapter writes, mapped and used where they lie. A file belongs to the
// model that it was made for, and may come from anywhere: everything is checked when it is opened.
//
// It has the entry "rushlight/adapter", a JSON object with the names of the layers, and for each
// layer the tensors "lora/NAME/a" and "lora/NAME/b" (docs/llm/adapters.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/delegate/adapter.h"
#include "rushlight/delegate/file_store.h"
#include "rushlight/program/external_data.h"

namespace rushlight::llm {

// A linear layer of the model.
struct AdapterSite {
  std::string name;
  uint32_t in = 0;
  uint32_t out = 0;
};

// What a program says of the adapters that it takes.
struct AdapterFacts {
  uint32_t rank = 0;  // the greatest; 0: it takes none
  std::string base;   // a digest of the model
  std::vector<AdapterSite> sites;
};

class Adapter {
 public:
  // Maps a file. Returns NotSupported if the program takes no adapters, AccessFailed for a file
  // that cannot be read, InvalidExternalData for one that is no adapter, is damaged, or is of
  // another model.
  static Result<std::shared_ptr<const Adapter>> open(const char* path, const AdapterFacts& facts,
                                                     Message* message);
  // The same for bytes in memory, aligned to 64, which must live as long as the adapter.
  static Result<std::shared_ptr<const Adapter>> read(Span<const uint8_t> file,
                                                     const AdapterFacts& facts, Message* message);
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  const AdapterWeights& weights() const { return weights_; }
  // A number that no other adapter of the process has or had; not 0.
  uint64_t id() const { return id_; }
  // Of the file's content.
  uint64_t digest() const { return digest_; }
  uint32_t rank() const { return rank_; }
  const std::string& base() const { return base_; }

 private:
  Adapter();
  Status load(Span<const uint8_t> file, const AdapterFacts& facts, Message* message);
  Status read_sites(const AdapterFacts& facts, Message* message);
  Status read_site(const AdapterSite& site, SiteWeights* weights, Message* message);
  Result<Span<const uint8_t>> tensor(const std::string& key, DType* dtype,
                                     Span<const int64_t> sizes, Message* message) const;

  FileStore::File file_;
  ExternalData data_;
  std::vector<uint32_t> key_order_;
  std::vector<SiteWeights> sites_;
  AdapterWeights weights_;
  const uint64_t id_;
  uint64_t digest_ = 0;
  uint32_t rank_ = 0;
  std::string base_;
};

// Of a sequence that may have one.
inline uint64_t id_of(const std::shared_ptr<const Adapter>& adapter) {
  return adapter == nullptr ? 0 : adapter->id();
}

// Ok if a model with these facts can use the adapter, which another runner may have opened.
Status check_adapter(const Adapter& adapter, const AdapterFacts& facts, Message* message);

}  // namespace rushlight::llm
