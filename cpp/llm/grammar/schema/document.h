// A JSON schema as a document: where its parts are, what references name, and which combinations of
// parts a value may satisfy.
//
// A SchemaSet is a set of schemas that must all hold; the empty one holds for every value.
// References, `allOf`, `anyOf` and `oneOf` are resolved into alternatives, each a set of schemas of
// which only the other keywords count. So `allOf` needs no merging of texts, and references may be
// recursive.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rushlight/core/message.h"
#include "rushlight/core/status.h"
#include "rushlight/llm/json/value.h"

namespace rushlight::llm::grammar {

using SchemaSet = std::vector<const JsonValue*>;  // sorted, each once

SchemaSet with(SchemaSet set, const JsonValue* schema);
SchemaSet with(SchemaSet set, const SchemaSet& other);

// At most so many bytes of a text, for errors.
std::string shown(const std::string& text, size_t size);

class Document {
 public:
  Document(const JsonValue& root, Message* message) : root_(root), message_(message) {}

  // Checks every schema that can be reached from the root: keywords are known and of the right
  // kinds.
  Status check();
  // "#/properties/name" of a schema.
  const std::string& path(const JsonValue* schema) const;
  std::string path(const SchemaSet& set) const;
  Status alternatives(const SchemaSet& set, std::vector<SchemaSet>* out);
  // The `oneOf` lists that were met, whose branches must exclude each other.
  const std::vector<const JsonValue*>& one_ofs() const { return one_ofs_; }
  const JsonValue& root() const { return root_; }
  // As JsonValue::find, which looks at all members each time.
  const JsonValue* member(const JsonValue& object, const std::string& key);

 private:
  using Sets = std::vector<SchemaSet>;

  Status check_keyword(const JsonValue* schema, const JsonMember& member);
  Status fail(const JsonValue* schema, const char* keyword, const char* what);
  void visit(const JsonValue* schema, const std::string& path);
  Status resolve(const JsonValue* schema, const std::string& reference, const JsonValue** out);
  Status flatten(const JsonValue* schema, Sets* out);
  Status branches(const JsonValue& list, Sets* out);
  Status cross(const JsonValue* schema, Sets* sets, const Sets& others);

  const JsonValue& root_;
  Message* message_;
  std::unordered_map<const JsonValue*, std::string> paths_;
  std::unordered_map<const JsonValue*, const JsonValue*> references_;
  // By object: its members by key.
  std::unordered_map<const JsonValue*, std::unordered_map<std::string, const JsonValue*>> members_;
  std::vector<const JsonValue*> open_, one_ofs_, flattening_;
  size_t work_ = 0;
};

}  // namespace rushlight::llm::grammar
