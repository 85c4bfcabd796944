#include "rushlight/llm/grammar/schema/document.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace rushlight::llm::grammar {

SchemaSet with(SchemaSet set, const JsonValue* schema) {
  const auto at = std::lower_bound(set.begin(), set.end(), schema);
  if (at == set.end() || *at != schema) set.insert(at, schema);
  return set;
}

SchemaSet with(SchemaSet set, const SchemaSet& other) {
  for (const JsonValue* schema : other) set = with(std::move(set), schema);
  return set;
}

namespace {

constexpr size_t kMaxAlternatives = 1000;
constexpr size_t kMaxWork = 200000;
constexpr size_t kMaxReferences = 200;  // one after the other

// What the value of a keyword must be.
enum class Kind : uint8_t {
  Annotation,
  Unsupported,
  Schema,
  Schemas,
  SchemaByName,
  Count,
  Number,
  Text,
  Names,
  Types,
  Enum,
  Value,
  Flag,
  MustBeFalse,
};

struct Keyword {
  const char* name;
  Kind kind;
};

constexpr Keyword kKeywords[] = {
    {"$schema", Kind::Annotation},
    {"$id", Kind::Annotation},
    {"$comment", Kind::Annotation},
    {"$anchor", Kind::Annotation},
    {"$vocabulary", Kind::Annotation},
    {"title", Kind::Annotation},
    {"description", Kind::Annotation},
    {"default", Kind::Annotation},
    {"examples", Kind::Annotation},
    {"example", Kind::Annotation},
    {"deprecated", Kind::Annotation},
    {"readOnly", Kind::Annotation},
    {"writeOnly", Kind::Annotation},
    {"contentEncoding", Kind::Annotation},
    {"contentMediaType", Kind::Annotation},
    {"contentSchema", Kind::Annotation},
    {"$defs", Kind::SchemaByName},
    {"definitions", Kind::SchemaByName},
    {"properties", Kind::SchemaByName},
    {"patternProperties", Kind::SchemaByName},
    {"additionalProperties", Kind::Schema},
    {"propertyNames", Kind::Schema},
    {"items", Kind::Schema},
    {"prefixItems", Kind::Schemas},
    {"allOf", Kind::Schemas},
    {"anyOf", Kind::Schemas},
    {"oneOf", Kind::Schemas},
    {"$ref", Kind::Text},
    {"type", Kind::Types},
    {"enum", Kind::Enum},
    {"const", Kind::Value},
    {"required", Kind::Names},
    {"minProperties", Kind::Count},
    {"maxProperties", Kind::Count},
    {"minItems", Kind::Count},
    {"maxItems", Kind::Count},
    {"minLength", Kind::Count},
    {"maxLength", Kind::Count},
    {"pattern", Kind::Text},
    {"format", Kind::Text},
    {"minimum", Kind::Number},
    {"maximum", Kind::Number},
    {"exclusiveMinimum", Kind::Number},
    {"exclusiveMaximum", Kind::Number},
    {"multipleOf", Kind::Number},
    {"nullable", Kind::Flag},
    {"uniqueItems", Kind::MustBeFalse},
    {"not", Kind::Unsupported},
    {"if", Kind::Unsupported},
    {"then", Kind::Unsupported},
    {"else", Kind::Unsupported},
    {"contains", Kind::Unsupported},
    {"minContains", Kind::Unsupported},
    {"maxContains", Kind::Unsupported},
    {"dependentSchemas", Kind::Unsupported},
    {"dependentRequired", Kind::Unsupported},
    {"dependencies", Kind::Unsupported},
    {"additionalItems", Kind::Unsupported},
    {"unevaluatedItems", Kind::Unsupported},
    {"unevaluatedProperties", Kind::Unsupported},
    {"$dynamicRef", Kind::Unsupported},
    {"$dynamicAnchor", Kind::Unsupported},
    {"$recursiveRef", Kind::Unsupported},
    {"$recursiveAnchor", Kind::Unsupported},
};

bool is_count(const JsonValue& value) {
  if (value.is_integer()) return value.integer() >= 0;
  return value.is_number() && value.number() >= 0 && std::floor(value.number()) == value.number();
}

bool are_names(const JsonValue& value) {
  const auto& items = value.items();
  return value.is_array() &&
         std::all_of(items.begin(), items.end(), [](const JsonValue& v) { return v.is_string(); });
}

bool are_types(const JsonValue& value) {
  static const char* const kTypes[] = {"null",   "boolean", "integer", "number",
                                       "string", "array",   "object"};
  const auto known = [](const JsonValue& v) {
    return std::any_of(std::begin(kTypes), std::end(kTypes),
                       [&v](const char* type) { return v.is_string() && v.string() == type; });
  };
  if (!value.is_array()) return known(value);
  return !value.items().empty() && std::all_of(value.items().begin(), value.items().end(), known);
}

// What is wrong with a keyword's value, or null.
const char* fault_of(Kind kind, const JsonValue& value) {
  switch (kind) {
    case Kind::Annotation:
    case Kind::Value:
      return nullptr;
    case Kind::Unsupported:
      return "is not supported";
    case Kind::MustBeFalse:
      return value.is_boolean() && !value.boolean() ? nullptr : "is not supported, unless false";
    case Kind::Schema:
      return value.is_object() || value.is_boolean() ? nullptr : "must be a schema";
    case Kind::Schemas:
      return value.is_array() && !value.items().empty() ? nullptr
                                                        : "must be a list of schemas, not empty";
    case Kind::SchemaByName:
      return value.is_object() ? nullptr : "must be an object of schemas";
    case Kind::Count:
      return is_count(value) ? nullptr : "must be an integer that is not negative";
    case Kind::Number:
      return value.is_number() && std::isfinite(value.number()) ? nullptr : "must be a number";
    case Kind::Text:
      return value.is_string() ? nullptr : "must be a string";
    case Kind::Names:
      return are_names(value) ? nullptr : "must be a list of strings";
    case Kind::Types:
      return are_types(value) ? nullptr
                              : "must be null, boolean, integer, number, string, array or object, "
                                "or a list of these";
    case Kind::Enum:
      return value.is_array() && !value.items().empty() ? nullptr
                                                        : "must be a list of values, not empty";
    case Kind::Flag:
      return value.is_boolean() ? nullptr : "must be true or false";
  }
  return nullptr;
}

std::string escaped(const std::string& key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

// A part of a JSON pointer in the fragment of a URI.
std::string unescaped(const std::string& part) {
  std::string bytes, out;
  for (size_t i = 0; i < part.size(); ++i) {
    const auto digit = [&part](size_t at) {
      const char c = at < part.size() ? part[at] : 'x';
      return c >= '0' && c <= '9'                 ? c - '0'
             : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 87
                                                  : -1;
    };
    const bool hex = part[i] == '%' && digit(i + 1) >= 0 && digit(i + 2) >= 0;
    bytes += hex ? static_cast<char>(digit(i + 1) * 16 + digit(i + 2)) : part[i];
    if (hex) i += 2;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool tilde = bytes[i] == '~' && i + 1 < bytes.size();
    if (tilde && bytes[i + 1] == '1')
      out += '/', ++i;
    else if (tilde && bytes[i + 1] == '0')
      out += '~', ++i;
    else
      out += bytes[i];
  }
  return out;
}

}  // namespace

std::string shown(const std::string& text, size_t size) {
  return text.size() <= size ? text : text.substr(0, size) + "...";
}

const std::string& Document::path(const JsonValue* schema) const {
  static const std::string unknown = "#";
  const auto known = paths_.find(schema);
  return known == paths_.end() ? unknown : known->second;
}

std::string Document::path(const SchemaSet& set) const {
  std::string shortest = "#";
  for (const JsonValue* schema : set) {
    const std::string& own = path(schema);
    if (schema == set[0] || own.size() < shortest.size()) shortest = own;
  }
  return shortest;
}

Status Document::fail(const JsonValue* schema, const char* keyword, const char* what) {
  return message_->fail(Code::InvalidArgument, "the schema at %s: '%s' %s", path(schema).c_str(),
                        shown(keyword, 100).c_str(), what);
}

void Document::visit(const JsonValue* schema, const std::string& path) {
  if (paths_.emplace(schema, shown(path, 200)).second) open_.push_back(schema);
}

Status Document::check() {
  visit(&root_, "#");
  while (!open_.empty()) {
    const JsonValue* schema = open_.back();
    open_.pop_back();
    if (schema->is_boolean()) continue;
    if (!schema->is_object()) {
      return message_->fail(Code::InvalidArgument,
                            "the schema at %s is %s: it must be an object, true or false",
                            path(schema).c_str(), kind_name(schema->kind()));
    }
    for (const JsonMember& member : schema->members()) RL_TRY(check_keyword(schema, member));
  }
  return Code::Ok;
}

Status Document::check_keyword(const JsonValue* schema, const JsonMember& member) {
  const auto named = [&member](const Keyword& keyword) { return member.key == keyword.name; };
  const auto* keyword = std::find_if(std::begin(kKeywords), std::end(kKeywords), named);
  if (keyword == std::end(kKeywords)) {
    if (member.key.compare(0, 2, "x-") == 0) return Code::Ok;
    return fail(schema, member.key.c_str(), "is no keyword of JSON schema");
  }
  const char* fault = fault_of(keyword->kind, member.value);
  if (fault != nullptr) return fail(schema, keyword->name, fault);
  if (member.key == "multipleOf" && !(member.value.number() > 0)) {
    return fail(schema, "multipleOf", "must be above 0");
  }
  if (member.key == "$ref") {
    const JsonValue* target = nullptr;
    RL_TRY(resolve(schema, member.value.string(), &target));
    references_[schema] = target;
    visit(target, member.value.string());
  }
  const std::string at = path(schema) + "/" + member.key;
  if (keyword->kind == Kind::Schema) visit(&member.value, at);
  if (keyword->kind == Kind::Schemas) {
    for (size_t i = 0; i < member.value.items().size(); ++i) {
      visit(&member.value.items()[i], at + "/" + std::to_string(i));
    }
  }
  if (keyword->kind == Kind::SchemaByName) {
    for (const JsonMember& part : member.value.members()) {
      visit(&part.value, at + "/" + escaped(part.key));
    }
  }
  if (member.key == "oneOf") one_ofs_.push_back(schema);
  return Code::Ok;
}

const JsonValue* Document::member(const JsonValue& object, const std::string& key) {
  const auto [index, is_new] = members_.try_emplace(&object);
  if (is_new) {
    for (const JsonMember& member : object.members()) {
      index->second.emplace(member.key, &member.value);
    }
  }
  const auto known = index->second.find(key);
  return known == index->second.end() ? nullptr : known->second;
}

Status Document::resolve(const JsonValue* schema, const std::string& reference,
                         const JsonValue** out) {
  std::string fragment = reference;
  const JsonValue* id = root_.find("$id");
  if (id != nullptr && id->is_string() && !id->string().empty() &&
      fragment.compare(0, id->string().size(), id->string()) == 0) {
    fragment = fragment.substr(id->string().size());
    if (fragment.empty()) fragment = "#";
  }
  if (fragment.empty() || fragment[0] != '#') {
    return fail(schema, "$ref", "must begin with '#': only parts of the schema itself are found");
  }
  const JsonValue* at = &root_;
  if (fragment.size() > 1 && fragment[1] != '/') {
    return fail(schema, "$ref", "must be a pointer such as '#/$defs/name': anchors are not found");
  }
  for (size_t begin = 1; begin < fragment.size();) {
    const size_t end = std::min(fragment.find('/', begin + 1), fragment.size());
    const std::string part = unescaped(fragment.substr(begin + 1, end - begin - 1));
    begin = end;
    const JsonValue* next = member(*at, part);
    const bool is_index =
        !part.empty() && part.size() < 9 &&
        std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (at->is_array() && is_index && std::stoul(part) < at->items().size()) {
      next = &at->items()[std::stoul(part)];
    }
    if (next == nullptr) {
      const std::string what = "names '" + shown(reference, 200) + "', which is not there";
      return fail(schema, "$ref", what.c_str());
    }
    at = next;
  }
  *out = at;
  return Code::Ok;
}

Status Document::cross(const JsonValue* schema, Sets* sets, const Sets& others) {
  if (others.size() == 1) {
    for (SchemaSet& set : *sets) set = with(std::move(set), others[0]);
    return Code::Ok;
  }
  Sets crossed;
  for (const SchemaSet& a : *sets) {
    for (const SchemaSet& b : others) crossed.push_back(with(a, b));
    if (crossed.size() > kMaxAlternatives) {
      return message_->fail(Code::OutOfResources,
                            "the schema at %s: anyOf and oneOf combine to more than %zu "
                            "alternatives: use fewer of them beside each other",
                            path(schema).c_str(), kMaxAlternatives);
    }
  }
  *sets = std::move(crossed);
  return Code::Ok;
}

Status Document::branches(const JsonValue& list, Sets* out) {
  for (const JsonValue& branch : list.items()) {
    Sets sets;
    RL_TRY(flatten(&branch, &sets));
    for (SchemaSet& set : sets) {
      if (std::find(out->begin(), out->end(), set) == out->end()) out->push_back(std::move(set));
    }
  }
  return Code::Ok;
}

// A schema that leads to itself without reading anything adds no text: it has no alternatives then.
Status Document::flatten(const JsonValue* schema, Sets* out) {
  out->clear();
  if (schema->is_boolean() && schema->boolean()) {
    out->push_back({});
    return Code::Ok;
  }
  if (schema->is_boolean()) return Code::Ok;
  if (std::find(flattening_.begin(), flattening_.end(), schema) != flattening_.end()) {
    return Code::Ok;
  }
  if (flattening_.size() > kMaxReferences || ++work_ > kMaxWork) {
    return message_->fail(Code::OutOfResources,
                          "the schema at %s: references and combinations are nested too deep, "
                          "or are too many",
                          path(schema).c_str());
  }
  flattening_.push_back(schema);
  out->push_back({schema});
  Sets sets;
  const auto target = references_.find(schema);
  if (target != references_.end()) {
    RL_TRY(flatten(target->second, &sets));
    RL_TRY(cross(schema, out, sets));
  }
  if (const JsonValue* all = schema->find("allOf")) {
    for (const JsonValue& part : all->items()) {
      RL_TRY(flatten(&part, &sets));
      RL_TRY(cross(schema, out, sets));
    }
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    const JsonValue* list = schema->find(keyword);
    if (list == nullptr) continue;
    Sets of_list;
    RL_TRY(branches(*list, &of_list));
    RL_TRY(cross(schema, out, of_list));
  }
  flattening_.pop_back();
  return Code::Ok;
}

Status Document::alternatives(const SchemaSet& set, std::vector<SchemaSet>* out) {
  out->assign(1, SchemaSet());
  for (const JsonValue* schema : set) {
    Sets sets;
    flattening_.clear();
    RL_TRY(flatten(schema, &sets));
    RL_TRY(cross(schema, out, sets));
  }
  return Code::Ok;
}

}  // namespace rushlight::llm::grammar
