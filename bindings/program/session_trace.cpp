#include "program/session_trace.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays/values.h"
#include "bindings.h"
#include "failure.h"

namespace rushlight::python {
namespace {

namespace nb = nanobind;

class BytesSink : public ByteSink {
 public:
  explicit BytesSink(size_t size) { bytes_.reserve(size); }
  bool write(Span<const uint8_t> bytes) override {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return true;
  }
  nb::bytes take() const { return nb::bytes(bytes_.data(), bytes_.size()); }

 private:
  std::string bytes_;
};

std::string text(const TraceRecorder& recorder, uint32_t place) {
  const StringView text = recorder.text(place);
  return std::string(text.data(), text.size());
}

// By the name that the recorder gives an instruction; nullptr for anything else.
const char* kind_of(const std::string& name) {
  static constexpr const char* kKinds[][2] = {{"OPERATOR_CALL", "kernel"},
                                              {"DELEGATE_CALL", "delegate"},
                                              {"MOVE_CALL", "move"},
                                              {"JF_CALL", "jump"},
                                              {"FREE_CALL", "free"}};
  for (const auto& kind : kKinds) {
    if (name == kind[0]) return kind[1];
  }
  return nullptr;
}

}  // namespace

TraceOptions trace_options(const nb::tuple& fields) {
  TraceOptions options;
  options.bytes = nb::cast<size_t>(fields[0]);
  options.value_bytes = nb::cast<size_t>(fields[1]);
  options.values = static_cast<ValueLevel>(nb::cast<uint8_t>(fields[2]));
  options.names = nb::cast<std::vector<std::string>>(fields[3]);
  return options;
}

SessionTrace::SessionTrace(const TraceOptions& options)
    : memory_(new uint8_t[options.bytes]),
      value_memory_(new uint8_t[options.value_bytes]),
      names_(options.names),
      values_({value_memory_.get(), options.value_bytes}),
      recorder_({memory_.get(), options.bytes}, &values_, options.values) {
  for (const std::string& name : names_) chosen_.emplace_back(name.data(), name.size());
  recorder_.choose_values({chosen_.data(), chosen_.size()});
}

void SessionTrace::clear() {
  recorder_.clear();
  values_.clear();
}

const Record* SessionTrace::last_run() const {
  const Record* last = nullptr;
  for (const Record* r = recorder_.first(); r != nullptr; r = recorder_.next(*r)) {
    if (r->kind == RecordKind::Block && recorder_.text(r->name) == "Execute") last = r;
  }
  return last;
}

StringView SessionTrace::method() const {
  const Record* run = last_run();
  return run != nullptr ? recorder_.text(run->metadata) : StringView();
}

nb::list SessionTrace::events(const Method* method) const {
  nb::list events;
  const Record* record = last_run();
  if (record == nullptr) return events;
  std::vector<const Record*> inside;
  const int32_t n_events = record->number;
  for (int32_t i = 0; i < n_events; ++i) {
    record = recorder_.next(*record);
    if (record->kind != RecordKind::Profile || record->chain < 0) continue;
    const std::string call = text(recorder_, record->name);
    const char* kind = kind_of(call);
    if (record->name == 0) {
      inside.push_back(record);
      continue;
    }
    if (kind == nullptr) continue;  // the kernel, which the instruction's event repeats
    const auto chain = static_cast<uint32_t>(record->chain);
    const auto at = static_cast<uint32_t>(record->instruction);
    const bool is_call = kind == std::string("kernel") || kind == std::string("delegate");
    std::string name;
    uint32_t delegate = Method::kNoDelegate;
    if (method != nullptr && is_call) {
      const StringView known = method->instruction_name(chain, at);
      name.assign(known.data(), known.size());
      delegate = method->delegate_of(chain, at);
    }
    const int64_t number = delegate != Method::kNoDelegate ? int64_t{delegate} : -1;
    events.append(nb::make_tuple(at, kind, to_str({name.data(), name.size()}),
                                 record->second - record->first, number, nb::str("")));
    for (const Record* one : inside) {
      const std::string place =
          one->id_text != 0 ? text(recorder_, one->id_text) : std::to_string(one->number);
      events.append(
          nb::make_tuple(at, kind, to_str({name.data(), name.size()}),
                         one->second > one->first ? one->second - one->first : uint64_t{0}, number,
                         to_str({place.data(), place.size()})));
    }
    inside.clear();
  }
  return events;
}

nb::tuple SessionTrace::content() const {
  BytesSink sink(etdump_size(recorder_));
  const Status status = write_etdump(recorder_, sink);
  if (!status.ok()) fail(status.code(), "the trace is larger than 2 GiB, which its format allows");
  const Span<const uint8_t> values = values_.bytes();
  return nb::make_tuple(sink.take(),
                        nb::bytes(reinterpret_cast<const char*>(values.data()), values.size()));
}

nb::tuple SessionTrace::dropped() const {
  return nb::make_tuple(recorder_.dropped(), recorder_.dropped_values());
}

}  // namespace rushlight::python
