#include "rushlight/llm/adapters/adapter.h"

#include <algorithm>
#include <atomic>
#include <map>

#include "rushlight/core/digest.h"
#include "rushlight/llm/json/parse.h"
#include "rushlight/module/files/desktop_files.h"

namespace rushlight::llm {
namespace {

constexpr char kEntry[] = "rushlight/adapter";
constexpr int64_t kVersion = 1;
constexpr int64_t kPanel = 16;
constexpr uintptr_t kAlignment = 64;

Status damaged(Message* message, const char* what) {
  return message->fail(Code::InvalidExternalData,
                       "the adapter is damaged (%s): make it again with rushlight llm adapter",
                       what);
}

const JsonValue& member(const JsonValue& object, const char* name) {
  static const JsonValue none;
  const JsonValue* value = object.find(name);
  return value != nullptr ? *value : none;
}

int64_t padded(int64_t size) { return (size + kPanel - 1) / kPanel * kPanel; }

Status check_base(const std::string& base, const AdapterFacts& facts, Message* message) {
  if (facts.rank == 0) {
    return message->fail(Code::NotSupported,
                         "the program takes no adapters: export it with adapters= and the greatest "
                         "rank that one may have, for backend='cpu'");
  }
  if (base == facts.base) return {};
  return message->fail(Code::InvalidExternalData,
                       "the adapter was made for another model: make it again with rushlight llm "
                       "adapter, with this program as --base, if it was trained with this model");
}

Status check_rank(uint32_t rank, const AdapterFacts& facts, Message* message) {
  if (rank <= facts.rank) return {};
  return message->fail(Code::InvalidExternalData,
                       "the adapter has rank %u, and the program takes adapters up to rank %u: "
                       "export it with adapters=%u",
                       rank, facts.rank, rank);
}

}  // namespace

Adapter::Adapter()
    : id_([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()) {}

Adapter::~Adapter() {
  if (file_.handle != nullptr) desktop_files().close(file_);
}

Result<std::shared_ptr<const Adapter>> Adapter::open(const char* path, const AdapterFacts& facts,
                                                     Message* message) {
  std::shared_ptr<Adapter> adapter(new Adapter());
  const Result<FileStore::File> file = desktop_files().open(path, *message);
  if (!file.ok()) {
    if (file.status().code() == Code::NotFound) {
      return message->fail(Code::AccessFailed, "'%s': there is no such file", path);
    }
    message->prepend("'%s': ", path);
    return file.status();
  }
  adapter->file_ = file.value();
  const Status status = adapter->load(file.value().bytes, facts, message);
  if (!status.ok()) {
    message->prepend("'%s': ", path);
    return status;
  }
  return std::shared_ptr<const Adapter>(std::move(adapter));
}

Result<std::shared_ptr<const Adapter>> Adapter::read(Span<const uint8_t> file,
                                                     const AdapterFacts& facts, Message* message) {
  std::shared_ptr<Adapter> adapter(new Adapter());
  RL_TRY(adapter->load(file, facts, message));
  return std::shared_ptr<const Adapter>(std::move(adapter));
}

Status Adapter::load(Span<const uint8_t> file, const AdapterFacts& facts, Message* message) {
  MemoryLoader loader(file.data(), file.size());
  const Status status = data_.load(loader);
  if (!status.ok()) {
    *message = data_.message();
    return status;
  }
  key_order_.resize(data_.n_keys());
  data_.sort_keys(key_order_.data());
  RL_TRY(read_sites(facts, message));
  digest_ = digest_of(file);
  weights_.sites = {sites_.data(), sites_.size()};
  return {};
}

Status Adapter::read_sites(const AdapterFacts& facts, Message* message) {
  const Result<Span<const uint8_t>> entry = data_.get(kEntry);
  if (!entry.ok()) {
    return message->fail(Code::InvalidExternalData,
                         "it is no adapter: give a file that rushlight llm adapter wrote");
  }
  const Span<const uint8_t> text = entry.value();
  const Result<JsonValue> parsed =
      parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, message);
  if (!parsed.ok()) return damaged(message, "its description");
  const JsonValue& root = parsed.value();
  const int64_t version = member(root, "version").integer();
  if (version != kVersion) {
    return message->fail(Code::InvalidExternalData,
                         "the adapter has version %lld; this runtime reads version %lld: make it "
                         "again, or use another release",
                         static_cast<long long>(version), static_cast<long long>(kVersion));
  }
  base_ = member(root, "base").string();
  RL_TRY(check_base(base_, facts, message));
  const std::vector<JsonValue>& names = member(root, "sites").items();
  if (names.empty() || names.size() > facts.sites.size()) return damaged(message, "its layers");
  sites_.resize(facts.sites.size());
  std::map<std::string, size_t> indices;
  for (size_t i = 0; i < facts.sites.size(); ++i) indices[facts.sites[i].name] = i;
  for (const JsonValue& name : names) {
    const auto site = indices.find(name.string());
    if (site == indices.end()) {
      return message->fail(Code::InvalidExternalData,
                           "the adapter changes the layer '%s', which the program has not: it was "
                           "made for another model",
                           name.string().c_str());
    }
    SiteWeights* weights = &sites_[site->second];
    if (weights->a != nullptr) return damaged(message, "a layer is there twice");
    RL_TRY(read_site(facts.sites[site->second], weights, message));
    rank_ = std::max(rank_, weights->rank);
  }
  return check_rank(rank_, facts, message);
}

Status Adapter::read_site(const AdapterSite& site, SiteWeights* weights, Message* message) {
  const std::string key = "lora/" + site.name + "/";
  const std::string a = key + "a", b = key + "b";
  const Result<TensorLayout> layout = data_.layout({a.data(), a.size()});
  const int64_t rank = layout.ok() && layout.value().rank == 2 ? layout.value().sizes[0] : 0;
  if (rank < 1) return damaged(message, a.c_str());
  DType of_a = DType::Float32, of_b = DType::Float32;
  const int64_t a_sizes[] = {rank, padded(site.in)};
  const int64_t b_sizes[] = {padded(site.out) / kPanel, rank, kPanel};
  const Result<Span<const uint8_t>> a_bytes = tensor(a, &of_a, a_sizes, message);
  if (!a_bytes.ok()) return a_bytes.status();
  const Result<Span<const uint8_t>> b_bytes = tensor(b, &of_b, b_sizes, message);
  if (!b_bytes.ok()) return b_bytes.status();
  if (of_a != of_b) return damaged(message, b.c_str());
  weights->a = a_bytes.value().data();
  weights->b = b_bytes.value().data();
  weights->dtype = of_a;
  weights->rank = static_cast<uint32_t>(rank);
  weights->in = site.in;
  weights->out = site.out;
  return {};
}

// The bytes of a tensor, which must have these sizes.
Result<Span<const uint8_t>> Adapter::tensor(const std::string& key, DType* dtype,
                                            Span<const int64_t> sizes, Message* message) const {
  const StringView name(key.data(), key.size());
  const Result<TensorLayout> read = data_.layout(name);
  const Result<Span<const uint8_t>> bytes = data_.get(name);
  if (!read.ok() || !bytes.ok()) return damaged(message, key.c_str());
  const TensorLayout& layout = read.value();
  *dtype = layout.dtype;
  bool fits = (layout.dtype == DType::Float32 || layout.dtype == DType::Float16) &&
              layout.rank == sizes.size();
  size_t count = 1;
  for (size_t i = 0; i < sizes.size() && fits; ++i) {
    fits = layout.sizes[i] == sizes[i] && layout.dim_order[i] == i;
    count *= static_cast<size_t>(sizes[i]);
  }
  const auto address = reinterpret_cast<uintptr_t>(bytes.value().data());
  fits = fits && address % kAlignment == 0 &&
         bytes.value().size() >= count * element_size(layout.dtype);
  if (!fits) return damaged(message, key.c_str());
  return bytes.value();
}

Status check_adapter(const Adapter& adapter, const AdapterFacts& facts, Message* message) {
  RL_TRY(check_base(adapter.base(), facts, message));
  return check_rank(adapter.rank(), facts, message);
}

}  // namespace rushlight::llm
