// The file of packed weights: a load uses what another load wrote. A file that is truncated,
// damaged, of another version or for other weights changes no result, is reported, and is replaced.
//
// Usage: test_xnnpack_cache ROUNDS FILE OTHER: two programs with XNNPACK delegates. The packed
// weights of the first one are damaged ROUNDS times.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "check.h"
#include "damage.h"
#include "rushlight/backends/xnnpack/xnnpack_backend.h"
#include "rushlight/core/digest.h"
#include "rushlight/module/files/desktop_files.h"
#include "rushlight/module/module.h"
#include "rushlight/platform/platform.h"
#include "seed.h"

namespace {

using namespace rushlight;
using namespace rushlight::test;
using Bytes = std::vector<uint8_t>;

// The offsets of the numbers in a file's header.
constexpr size_t kHeader = 64;
constexpr size_t kVersionAt = 8;
constexpr size_t kProgramAt = 16;
constexpr size_t kEntriesAt = 32;
constexpr size_t kDigestAt = 40;
constexpr size_t kEntry = 40;

std::string g_log;

void keep_log(LogLevel, const char* text, size_t length) { g_log.append(text, length) += '\n'; }

// Files in memory. Each is opened in a block of exactly its size.
class Files final : public FileStore {
 public:
  ~Files() { CHECK(n_open == 0); }
  Result<File> open(const char* path, Message&) override {
    const auto file = files.find(path);
    if (file == files.end()) return Code::NotFound;
    void* block = nullptr;
    const Bytes& bytes = file->second;
    if (posix_memalign(&block, 64, bytes.size()) != 0) std::abort();
    if (!bytes.empty()) std::memcpy(block, bytes.data(), bytes.size());
    ++n_open;
    return File{{static_cast<uint8_t*>(block), bytes.size()}, block};
  }
  void close(File file) override {
    std::free(file.handle);
    --n_open;
  }
  Status replace(const char* path, Span<const Span<const uint8_t>> parts, Flush,
                 Message& why) override {
    if (!may_write) return why.fail(Code::AccessFailed, "the disk is full");
    Bytes& bytes = files[path];
    bytes.clear();
    for (const Span<const uint8_t>& part : parts)
      bytes.insert(bytes.end(), part.begin(), part.end());
    ++n_written;
    return {};
  }

  std::map<std::string, Bytes> files;
  bool may_write = true;
  int n_open = 0;
  int n_written = 0;
};

struct Ran {
  bool ok = false;
  std::vector<Bytes> results;
};

std::vector<BackendOption> with_path(const char* path) {
  return {BackendOption::of_text("packed_cache_path", path)};
}

// Loads a program and runs it with ones.
Ran run(const char* path, FileStore* files, std::vector<BackendOption> backend_options) {
  XnnpackBackend xnnpack(files);
  BackendTable table;
  CHECK(table.add(XnnpackBackend::kId, &xnnpack).ok());
  BackendOptionsMap map;
  Message message;
  CHECK(
      map.set(XnnpackBackend::kId, {backend_options.data(), backend_options.size()}, message).ok());
  ModuleOptions options;
  options.backends = &table;
  options.backend_options = &map;
  Module module;
  CHECK(module.open(path, options).ok());
  Result<Method*> loaded = module.method("forward");
  Ran ran;
  if (!loaded.ok()) return ran;
  Method& method = *loaded.value();
  const std::vector<float> ones(1 << 12, 1.0f);
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const TensorMeta meta = method.meta().input(i).tensor;
    CHECK(method.set_input(i, HostTensor(meta.dtype, meta.shape(), ones.data())).ok());
  }
  ran.ok = method.execute().ok();
  for (size_t i = 0; i < method.n_outputs(); ++i) {
    const Tensor& out = method.output(i).tensor();
    ran.results.emplace_back(out.as<uint8_t>(), out.as<uint8_t>() + out.nbytes());
  }
  return ran;
}

void put(Bytes* bytes, size_t at, uint64_t number, size_t width) {
  std::memcpy(bytes->data() + at, &number, width);
}

uint64_t number_at(const Bytes& bytes, size_t at) {
  uint64_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof(number));
  return number;
}

