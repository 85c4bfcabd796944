// Compiling takes operations and states in proportion to the schema, whatever there is many of.
#include <cstdio>
#include <string>

#include "check.h"
#include "rushlight/llm/grammar/schema/compiler.h"
#include "rushlight/llm/json/parse.h"

namespace rushlight {
namespace test {
namespace {

using llm::GrammarOptions;
using llm::grammar::Automaton;
using llm::grammar::Budget;
using llm::grammar::SchemaCompiler;

struct Cost {
  double operations, states;  // for each part
};

// A list of `count` parts, in which @ is the number of the part and ~ the next.
std::string list(const std::string& begin, const std::string& part, size_t count,
                 const std::string& end) {
  std::string text = begin;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ",";
    for (const char c : part) {
      text += c == '@' ? std::to_string(i) : c == '~' ? std::to_string(i + 1) : std::string(1, c);
    }
  }
  return text + end;
}

Cost cost_of(const std::string& text, size_t count) {
  Message message;
  const auto schema = llm::parse_json({text.data(), text.size()}, &message);
  CHECK(schema.ok());
  Automaton automaton;
  Budget budget;
  SchemaCompiler compiler(schema.value(), GrammarOptions::WhiteSpace::Compact, &automaton, &budget,
                          &message);
  const Status status = compiler.compile();
  CHECK(status.ok());
  if (!status.ok()) std::printf("%s\n", message.text());
  const auto parts = static_cast<double>(count);
  return {static_cast<double>(budget.spent()) / parts,
          static_cast<double>(automaton.states.size()) / parts};
}

// Numbers of parts take more digits, hence states, the more there are.
template <typename Schema>
void check_growth(const char* name, const Schema& schema) {
  const Cost few = cost_of(schema(100), 100);
  for (const size_t count : {size_t{1000}, size_t{10000}}) {
    const Cost many = cost_of(schema(count), count);
    std::printf("%-20s %6zu: %6.1f operations, %5.1f states for each (of 100: %.1f, %.1f)\n", name,
                count, many.operations, many.states, few.operations, few.states);
    CHECK(many.operations < 1.5 * few.operations);
    CHECK(many.states < 1.5 * few.states);
  }
}

void test_growth() {
  const auto chain = [](const char* definition) {
    return [definition](size_t n) {
      return list("{\"$ref\":\"#/$defs/0\",\"$defs\":{", definition, n,
                  ",\"" + std::to_string(n) + "\":{\"type\":\"null\"}}}");
    };
  };
  check_growth("properties", [](size_t n) {
    return list("{\"type\":\"object\",\"properties\":{", "\"p@\":{\"type\":\"string\"}", n, "}}");
  });
  check_growth("least of properties", [](size_t n) {
    return list("{\"type\":\"object\",\"minProperties\":1,\"properties\":{", "\"p@\":{}", n, "}}");
  });
  check_growth("required properties", [](size_t n) {
    return list("{\"type\":\"object\",\"properties\":{", "\"p@\":{\"type\":\"integer\"}", n,
                list("},\"additionalProperties\":false,\"required\":[", "\"p@\"", n, "]}"));
  });
  check_growth("enum", [](size_t n) { return list("{\"enum\":[", "\"value @\"", n, "]}"); });
  check_growth("items", [](size_t n) {
    return list("{\"type\":\"array\",\"prefixItems\":[", "{\"type\":\"integer\"}", n, "]}");
  });
  check_growth("allOf of properties", [](size_t n) {
    return list("{\"type\":\"object\",\"allOf\":[", "{\"properties\":{\"p@\":{}}}", n, "]}");
  });
  check_growth("allOf of required", [](size_t n) {
    return list("{\"type\":\"object\",\"allOf\":[", "{\"required\":[\"p@\"]}", n, "]}");
  });
  check_growth("objects in objects", chain("\"@\":{\"type\":\"object\",\"properties\":{\"next\":"
                                           "{\"$ref\":\"#/$defs/~\"}}}"));
  check_growth("arrays in arrays", chain("\"@\":{\"type\":\"array\",\"minItems\":1,\"items\":"
                                         "{\"$ref\":\"#/$defs/~\"}}"));
  // Of the last part on, each has a text only since the next has one.
  const auto circle = [](const char* definition) {
    return [definition](size_t n) {
      return list("{\"$ref\":\"#/$defs/0\",\"$defs\":{", definition, n,
                  ",\"" + std::to_string(n) +
                      "\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/0\"}]}}}");
    };
  };
  check_growth("circle of arrays", circle("\"@\":{\"type\":\"array\",\"minItems\":1,\"items\":"
                                          "{\"$ref\":\"#/$defs/~\"}}"));
  check_growth("circle of objects", circle("\"@\":{\"type\":\"object\",\"minProperties\":2,"
                                           "\"additionalProperties\":{\"$ref\":\"#/$defs/~\"}}"));
}

// What each part says about the keys of all others is refused before it takes long. Of all
// operations the last sixteenth is left, which is more than schemas of this size take in
// proportion.
void test_limits() {
  const std::string part = "{\"properties\":{\"p@\":{}},\"additionalProperties\":{}}";
  const std::string text = list("{\"allOf\":[", part, 10000, "]}");
  Message message;
  const auto schema = llm::parse_json({text.data(), text.size()}, &message);
  Automaton automaton;
  Budget budget;
  CHECK(budget.spend(Budget::kMost / 16 * 15));
  SchemaCompiler compiler(schema.value(), GrammarOptions::WhiteSpace::Compact, &automaton, &budget,
                          &message);
  CHECK(compiler.compile().code() == Code::OutOfResources);
  CHECK(budget.is_spent());
}

}  // namespace
}  // namespace test
}  // namespace rushlight

int main() {
  rushlight::test::test_growth();
  rushlight::test::test_limits();
  return rushlight::test::check_result();
}
