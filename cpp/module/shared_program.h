// What a module shares with its clones: the program, its file, and its data files.
#pragma once

#include <atomic>

#include "rushlight/module/file_map.h"
#include "rushlight/program/external_data.h"
#include "rushlight/program/program.h"

namespace rushlight {

// One data file and, through `all`, those that were added before it.
struct DataFile {
  FileMap file;
  MemoryLoader loader{nullptr, 0};
  ExternalData data;
  MergedData all;
  DataFile* previous = nullptr;
};

struct SharedProgram {
  ~SharedProgram() {
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

  FileMap file;
  MemoryLoader loader{nullptr, 0};
  Program program;
  DataFile* data = nullptr;  // the last that was added
  std::atomic<int> users{1};
};

}  // namespace rushlight
