// Python's operators on the values of templates.
#pragma once

#include "rushlight/llm/template/values/run_context.h"

namespace rushlight::llm {

enum class Arithmetic : uint8_t { Add, Subtract, Multiply, Divide, FloorDivide, Modulo, Power };
enum class Order : uint8_t { Less, Equal, Greater, None };

Status arithmetic(RunContext& run, Arithmetic op, const Value& a, const Value& b, Value* out);
Status negated(RunContext& run, const Value& value, Value* out);

// How a stands to b, for < <= > >=; None where a float is not a number.
Status order_of(RunContext& run, const Value& a, const Value& b, Order* order);
// ==, with its work counted.
Status check_equal(RunContext& run, const Value& a, const Value& b, bool* equal);
// `needle in haystack`.
Status contains(RunContext& run, const Value& haystack, const Value& needle, bool* result);

Status length_of(RunContext& run, const Value& value, size_t* length);
// The items that a loop over the value sees; an iterator is read to its end.
Status items_of(RunContext& run, const Value& value, Ref<ListObject>* items);

}  // namespace rushlight::llm
