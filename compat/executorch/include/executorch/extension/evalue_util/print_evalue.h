// Values as text: `std::cout << value`.
#pragma once

#include <executorch/runtime/core/evalue.h>

#include <ostream>

namespace executorch::runtime {

std::ostream& operator<<(std::ostream& os, const EValue& value);

}  // namespace executorch::runtime

namespace executorch::extension {

// `os << evalue_edge_items(5)`: from then on, lists that are long are written to this stream with
// their first and last 5 elements. 0 stands for the 3 that a stream has at first.
class evalue_edge_items final {
 public:
  explicit evalue_edge_items(long edge_items) : edge_items_(edge_items < 0 ? 0 : edge_items) {}
  friend std::ostream& operator<<(std::ostream& os, const evalue_edge_items& items) {
    set_edge_items(os, items.edge_items_);
    return os;
  }

 private:
  static void set_edge_items(std::ostream& os, long edge_items);
  const long edge_items_;
};

}  // namespace executorch::extension

namespace torch::executor::util {
using ::executorch::extension::evalue_edge_items;
}  // namespace torch::executor::util
