#include <executorch/extension/evalue_util/print_evalue.h>
#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>

namespace executorch {
namespace {

using aten::ScalarType;
using runtime::EValue;
using runtime::Tag;

constexpr size_t kItemsOfLine = 10;
constexpr size_t kEdgeItems = 3;

int slot_of_edge_items() {
  static const int slot = std::ios_base::xalloc();
  return slot;
}

size_t edge_items_of(std::ostream& os) {
  const long items = os.iword(slot_of_edge_items());
  return items > 0 ? static_cast<size_t>(items) : kEdgeItems;
}

// As PyTorch: whole numbers end with a point.
void print(std::ostream& os, double value) {
  std::ostringstream text;
  text.copyfmt(os);
  text << value;
  const bool is_whole =
      std::isfinite(value) && text.str().find_first_not_of("-+0123456789") == std::string::npos;
  os << text.str() << (is_whole ? "." : "");
}
void print(std::ostream& os, bool value) { os << (value ? "True" : "False"); }
void print(std::ostream& os, int64_t value) { os << value; }

template <typename T>
void print_number(std::ostream& os, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    print(os, value);
  } else if constexpr (std::is_integral_v<T>) {
    print(os, static_cast<int64_t>(value));
  } else {
    print(os, static_cast<double>(value));
  }
}

// Elements `edge` to `size - edge` are left out; lists of which more than a line is left are
// wrapped.
template <typename List>
void print_list(std::ostream& os, const List& list, size_t size, size_t edge) {
  const bool is_cut = size > 2 * edge && size - 2 * edge > 0;
  const size_t printed = is_cut ? 2 * edge : size;
  const bool wraps = printed > kItemsOfLine;
  os << "[";
  size_t column = 0;
  for (size_t i = 0; i < size; ++i) {
    if (is_cut && i == edge) {
      os << (wraps ? "\n  ...," : "..., ");
      i = size - edge;
      // The last line is a full one.
      column = (kItemsOfLine - edge % kItemsOfLine) % kItemsOfLine;
      if (wraps && column != 0) os << "\n  ";
    }
    if (wraps && column % kItemsOfLine == 0) os << "\n  ";
    print_number(os, list[i]);
    if (wraps || i + 1 < size) os << ", ";
    ++column;
  }
  os << (wraps ? "\n]" : "]");
}

template <typename List>
void print_counted(std::ostream& os, const List& list) {
  os << "(len=" << list.size() << ")";
  print_list(os, list, list.size(), edge_items_of(os));
}

void print_tensor(std::ostream& os, const aten::Tensor& tensor) {
  os << "tensor(sizes=";
  print_list(os, tensor.sizes(), tensor.sizes().size(), tensor.sizes().size());
  os << ", ";
  const auto count = static_cast<size_t>(tensor.numel());
#define PRINT_ELEMENTS(ctype, name)                                           \
  case ScalarType::name:                                                      \
    print_list(os, tensor.const_data_ptr<ctype>(), count, edge_items_of(os)); \
    break;
  switch (tensor.scalar_type()) {
    ET_FORALL_REALHBBF16_TYPES(PRINT_ELEMENTS)
    default:
      os << "[<dtype " << runtime::toString(tensor.scalar_type()) << ">]";
  }
#undef PRINT_ELEMENTS
  os << ")";
}

template <typename List, typename Print>
void print_items(std::ostream& os, const List& list, Print print_item) {
  os << "(len=" << list.size() << ")[";
  for (size_t i = 0; i < list.size(); ++i) {
    if (list.size() > 1) os << "\n  [" << i << "]: ";
    print_item(list[i]);
    if (list.size() > 1) os << ",";
  }
  os << (list.size() > 1 ? "\n]" : "]");
}

}  // namespace

std::ostream& runtime::operator<<(std::ostream& os, const EValue& value) {
  switch (value.tag) {
    case Tag::None:
      os << "None";
      break;
    case Tag::Bool:
      print(os, value.toBool());
      break;
    case Tag::Int:
      print(os, value.toInt());
      break;
    case Tag::Double:
      print(os, value.toDouble());
      break;
    case Tag::String:
      os << std::quoted(std::string(value.toString().data(), value.toString().size()));
      break;
    case Tag::Tensor:
      print_tensor(os, value.toTensor());
      break;
    case Tag::ListBool:
      print_counted(os, value.toBoolList());
      break;
    case Tag::ListInt:
      print_counted(os, value.toIntList());
      break;
    case Tag::ListDouble:
      print_counted(os, value.toDoubleList());
      break;
    case Tag::ListTensor:
      print_items(os, value.toTensorList(),
                  [&os](const aten::Tensor& tensor) { print_tensor(os, tensor); });
      break;
    case Tag::ListOptionalTensor:
      print_items(os, value.toListOptionalTensor(),
                  [&os](const std::optional<aten::Tensor>& tensor) {
                    if (tensor.has_value()) return print_tensor(os, *tensor);
                    os << "None";
                  });
      break;
    default:
      os << "<" << tag_to_string(value.tag) << ">";
  }
  return os;
}

void extension::evalue_edge_items::set_edge_items(std::ostream& os, long edge_items) {
  os.iword(slot_of_edge_items()) = edge_items;
}

}  // namespace executorch
