// What the keywords of some schemas that must all hold say together about a value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/grammar/regex/dfa.h"
#include "rushlight/llm/grammar/schema/document.h"
#include "rushlight/llm/grammar/schema/numbers.h"

namespace rushlight::llm::grammar {

constexpr uint64_t kNoLimit = UINT64_MAX;

enum Types : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kFractional = 8,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127,
};

struct Limits {
  uint64_t low = 0, high = kNoLimit;
};

struct Property {
  std::string name;
  SchemaSet value;
  bool is_required = false;
  bool is_possible = true;  // `propertyNames` takes the name
};

// Keys that are not named, and what their values must be.
struct Region {
  std::shared_ptr<const Dfa> keys;
  SchemaSet value;
};

struct Facts {
  SchemaSet schemas;
  uint8_t types = kAllTypes;
  bool has_values = false;  // enum or const
  std::vector<const JsonValue*> values;
  Limits length, items, properties;
  std::vector<std::string> patterns;  // all must be found in a string
  NumberRange range;
  std::vector<Decimal> units;     // of multipleOf
  std::vector<SchemaSet> prefix;  // of an array's first items
  SchemaSet rest;                 // of the others
  std::vector<Property> named;
  std::vector<Region> regions;
};

// Reads facts; what it has read is kept.
class FactReader {
 public:
  FactReader(Document* document, Budget* budget, Message* message)
      : document_(*document), budget_(budget), message_(message) {}

  // For each alternative of the set.
  Status read(const SchemaSet& set, std::shared_ptr<const std::vector<Facts>>* out);
  // Whether a value satisfies the set; or the facts, of which it is one of `values` if there are
  // any.
  Status accepts(const SchemaSet& set, const JsonValue& value, bool* out);
  Status accepts_listed(const Facts& facts, const JsonValue& value, bool* out);
  // The strings that the facts take, lengths included or left out.
  Status strings(const Facts& facts, bool with_lengths, std::shared_ptr<const Dfa>* out);
  Status numbers(const Facts& facts, std::shared_ptr<const Dfa>* out);
  // Whether it is certain that no value satisfies both.
  Status exclude(const Facts& a, const Facts& b, int nesting, bool* out);
  // Says for each `oneOf` whether its branches exclude each other; an error if they may not.
  Status check_one_ofs();
  // Puts the path of the schemas before the message of an error, if it has none.
  Status located(Status status, const SchemaSet& schemas);

 private:
  using DfaPointer = std::shared_ptr<const Dfa>;

  Status facts_of(const SchemaSet& schemas, Facts* facts);
  Status read_scalars(const JsonValue* schema, Facts* facts);
  Status read_array(const SchemaSet& schemas, Facts* facts);
  Status read_object(const SchemaSet& schemas, Facts* facts);
  Status read_regions(const SchemaSet& schemas, Facts* facts);
  Status narrow_names(const SchemaSet& names, Facts* facts);
  Status add_unlisted(const JsonValue* schema, const std::string& key, SchemaSet* out);
  Status key_strings(const SchemaSet& set, DfaPointer* out);
  Status dfa(const std::string& pattern, Match match, DfaPointer* out);
  Status dfa(const std::string& pattern, DfaPointer* out);
  Status accepts(const Facts& facts, const JsonValue& value, bool* out);
  Status accepts_array(const Facts& facts, const JsonValue& value, bool* out);
  Status accepts_object(const Facts& facts, const JsonValue& value, bool* out);
  Status exclude_objects(const Facts& a, const Facts& b, int nesting, bool* out);
  Status exclude_sets(const SchemaSet& a, const SchemaSet& b, int nesting, bool* out);

  Document& document_;
  Budget* budget_;
  Message* message_;
  std::unordered_map<std::string, DfaPointer> dfas_;  // by kind and pattern
  std::unordered_map<std::string, std::shared_ptr<const std::vector<Facts>>> known_;
  size_t work_ = 0, reading_ = 0;
};

}  // namespace rushlight::llm::grammar
