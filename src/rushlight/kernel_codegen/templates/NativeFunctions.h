// Declares the kernels. ${generated_comment}
// clang-format off
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

${headers}

${nativeFunctions_declarations}
