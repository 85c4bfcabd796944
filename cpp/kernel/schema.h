// The schema of an operator, as PyTorch writes it: "acme::snake.out(Tensor x, float a, *,
// Tensor(a!) out) -> Tensor(a!)". A program has the schemas of operators that are no kernel's of
// the runtime, a line for each, in its named data; a kernel's signature is compared with them.
#pragma once

#include "rushlight/core/message.h"
#include "rushlight/core/named_data.h"
#include "rushlight/core/span.h"
#include "rushlight/core/status.h"
#include "rushlight/kernel/kernel.h"

namespace rushlight {

// The key of the named data.
constexpr char kSchemasKey[] = "rushlight/schemas";

// The schema of an operator among lines of them, which may be any bytes; empty if it has none.
StringView find_schema(Span<const uint8_t> lines, StringView name);

// Ok if a kernel takes what the schema says. InvalidType otherwise; the message names the first
// argument that differs.
Status check_schema(const Kernel& kernel, StringView schema, Message& message);

// The same with the schema that a program has for the kernel; Ok if it has none, since then the
// arguments alone can be checked.
Status check_against_schemas(const Kernel& kernel, const NamedData& program, Message& message);

}  // namespace rushlight
