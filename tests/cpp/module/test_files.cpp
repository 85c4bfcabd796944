// Files of programs: mapped, read and watched; paths that are not files; data files of another
// program.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "check.h"
#include "rushlight/module/files/desktop_files.h"
#include "rushlight/module/files/file_map.h"
#include "rushlight/program/data_pair.h"

using namespace rushlight;

namespace {

constexpr char kPath[] = "test_files.tmp";

void write(const char* text, const char* mode = "wb") {
  std::FILE* file = std::fopen(kPath, mode);
  CHECK(file != nullptr && std::fputs(text, file) >= 0);
  if (file != nullptr) std::fclose(file);
}

bool says(const Message& message, const char* text) {
  if (std::strstr(message.text(), text) != nullptr) return true;
  std::fprintf(stderr, "'%s' does not say '%s'\n", message.text(), text);
  return false;
}

void test_mapped_and_read() {
  for (const bool map : {true, false}) {
    write("hello");
    FileMap file;
    Message message;
    CHECK(file.open(kPath, {map, false}, message).ok());
    CHECK(file.size() == 5 && std::memcmp(file.data(), "hello", 5) == 0);
    CHECK(!file.is_guarded());
    file.release(0, 5);
    CHECK(std::memcmp(file.data(), "hello", 5) == 0);
    write("HELLO", "r+b");
    CHECK(file.check_unchanged(message).ok());  // it is not guarded
    if (!map) CHECK(std::memcmp(file.data(), "hello", 5) == 0);
  }
  write("");
  FileMap empty;
  Message message;
  CHECK(empty.open(kPath, {}, message).ok() && empty.size() == 0);
}

void test_large_files_are_mapped_where_huge_pages_fit() {
  constexpr size_t kHugePage = size_t{2} << 20;
  const std::string whole(4 * kHugePage, 'a');
  // One that ends with a page, and one that does not.
  for (const char* rest : {"", "b"}) {
    write((whole + rest).c_str());
    FileMap file;
    Message message;
    CHECK(file.open(kPath, {}, message).ok());
    CHECK(file.size() == whole.size() + std::strlen(rest));
    CHECK(file.data()[whole.size() - 1] == 'a');
    CHECK(std::memcmp(file.data() + whole.size(), rest, std::strlen(rest)) == 0);
#if defined(__linux__)
    CHECK(reinterpret_cast<uintptr_t>(file.data()) % kHugePage == 0);
#endif
    file.release(0, file.size());
    CHECK(file.data()[kHugePage] == 'a');
  }
  std::remove(kPath);
}

void test_what_is_no_file() {
  const auto refused = [](const char* path, const char* why) {
    FileMap file;
    Message message;
    CHECK(file.open(path, {}, message).code() == Code::AccessFailed);
    CHECK(says(message, why));
    CHECK(file.data() == nullptr && file.size() == 0);
  };
  refused("no/such/file", "no such file");
  refused(".", "it is a directory, not a file");
  refused("/dev/null", "it is a device, not a file");
  std::remove(kPath);
  CHECK(::mkfifo(kPath, 0600) == 0);
  refused(kPath, "it is a named pipe, not a file");  // without waiting for a writer
  std::remove(kPath);
}

void test_watched() {
  write("hello");
  FileMap file;
  Message message;
  CHECK(file.open(kPath, {true, true}, message).ok() && file.is_guarded());
  CHECK(file.check_unchanged(message).ok());
  write("HELLO", "r+b");
  CHECK(file.check_unchanged(message).code() == Code::AccessFailed);
  CHECK(says(message, "test_files.tmp was changed after it was loaded: it was written to"));

  write("hello");
  FileMap cut;
  CHECK(cut.open(kPath, {true, true}, message).ok());
  CHECK(::truncate(kPath, 1) == 0);
  CHECK(cut.check_unchanged(message).code() == Code::AccessFailed);
  CHECK(says(message, "it had 5 bytes, now it has 1"));

  write("hello");
  FileMap replaced;
  CHECK(replaced.open(kPath, {true, true}, message).ok());
  std::remove(kPath);
  write("other");
  CHECK(replaced.check_unchanged(message).ok());
  CHECK(std::memcmp(replaced.data(), "hello", 5) == 0);

  FileMap read;
  CHECK(read.open(kPath, {false, true}, message).ok() && !read.is_guarded());
  std::remove(kPath);
}

std::string content() {
  char text[16] = {};
  std::FILE* file = std::fopen(kPath, "rb");
  if (file == nullptr) return "none";
  const size_t size = std::fread(text, 1, sizeof(text), file);
  std::fclose(file);
  return {text, size};
}

mode_t mode_of(const char* path) {
  struct stat info = {};
  CHECK(::lstat(path, &info) == 0);
  return info.st_mode;
}

Status replace(const char* path, const char* text, Message* message) {
  const Span<const uint8_t> parts[] = {{reinterpret_cast<const uint8_t*>(text), std::strlen(text)},
                                       {reinterpret_cast<const uint8_t*>("!"), 1}};
  return desktop_files().replace(path, {parts, 2}, FileStore::Flush::Yes, *message);
}

void test_replaced() {
  constexpr char kLink[] = "test_files.link";
  Message message;
  std::remove(kPath);
  CHECK(replace(kPath, "new", &message).ok() && content() == "new!");
  CHECK(::chmod(kPath, 0600) == 0);
  std::remove(kLink);
  CHECK(::symlink(kPath, kLink) == 0);
  CHECK(replace(kLink, "hello", &message).ok() && content() == "hello!");
  CHECK(S_ISLNK(mode_of(kLink)));
  CHECK((mode_of(kPath) & 0777) == 0600);  // what nobody else may read stays so
  std::remove(kLink);
  const auto refused = [&](const char* path, const char* why) {
    message.clear();
    CHECK(replace(path, "hello", &message).code() == Code::AccessFailed);
    CHECK(says(message, why));
  };
  refused(".", "Is a directory");
  refused("", "No such file");
  refused("no/such/file", "No such file");
  refused((std::string(kPath) + "/file").c_str(), "Not a directory");
  refused(std::string(300, 'x').c_str(), "name too long");
  refused(std::string(5000, 'x').c_str(), "name too long");
  std::remove(kPath);
  CHECK(::mkfifo(kPath, 0600) == 0);
  refused(kPath, "it is a pipe or a device, not a file");
  CHECK(S_ISFIFO(mode_of(kPath)));
  CHECK(desktop_files().open(kPath, message).status().code() == Code::AccessFailed);  // at once
  std::remove(kPath);
  CHECK(desktop_files().open(kPath, message).status().code() == Code::NotFound);
}

struct Entries : NamedData {
  std::vector<std::pair<std::string, std::string>> entries;

