// Memory that each plan of a graph fills again. While it may grow, it takes pieces from the
// method's memory; after that it uses the pieces that it has. Scratch memory, which alone is
// aligned to 64 bytes, comes from the blocks that the method's delegates share.
#pragma once

#include "rushlight/backends/xnnpack/workspace.h"
#include "rushlight/core/allocator.h"

namespace rushlight::xnnpack {

class PlanMemory final : public Allocator {
 public:
  void grow_from(Allocator* allocator, Workspace* workspace);
  // Reserves another quarter of its size, which is touched only if a later plan needs it.
  void stop_growing();
  // Frees all that was allocated.
  void clear();
  // From the piece with the least free bytes that suffice; nullptr if there is none.
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