// Corrects the digests of the header and of the entries.
void seal(Bytes* bytes) {
  if (bytes->size() < kHeader) return;
  const uint64_t n =
      std::min<uint64_t>(number_at(*bytes, kEntriesAt), (bytes->size() - kHeader) / kEntry);
  const size_t size = static_cast<size_t>(n) * kEntry;
  put(bytes, kDigestAt, digest_of({bytes->data() + kHeader, size}), 8);
  put(bytes, kDigestAt, digest_of({bytes->data(), kHeader}), 8);
}

// Checks the effect of the file `damaged`: the same results as without a file, `why` in the log, a
// new file that is equal to the first one, and no further message after that.
void check_replaced(const char* path, const Bytes& damaged, const Bytes& whole, const Ran& expected,
                    const char* why) {
  Files files;
  files.files["x"] = damaged;
  g_log.clear();
  const Ran ran = run(path, &files, with_path("x"));
  CHECK(ran.ok && ran.results == expected.results);
  const bool is_said = g_log.find(why) != std::string::npos;
  if (!is_said) std::fprintf(stderr, "'%s' is not '%s'\n", g_log.c_str(), why);
  CHECK(is_said && g_log.find("'x'") != std::string::npos);
  CHECK(files.n_written == 1 && files.files["x"].size() == whole.size());
  g_log.clear();
  CHECK(run(path, &files, with_path("x")).results == expected.results);
  CHECK(g_log.empty() && files.n_written == 1);
}

void test_two_loads(const char* path, Bytes* whole, Ran* expected) {
  Files files;
  const Ran without = run(path, &files, {});
  CHECK(without.ok && files.files.empty());
  *expected = run(path, &files, with_path("x"));
  CHECK(expected->ok && expected->results == without.results && files.n_written == 1);
  const Ran second = run(path, &files, with_path("x"));
  CHECK(second.ok && second.results == without.results && files.n_written == 1);
  *whole = files.files["x"];
  CHECK(whole->size() > kHeader + kEntry && whole->size() % 64 == 0);
  CHECK(g_log.empty());
}

// Another valid file is trusted: its weights are used.
void test_that_it_is_read(const char* path, const Bytes& whole, const Ran& expected) {
  Bytes bytes = whole;
  const size_t n = static_cast<size_t>(number_at(bytes, kEntriesAt));
  for (size_t i = 0; i < n; ++i) {
    const size_t entry = kHeader + i * kEntry;
    const size_t offset = number_at(bytes, entry + 16);
    const size_t size = number_at(bytes, entry + 24);
    std::memset(bytes.data() + offset, 0, size);
    put(&bytes, entry + 32, digest_of({bytes.data() + offset, size}), 8);
  }
  seal(&bytes);
  Files files;
  files.files["x"] = bytes;
  const Ran ran = run(path, &files, with_path("x"));
  CHECK(ran.ok && files.n_written == 0 && g_log.empty());
  for (const Bytes& result : ran.results) CHECK(result == Bytes(result.size()));
  CHECK(ran.results != expected.results);
}

void test_options(const char* path, const Ran& expected) {
  Files files;
  std::vector<BackendOption> reads = with_path("x");
  reads.push_back(BackendOption::of_bool("save_weight_cache_on_disk", false));
  CHECK(run(path, &files, reads).results == expected.results && files.n_written == 0);
  CHECK(!run(path, &files, {BackendOption::of_int("packed_cache_path", 1)}).ok);
  reads[1] = BackendOption::of_int("save_weight_cache_on_disk", 1);
  CHECK(!run(path, &files, reads).ok);
  CHECK(run(path, &files, with_path("")).ok && files.n_written == 0 && g_log.empty());
  CHECK(run(path, nullptr, with_path("x")).results == expected.results);
  CHECK(g_log.find("without files") != std::string::npos);
  g_log.clear();
  files.may_write = false;
  CHECK(run(path, &files, with_path("x")).results == expected.results);
  CHECK(g_log.find("cannot be written to 'x': the disk is full") != std::string::npos);
}

void test_files_that_do_not_fit(const char* path, const char* other, const Bytes& whole,
                                const Ran& expected) {
  for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 997) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    check_replaced(path, cut, whole, expected, size < 8 ? "another kind of file" : "it is cut");
  }
  Bytes bytes = whole;
  bytes.push_back(0);
  check_replaced(path, bytes, whole, expected, "it is damaged");
  bytes = whole;
  bytes[0] ^= 1;
  check_replaced(path, bytes, whole, expected, "another kind of file");
  bytes = whole;
  put(&bytes, kVersionAt, 2, 4);
  seal(&bytes);
  check_replaced(path, bytes, whole, expected, "another version of this runtime");
  bytes = whole;
  bytes[kProgramAt] ^= 1;
  seal(&bytes);
  check_replaced(path, bytes, whole, expected, "for other weights");
  Files files;
  (void)run(other, &files, with_path("x"));
  check_replaced(path, files.files["x"], whole, expected, "for other weights");
}

