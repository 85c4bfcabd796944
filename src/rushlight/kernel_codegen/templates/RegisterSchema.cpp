// Gives the schemas of operators to PyTorch. ${generated_comment}
// clang-format off
#include <torch/library.h>

TORCH_LIBRARY_FRAGMENT(aten, m) {
  (void)m;
  ${aten_schema_registrations}
}

${schema_registrations}
