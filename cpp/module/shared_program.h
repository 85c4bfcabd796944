// What a module shares with its clones: the program, its file, and its data files.
#pragma once

#include <atomic>

#include "rushlight/method/method.h"
#include "rushlight/module/files/file_map.h"
#include "rushlight/module/kernel_library.h"
#include "rushlight/program/bundle.h"
#include "rushlight/program/external_data.h"
#include "rushlight/program/program.h"

namespace rushlight {

// An image in memory, which may be a mapped file.
class ImageLoader : public MemoryLoader {
 public:
  ImageLoader() : MemoryLoader(nullptr, 0) {}
  ImageLoader(const void* data, size_t size) : MemoryLoader(data, size) {}
  explicit ImageLoader(FileMap* file) : MemoryLoader(file->data(), file->size()), file_(file) {}
  // `image` is a part of the memory of `whole`.
  ImageLoader(const ImageLoader& whole, Span<const uint8_t> image)
      : MemoryLoader(image.data(), image.size()), file_(whole.file_) {}
  void release(Span<const uint8_t> bytes) override {
    if (file_ == nullptr) return;
    const auto begin = static_cast<size_t>(bytes.data() - file_->data());
    file_->release(begin, begin + bytes.size());
  }

 private:
  FileMap* file_ = nullptr;
};

// One data file and, in `all`, those that were added before it.
struct DataFile {
  DataFile() = default;
  ~DataFile() { delete[] order; }
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  FileMap file;
  ImageLoader loader;
  ExternalData data;
  uint32_t* order = nullptr;  // of the keys of `data`
  MergedData all;
  DataFile* previous = nullptr;
};

// One library of kernels.
struct KernelFile {
  KernelLibrary library;
  KernelFile* previous = nullptr;
};

struct SharedProgram final : FileGuard {
  ~SharedProgram() {
    delete[] order;
    delete kernels;
    while (kernel_files != nullptr) {
      KernelFile* previous = kernel_files->previous;
      delete kernel_files;
      kernel_files = previous;
    }
    while (data != nullptr) {
      DataFile* previous = data->previous;
      delete data;
      data = previous;
    }
  }
  void release() {
    if (users.fetch_sub(1) == 1) delete this;
  }
  const NamedData* external() const { return data != nullptr ? &data->all : nullptr; }
  // The guard for methods; nullptr if nothing is guarded.
  const FileGuard* guard() const {
    bool any = file.is_guarded();
    for (const DataFile* d = data; d != nullptr; d = d->previous) any |= d->file.is_guarded();
    return any ? this : nullptr;
  }
  Status check(Message& message) const override {
    RL_TRY(file.check_unchanged(message));
    for (const DataFile* d = data; d != nullptr; d = d->previous) {
      RL_TRY(d->file.check_unchanged(message));
    }
    return {};
  }

  FileMap file;
  ImageLoader loader;
  Bundle bundle;  // if the file is one
  Program program;
  uint32_t* order = nullptr;           // of the keys of `program`
  DataFile* data = nullptr;            // the last one that was added
  KernelTable* kernels = nullptr;      // with those of `kernel_files`; nullptr if there are none
  KernelFile* kernel_files = nullptr;  // the last one that was added
  std::atomic<int> users{1};
};

}  // namespace rushlight
