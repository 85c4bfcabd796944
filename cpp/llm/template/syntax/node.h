// The syntax tree of a template. It does not change once it is parsed, so that threads can share
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/llm/template/values/operators.h"
#include "rushlight/llm/template/values/value.h"

namespace rushlight::llm {

struct Filter;  // builtins/tables.h
struct Test;

enum class NodeKind : uint8_t {
  // Expressions, with their children.
  Constant,
  Name,
  List,
  Tuple,
  Dict,       // keys and values in turn
  Attribute,  // the value; `text` is the attribute
  Item,       // the value and the index
  Slice,      // start, stop and stride, each of which may be null
  Call,       // what is called, and the arguments
  Filter,     // the value (null in a filter block), and the arguments
  Test,       // the value, and the arguments
  Not,
  Negate,
  Plus,
  And,
  Or,
  Arithmetic,
  Compare,  // the operands; `comparisons` stand between them
  Concat,
  Conditional,    // the condition, the value, and the other value or null
  NamespaceItem,  // a target: `name`.`text`
  // Statements.
  Data,
  Print,
  If,           // the condition
  For,          // the target, the items, and the condition or null
  Set,          // the target and the value
  SetBlock,     // the target and the filter or null
  With,         // targets and values in turn
  FilterBlock,  // the filter
  Macro,
  CallBlock,  // the call
  Generation,
  Break,
  Continue,
};

enum class Comparison : uint8_t {
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual,
  In,
  NotIn
};

struct Node;
using NodePtr = std::unique_ptr<Node>;
using Nodes = std::vector<NodePtr>;

struct Parameter {
  uint32_t name = 0;
  std::string text;
  std::string why;        // the error where it is used without a value
  NodePtr default_value;  // may be null
};

// What a macro or the block of a call takes. `takes_…`: its body uses these special variables.
struct Signature {
  std::vector<Parameter> parameters;
  bool takes_caller = false;
  bool takes_keywords = false;
  bool takes_rest = false;
};

struct Node {
  NodeKind kind = NodeKind::Constant;
  uint32_t line = 1;
  uint32_t depth = 1;
  uint32_t name = 0;  // of a variable
  Arithmetic arithmetic = Arithmetic::Add;
  std::vector<Comparison> comparisons;
  std::string text;
  std::string why;  // the error where the value is used, if it is undefined
  Value constant;
  Nodes children;
  std::vector<std::pair<std::string, NodePtr>> keywords;
  Nodes body;
  Nodes otherwise;  // of a loop or a condition
  const Filter* filter = nullptr;
  const Test* test = nullptr;
  std::unique_ptr<Signature> signature;
};

// Names of variables that the interpreter itself sets.
enum SpecialName : uint32_t { kLoop, kCaller, kKeywords, kRest, kSpecialNames };

struct Syntax {
  Nodes body;
  std::vector<std::string> names;  // of variables, by their numbers
  // Variables that the template sets before it reads them, outside of inner scopes. Inner scopes do
  // not see a value that was passed under such a name, as in Jinja.
  std::vector<uint32_t> hidden;
  // Variables that are read where nothing in the template has set them for certain, in the order in
  // which they come: those that a caller can pass. Functions are among them.
  std::vector<uint32_t> inputs;
};

}  // namespace rushlight::llm
