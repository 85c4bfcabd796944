// Files as bytes in memory.
#include <executorch/extension/data_loader/file_data_loader.h>

#include "rushlight/module/files/file_map.h"

namespace executorch::extension::internal {

runtime::Result<File> open_file(const char* name, bool map) {
  ET_CHECK_OR_RETURN_ERROR(name != nullptr, InvalidArgument, "the file's name is null");
  auto file = std::make_shared<::rushlight::FileMap>();
  ::rushlight::Message message;
  ::rushlight::FileOptions options;
  options.map = map;
  const runtime::Error error = file->open(name, options, message).code();
  ET_CHECK_OK_OR_RETURN_ERROR(error, "%s", message.text());
  return file;
}

BufferDataLoader bytes_of(const File& file) { return {file->data(), file->size()}; }

}  // namespace executorch::extension::internal
