// The values of a template: Python's, as far as templates see them. Values are immutable but for
// namespaces, loops and iterators, and are shared by reference counts.
//
// References could form a circle only through namespaces, through scopes that macros keep, and
// through what loops were last told by loop.changed(); a run keeps all of them and empties them at
// its end (run_context.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rushlight/llm/template/values/text.h"

namespace rushlight::llm {

// Missing is an argument that was not passed. View is what dict.items() and the like return.
// Iterator can be read once, as a generator of Python: what filters such as `map` return.
enum class Kind : uint8_t {
  Missing,
  Undefined,
  None,
  Boolean,
  Integer,
  Float,
  String,
  List,
  Tuple,
  Range,
  View,
  Iterator,
  Dict,
  Namespace,
  Macro,
  Function,
  Method,
  Loop,
  Cycler,
  Joiner,
};

struct Object {
  virtual ~Object() = default;
  std::atomic<uint32_t> references{0};
  // Of the values inside each other, so that recursion over them is bounded: how deep they nest,
  // and how many they are. Namespaces, whose items change, count as one.
  uint32_t depth = 1;
  uint32_t weight = 1;
};

template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { hold(); }
  Ref(const Ref& other) : object_(other.object_) { hold(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr && object_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete object_;
    }
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void hold() {
    if (object_ != nullptr) object_->references.fetch_add(1, std::memory_order_relaxed);
  }
  T* object_ = nullptr;
};

template <typename T, typename... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

struct Function;  // builtins/tables.h

class Value {
 public:
  Value() = default;
  static Value missing() { return Value(Kind::Missing, nullptr); }
  // `why` is the text of the error where the value is used; it outlives the run.
  static Value undefined(const char* why) {
    Value value;
    value.why_ = why;
    return value;
  }
  static Value none() { return Value(Kind::None, nullptr); }
  static Value boolean(bool boolean) {
    Value value(Kind::Boolean, nullptr);
    value.integer_ = boolean ? 1 : 0;
    return value;
  }
  static Value integer(int64_t integer) {
    Value value(Kind::Integer, nullptr);
    value.integer_ = integer;
    return value;
  }
  static Value number(double number) {
    Value value(Kind::Float, nullptr);
    value.number_ = number;
    return value;
  }
  static Value string(Text text);
  static Value function(const Function* function) {
    Value value(Kind::Function, nullptr);
    value.function_ = function;
    return value;
  }
  template <typename T>
  static Value object(Kind kind, const Ref<T>& object) {
    return Value(kind, object.get());
  }

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_number() const { return is(Kind::Integer) || is(Kind::Float) || is(Kind::Boolean); }
  bool is_whole() const { return is(Kind::Integer) || is(Kind::Boolean); }
  bool is_items() const;  // a list, tuple, range or view

  // What the value holds; only for its kind.
  bool boolean() const { return integer_ != 0; }
  int64_t integer() const { return integer_; }
  double number() const { return is(Kind::Float) ? number_ : static_cast<double>(integer_); }
  const char* why() const { return why_; }
  const Function* function() const { return function_; }
  const Text& text() const;
  const std::vector<Value>& items() const;
  template <typename T>
  T& as() const {
    return *static_cast<T*>(object_.get());
  }
  const Object* object() const { return object_.get(); }
  uint32_t depth() const { return object_ ? object_->depth : 0; }
  uint32_t weight() const { return object_ ? object_->weight : 1; }

 private:
  Value(Kind kind, Object* object) : kind_(kind), object_(object) {}

  Kind kind_ = Kind::Undefined;
  union {
    int64_t integer_ = 0;
    double number_;
    const char* why_;
    const Function* function_;
  };
  Ref<Object> object_;
};

struct TextObject : Object {
  explicit TextObject(Text t) : text(std::move(t)) {}
  Text text;
};

// Lists, tuples, ranges, views and iterators. `next` is where an iterator was read to.
struct ListObject : Object {
  std::vector<Value> items;
  const char* view = "";  // "dict_items" and the like
  size_t next = 0;
};

using Entry = std::pair<Value, Value>;

// Dictionaries and namespaces.
struct DictObject : Object {
  std::vector<Entry> entries;
  const Value* find(const Value& key) const;
  const Value* find(StringView key) const;
  void set(const Value& key, Value value);
};

// A method of a value, such as `text.strip`.
struct MethodObject : Object {
  Value self;
  std::string name;
};

// The variable `loop`. `before` are the values of the last call of loop.changed().
struct LoopObject : Object {
  Ref<ListObject> items;
  size_t index = 0;
  Value before;
};

// cycler() has the position of the next item in `next`; joiner() has its separator as the one item,
// and has been called if `next` is not 0.
using CyclerObject = ListObject;

inline const Text& Value::text() const { return as<TextObject>().text; }
inline const std::vector<Value>& Value::items() const { return as<ListObject>().items; }
inline bool Value::is_items() const { return kind_ >= Kind::List && kind_ <= Kind::View; }

Value string_value(StringView bytes);

// Python's name of the value's type: "str", "list", "NoneType".
const char* type_name(const Value& value);
bool is_true(const Value& value);
// Python's ==.
bool are_equal(const Value& a, const Value& b);
bool can_be_key(const Value& value);

}  // namespace rushlight::llm
