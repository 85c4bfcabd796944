#include "rushlight/runner/npy.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rushlight {
namespace {

bool read_file(const std::string& path, std::vector<uint8_t>* bytes) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  uint8_t buffer[1 << 16];
  size_t n = 0;
  do {
    n = std::fread(buffer, 1, sizeof(buffer), file);
    bytes->insert(bytes->end(), buffer, buffer + n);
  } while (n == sizeof(buffer));
  const bool ok = std::ferror(file) == 0;
  std::fclose(file);
  return ok;
}

// Parses NumPy's names of little-endian types.
bool parse_dtype(const std::string& descr, DType* dtype) {
  static const struct {
    const char* name;
    DType dtype;
  } kNames[] = {{"|b1", DType::Bool},    {"|u1", DType::UInt8},   {"|i1", DType::Int8},
                {"<i2", DType::Int16},   {"<u2", DType::UInt16},  {"<i4", DType::Int32},
                {"<u4", DType::UInt32},  {"<i8", DType::Int64},   {"<u8", DType::UInt64},
                {"<f2", DType::Float16}, {"<f4", DType::Float32}, {"<f8", DType::Float64}};
  for (const auto& entry : kNames) {
    if (descr != entry.name) continue;
    *dtype = entry.dtype;
    return true;
  }
  return false;
}

// The text between `start` and `stop` after `key` in the header, which is a Python dictionary.
std::string field(const std::string& header, const char* key, char start, char stop) {
  const size_t at = header.find(key);
  if (at == std::string::npos) return "";
  const size_t from = header.find(start, at + std::strlen(key));
  if (from == std::string::npos) return "";
  const size_t to = header.find(stop, from + 1);
  return to == std::string::npos ? "" : header.substr(from + 1, to - from - 1);
}

// Parses "2, 3" or "2,".
bool parse_sizes(const std::string& text, std::vector<int32_t>* sizes) {
  const char* at = text.c_str();
  while (*at != '\0') {
    char* end = nullptr;
    const long long size = std::strtoll(at, &end, 10);
    if (end == at || size < 0 || size > INT32_MAX) return false;
    sizes->push_back(static_cast<int32_t>(size));
    at = end;
    while (*at == ',' || *at == ' ') ++at;
  }
  return true;
}

std::string parse_npy(InputFile* file) {
  const std::vector<uint8_t>& bytes = file->storage;
  const size_t prefix = bytes.size() > 6 && bytes[6] >= 2 ? 12 : 10;
  if (bytes.size() < prefix) return "the .npy file has been cut";
  uint32_t length = bytes[8] | uint32_t{bytes[9]} << 8;
  if (prefix == 12) length |= uint32_t{bytes[10]} << 16 | uint32_t{bytes[11]} << 24;
  if (length > bytes.size() - prefix) return "the .npy file has been cut";
  const std::string header(bytes.begin() + static_cast<std::ptrdiff_t>(prefix),
                           bytes.begin() + static_cast<std::ptrdiff_t>(prefix + length));
  const std::string descr = field(header, "'descr':", '\'', '\'');
  if (!parse_dtype(descr, &file->dtype)) return "there is no dtype for NumPy's '" + descr + "'";
  if (!parse_sizes(field(header, "'shape':", '(', ')'), &file->sizes)) return "its shape is wrong";
  if (file->sizes.size() > kMaxRank) return "its rank is too great";
  const bool fortran = header.find("'fortran_order': True") != std::string::npos;
  const size_t rank = file->sizes.size();
  for (size_t i = 0; i < rank; ++i) {
    file->dim_order.push_back(static_cast<uint8_t>(fortran ? rank - 1 - i : i));
  }
  file->offset = prefix + length;
  int64_t numel = 0;
  const Span<const int32_t> sizes(file->sizes.data(), rank);
  const size_t room = (bytes.size() - file->offset) / element_size(file->dtype);
  const bool fits = count_elements(sizes, &numel) && static_cast<uint64_t>(numel) <= room;
  return fits ? "" : "it holds fewer elements than its shape says";
}

}  // namespace

std::string read_input(const std::string& path, DType dtype, Span<const int32_t> sizes,
                       InputFile* file) {
  if (!read_file(path, &file->storage)) return path + ": cannot be read";
  if (file->storage.size() >= 6 && std::memcmp(file->storage.data(), "\x93NUMPY", 6) == 0) {
    const std::string wrong = parse_npy(file);
    return wrong.empty() ? "" : path + ": " + wrong;
  }
  file->dtype = dtype;
  file->sizes.assign(sizes.begin(), sizes.end());
  for (size_t i = 0; i < sizes.size(); ++i) file->dim_order.push_back(static_cast<uint8_t>(i));
  int64_t numel = 0;
  const bool counted = count_elements(sizes, &numel);
  const size_t wanted = static_cast<size_t>(numel) * element_size(dtype);
  if (counted && file->storage.size() == wanted) return "";
  return path + ": has " + std::to_string(file->storage.size()) + " bytes, the input takes " +
         std::to_string(wanted) + " (give a .npy file for other sizes)";
}

}  // namespace rushlight
