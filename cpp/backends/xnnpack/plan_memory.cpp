#include "rushlight/backends/xnnpack/plan_memory.h"

#include <new>

namespace rushlight::xnnpack {
namespace {

constexpr size_t kPiece = size_t{16} << 10;  // at least
constexpr size_t kScratchAlignment = 64;

}  // namespace

void PlanMemory::grow_from(Allocator* allocator, Workspace* workspace) {
  parent_ = allocator;
  workspace_ = workspace;
  workspace_->grow_from(allocator);
}

void PlanMemory::clear() {
  workspace_->begin();
  for (Piece* piece = pieces_; piece != nullptr; piece = piece->next) piece->rest.reset();
}

void PlanMemory::stop_growing() {
  size_t bytes = 0;
  for (Piece* piece = pieces_; piece != nullptr; piece = piece->next)
    bytes += piece->rest.capacity();
  (void)add_piece(bytes / 4);
  parent_ = nullptr;
  workspace_->grow_from(nullptr);
}

PlanMemory::Piece* PlanMemory::add_piece(size_t bytes) {
  if (parent_ == nullptr) return nullptr;
  if (bytes < kPiece) bytes = kPiece;
  Piece* piece = parent_->allocate_array<Piece>(1);
  void* data = piece != nullptr ? parent_->allocate(bytes) : nullptr;
  if (data == nullptr) return nullptr;
  new (piece) Piece();
  piece->rest = Allocator(data, bytes);
  piece->next = pieces_;
  pieces_ = piece;
  return piece;
}

void* PlanMemory::allocate(size_t bytes, size_t alignment) {
  if (alignment >= kScratchAlignment) return workspace_->take(bytes);
  Piece* best = nullptr;
  for (Piece* piece = pieces_; piece != nullptr; piece = piece->next) {
    const size_t left = piece->rest.left(alignment);
    if (left < bytes) continue;
    if (best == nullptr || left < best->rest.left(alignment)) best = piece;
  }
  if (best == nullptr) best = add_piece(bytes);
  return best != nullptr ? best->rest.allocate(bytes, alignment) : nullptr;
}

}  // namespace rushlight::xnnpack