  Result<Span<const uint8_t>> get(StringView key) const override {
    for (const auto& [name, data] : entries) {
      if (!(StringView(name.data(), name.size()) == key)) continue;
      return Span<const uint8_t>(reinterpret_cast<const uint8_t*>(data.data()), data.size());
    }
    return Code::NotFound;
  }
  size_t n_keys() const override { return entries.size(); }
  StringView key(size_t i) const override {
    return {entries[i].first.data(), entries[i].first.size()};
  }
};

std::string digests(const char* letters) {
  std::string all;
  for (const char* at = letters; *at != '\0'; ++at) all.append(16, *at);
  return all;
}

void test_data_pairs() {
  Entries program, data;
  Message message;
  CHECK(check_data_pair(program, data, message).ok());
  data.entries = {{"w", "x"}, {"rushlight/digests/a", digests("bdf")}};
  CHECK(check_data_pair(program, data, message).ok());  // a program without digests
  const auto pair = [&](const char* wanted) {
    program.entries = {{"other", "x"}, {"rushlight/data/a", wanted}};
    message.clear();
    return check_data_pair(program, data, message).code();
  };
  for (const char* letters : {"", "b", "d", "f", "bf", "bdf"}) {
    CHECK(pair(digests(letters).c_str()) == Code::Ok);
  }
  for (const char* letters : {"a", "c", "g", "bdfg", "abdf"}) {
    CHECK(pair(digests(letters).c_str()) == Code::InvalidExternalData);
  }
  CHECK(pair(digests("bce").c_str()) == Code::InvalidExternalData);
  CHECK(says(message, "this a.ptd is not the one that the program was saved with: 2 of 3 entries"));
  CHECK(pair((digests("b") + "cut").c_str()) == Code::InvalidExternalData);
  program.entries = {{"rushlight/data/b", digests("b")}};
  CHECK(check_data_pair(program, data, message).code() == Code::InvalidExternalData);
  CHECK(says(message, "the data file a.ptd of another program; pass the b.ptd"));
  data.entries[1].second += "cut";
  CHECK(pair(digests("bdf").c_str()) == Code::InvalidExternalData);
  data.entries.pop_back();
  CHECK(pair(digests("b").c_str()) == Code::InvalidExternalData);
  CHECK(says(message, "does not say which program it belongs to; pass the a.ptd"));
}

}  // namespace

int main() {
  test_mapped_and_read();
  test_large_files_are_mapped_where_huge_pages_fit();
  test_what_is_no_file();
  test_watched();
  test_replaced();
  test_data_pairs();
  return rushlight::test::check_result();
}