// Every byte matters: in the header, the entries, and the packed weights.
void test_single_bits(const char* path, const Bytes& whole, const Ran& expected) {
  const size_t n = static_cast<size_t>(number_at(whole, kEntriesAt));
  const size_t index = kHeader + n * kEntry;
  for (size_t at = 12; at < index; at += at < kHeader ? 1 : 13) {
    Bytes bytes = whole;
    bytes[at] ^= 0x80;
    check_replaced(path, bytes, whole, expected, "not used");
  }
  for (size_t entry = 0; entry < n; ++entry) {
    const size_t offset = number_at(whole, kHeader + entry * kEntry + 16);
    const size_t size = number_at(whole, kHeader + entry * kEntry + 24);
    for (const size_t at : {offset, offset + size / 2, offset + size - 1}) {
      Bytes bytes = whole;
      bytes[at] ^= 1;
      check_replaced(path, bytes, whole, expected, "damaged, and are packed anew");
    }
  }
}

// Some get the right digests, so that the code after that check is tested, too.
void test_mutants(const char* path, const Bytes& whole, const Ran& expected, int rounds) {
  std::vector<Slot> slots = {{12, 4}, {kProgramAt, 8}, {24, 8}, {kEntriesAt, 8}};
  const size_t n = static_cast<size_t>(number_at(whole, kEntriesAt));
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < kEntry; k += 8) slots.push_back({kHeader + i * kEntry + k, 8});
  }
  Damage damage(slots, seed_for(0));
  for (int round = 0; round < rounds; ++round) {
    Files files;
    files.files["x"] = whole;
    damage(files.files["x"]);
    if (round % 3 != 0) seal(&files.files["x"]);
    CHECK(run(path, &files, with_path("x")).results == expected.results);
  }
}

void test_desktop(const char* path, const Bytes& whole, const Ran& expected) {
  char folder[] = "/tmp/rushlight-XXXXXX";
  CHECK(mkdtemp(folder) != nullptr);
  const std::string file = std::string(folder) + "/packed";
  g_log.clear();
  for (int round = 0; round < 2; ++round) {
    CHECK(run(path, &desktop_files(), with_path(file.c_str())).results == expected.results);
    Message why;
    const auto opened = desktop_files().open(file.c_str(), why);
    CHECK(opened.ok());
    if (!opened.ok()) continue;
    const Span<const uint8_t> bytes = opened.value().bytes;
    CHECK(bytes.size() == whole.size());
    CHECK(std::memcmp(bytes.data(), whole.data(), whole.size()) == 0);
    desktop_files().close(opened.value());
  }
  CHECK(g_log.empty());
  CHECK(run(path, &desktop_files(), with_path(folder)).results == expected.results);
  CHECK(g_log.find("it is a directory, not a file") != std::string::npos);
  CHECK(g_log.find("cannot be written") != std::string::npos);
  g_log.clear();
  const std::string nowhere = std::string(folder) + "/none/packed";
  CHECK(run(path, &desktop_files(), with_path(nowhere.c_str())).results == expected.results);
  CHECK(g_log.find("cannot be written to '" + nowhere + "': No such file") != std::string::npos);
  CHECK(unlink(file.c_str()) == 0);
  CHECK(rmdir(folder) == 0);  // no other file was left there
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: test_xnnpack_cache ROUNDS FILE OTHER\n");
    return 2;
  }
  Platform platform = {};
  platform.log = keep_log;
  set_platform(platform);
  Bytes whole;
  Ran expected;
  test_two_loads(argv[2], &whole, &expected);
  test_that_it_is_read(argv[2], whole, expected);
  test_options(argv[2], expected);
  test_files_that_do_not_fit(argv[2], argv[3], whole, expected);
  test_single_bits(argv[2], whole, expected);
  test_mutants(argv[2], whole, expected, std::atoi(argv[1]));
  test_desktop(argv[2], whole, expected);
  return check_result();
}
