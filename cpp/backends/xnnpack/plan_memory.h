// Memory that is filled anew for each plan of a graph. While it may grow it takes from a method's
// memory, afterwards it does with what it has. Scratch, which alone is aligned to 64 bytes, comes
// from what the method's delegates share.
#pragma once

#include "rushlight/backends/xnnpack/workspace.h"
#include "rushlight/core/allocator.h"

namespace rushlight::xnnpack {

class PlanMemory final : public Allocator {
 public:
  void grow_from(Allocator* allocator, Workspace* workspace);
  // Sets a quarter of what there is aside, which is touched only if a later plan needs it.
  void stop_growing();
  // Forgets what was allocated.
  void clear();
  // From the piece that has the least to spare; nullptr if none has so much.
  void* allocate(size_t bytes, size_t alignment = kAlignment) override;

 private:
  struct Piece {
    Allocator rest;
    Piece* next = nullptr;
  };

  Piece* add_piece(size_t bytes);

  Allocator* parent_ = nullptr;
  Workspace* workspace_ = nullptr;
  Piece* pieces_ = nullptr;
};

}  // namespace rushlight::xnnpack
