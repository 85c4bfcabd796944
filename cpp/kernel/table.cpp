#include <cstring>

#include "rushlight/kernel/foreign_kernel.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight {
namespace {

bool equal_keys(const char* a, const char* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::strcmp(a, b) == 0;
}

// Reads a number of a key; -1 if there is none.
int read_number(const char** at) {
  if (**at < '0' || **at > '9') return -1;
  int value = 0;
  while (**at >= '0' && **at <= '9' && value < 1000) value = 10 * value + (*(*at)++ - '0');
  return value;
}

// Matches "6;0,1" against a tensor and moves *at behind it.
bool match_tensor(const char** at, const Tensor& tensor) {
  if (read_number(at) != static_cast<int>(tensor.dtype)) return false;
  if (*(*at)++ != ';') return false;
  for (size_t i = 0; i < tensor.rank; ++i) {
    if (i > 0 && *(*at)++ != ',') return false;
    if (read_number(at) != tensor.dim_order[i]) return false;
  }
  return **at == '|' || **at == '\0';
}

// `kernel` has a key. The return alias at the end is no argument of its own.
bool match_key(const Kernel& kernel, EValue* const* args, size_t n_args) {
  const char* at = kernel.key;
  for (const char* prefix = "v1/"; *prefix != '\0'; ++prefix) {
    if (*at++ != *prefix) return false;
  }
  const size_t n_letters = std::strlen(kernel.signature);
  const bool has_alias =
      takes_any(kernel) || (n_letters > 0 && kernel.signature[n_letters - 1] == '=');
  if (has_alias && n_args > 0) --n_args;
  bool first = true;
  for (size_t i = 0; i < n_args; ++i) {
    if (args[i]->tag != Tag::Tensor) continue;
    if (!first && *at++ != '|') return false;
    first = false;
    if (!match_tensor(&at, *args[i]->t)) return false;
  }
  return *at == '\0';
}

// Sets the tag that a letter of a signature stands for: Double for any number, None for the return
// alias. False for what is no letter.
bool find_tag(char letter, Tag* tag) {
  static constexpr char kLetters[] = "twTWOIDBSidbsr=";
  static constexpr Tag kTags[] = {
      Tag::Tensor,  Tag::Tensor,     Tag::TensorList, Tag::TensorList, Tag::OptionalTensorList,
      Tag::IntList, Tag::DoubleList, Tag::BoolList,   Tag::String,     Tag::Double,
      Tag::Double,  Tag::Double,     Tag::Double,     Tag::Double,     Tag::None};
  static_assert(sizeof(kLetters) - 1 == sizeof(kTags), "a tag for each letter");
  size_t i = 0;
  while (i < sizeof(kTags) && kLetters[i] != letter) ++i;
  if (i == sizeof(kTags)) return false;
  *tag = kTags[i];
  return true;
}

bool fits(char letter, Tag tag) {
  Tag wanted;
  if (!find_tag(letter, &wanted)) return false;
  // A computed number may have any of the three tags; all read as one another.
  if (wanted == Tag::Double) return tag == Tag::Int || tag == Tag::Double || tag == Tag::Bool;
  return tag == wanted || wanted == Tag::None;
}

}  // namespace

Status KernelTable::add(Span<const Kernel> kernels) {
  if (kernels.size() > kCapacity - size_) return Code::RegistrationExceedingMaxKernels;
  for (size_t added = 0; added < kernels.size(); ++added) {
    const Kernel& kernel = kernels[added];
    size_t place = lower_bound(kernel.name);
    bool known = false;
    for (; place < size_ && std::strcmp(kernels_[place]->name, kernel.name) == 0; ++place) {
      known = known || equal_keys(kernels_[place]->key, kernel.key);
    }
    if (known) {
      remove(Span<const Kernel>(kernels.data(), added));
      return Code::RegistrationAlreadyRegistered;
    }
    std::memmove(kernels_ + place + 1, kernels_ + place, (size_ - place) * sizeof(kernels_[0]));
    kernels_[place] = &kernel;
    ++size_;
  }
  return {};
}

void KernelTable::remove(Span<const Kernel> kernels) {
  size_t kept = 0;
  for (size_t i = 0; i < size_; ++i) {
    const bool drop = kernels_[i] >= kernels.begin() && kernels_[i] < kernels.end();
    if (!drop) kernels_[kept++] = kernels_[i];
  }
  size_ = kept;
}

size_t KernelTable::lower_bound(StringView name) const {
  size_t low = 0;
  size_t high = size_;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (compare(name, kernels_[middle]->name) > 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const Kernel* KernelTable::find(StringView name, EValue* const* args, size_t n_args) const {
  const Kernel* fallback = nullptr;
  for (size_t i = lower_bound(name); i < size_ && compare(name, kernels_[i]->name) == 0; ++i) {
    if (kernels_[i]->key == nullptr) {
      fallback = kernels_[i];
    } else if (match_key(*kernels_[i], args, n_args)) {
      return kernels_[i];
    }
  }
  return fallback;
}

bool KernelTable::has(StringView name) const {
  const size_t i = lower_bound(name);
  return i < size_ && compare(name, kernels_[i]->name) == 0;
}

Status check_arguments(const Kernel& kernel, EValue* const* args, size_t n_args, Message& message) {
  if (takes_any(kernel)) return {};
  size_t i = 0;
  for (const char* at = kernel.signature; *at != '\0'; ++at, ++i) {
    const bool optional = *at == '?';
    if (optional) ++at;
    if (i >= n_args) continue;  // counted to the end for the message
    const Tag tag = args[i]->tag;
    if (fits(*at, tag) || (optional && tag == Tag::None)) continue;
    Tag wanted = Tag::Double;
    find_tag(*at, &wanted);
    const bool is_number = wanted == Tag::Double;
    return message.fail(Code::InvalidProgram, "argument %zu is %s, but the operator takes %s%s%s",
                        i, tag_name(tag), is_number ? "a " : tag_article(wanted),
                        is_number ? "number" : tag_name(wanted), optional ? " or None" : "");
  }
  if (i == n_args) return {};
  return message.fail(Code::InvalidProgram, "%zu arguments, but the operator takes %zu", n_args, i);
}

}  // namespace rushlight
