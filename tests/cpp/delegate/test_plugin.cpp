// Backends of separately built libraries: the C struct, which structs are refused, and a shared
// library that is loaded by its path.
#include <string>

#include "check.h"
#include "delegates.h"
#include "rushlight/module/backend_library.h"
#include "rushlight/trace/recorder.h"

using namespace rushlight;
using namespace rushlight::test;

namespace {

int32_t never_init(void*, const rl_init_v1*, void**) { return RL_INTERNAL; }
int32_t never_execute(void*, void*, const rl_call_v1*) { return RL_INTERNAL; }

rl_backend_v1 sound() {
  return {RL_BACKEND_V1_VERSION,
          sizeof(rl_backend_v1),
          "Sound",
          nullptr,
          nullptr,
          never_init,
          never_execute,
          nullptr};
}

bool is_refused(const rl_backend_v1* backend, const char* why) {
  PluginBackend plugin;
  Message message;
  return plugin.adopt(backend, message).code() == Code::DelegateInvalidCompatibility &&
         says(message, why);
}

void test_hostile_structs() {
  PluginBackend plugin;
  Message message;
  rl_backend_v1 backend = sound();
  CHECK(plugin.adopt(&backend, message).ok() && plugin.available());
  CHECK(is_refused(nullptr, "it is NULL"));
  backend.version = 2;
  CHECK(is_refused(&backend, "of version 2 of the interface; this runtime knows version 1"));
  backend = sound();
  backend.size = sizeof(rl_backend_v1) - 8;
  CHECK(is_refused(&backend, "and more (at most 4096) are allowed"));
  backend.size = 0x7fffffff;
  CHECK(is_refused(&backend, "2147483647 bytes"));
  backend = sound();
  backend.size += 64;  // a later version with fields at its end
  CHECK(plugin.adopt(&backend, message).ok());
  backend.init = nullptr;
  CHECK(is_refused(&backend, "it has no init"));
  backend = sound();
  backend.execute = nullptr;
  CHECK(is_refused(&backend, "it has no execute"));
  for (const char* id :
       {static_cast<const char*>(nullptr), "",
        "an id that is much longer than the 63 bytes that ExecuTorch has for one"}) {
    backend = sound();
    backend.id = id;
    CHECK(is_refused(&backend, "its id must have 1 to 63 bytes"));
  }
}

// A plugin that requests what it must not have, and that knows an earlier version of the structs.
int32_t probing_init(void* self, const rl_init_v1* init, void** handle) {
  const rl_host_v1* host = init->host;
  rl_option_v1 option = {};
  CHECK(host->option(init->context, {"mode", 4}, &option) == RL_INVALID_ARGUMENT);  // size is 0
  option.size = 16;  // of a header without `text`
  CHECK(host->option(init->context, {"mode", 4}, &option) == RL_OK);
  CHECK(option.kind == RL_BOOL && option.i == 1 && option.text.data == nullptr);
  CHECK(host->option(init->context, {"mode", 4}, nullptr) == RL_INVALID_ARGUMENT);
  CHECK(host->option(init->context, {nullptr, 4}, &option) == RL_NOT_FOUND);
  CHECK(host->named_data(init->context, {"none", 4}, nullptr) == RL_INVALID_ARGUMENT);
  rl_bytes_v1 bytes;
  CHECK(host->named_data(init->context, {"none", 4}, &bytes) == RL_NOT_FOUND);
  CHECK(host->allocate(init->context, 8, 3) == nullptr);
  CHECK(host->allocate(init->context, SIZE_MAX, 16) == nullptr);
  rl_value_v1 value = {};
  value.size = sizeof(value);
  CHECK(host->value(init->context, 0, &value) == RL_INVALID_ARGUMENT);  // only allowed in execute
  host->event(init->context, {nullptr, 0}, 3, 0, 1);
  *handle = self;
  return RL_OK;
}

int32_t probing_execute(void*, void* handle, const rl_call_v1* call) {
  const rl_host_v1* host = call->host;
  rl_value_v1 value = {};
  value.size = sizeof(value);
  CHECK(handle != nullptr && call->n_args == 2 && call->n_inputs == 1);
  CHECK(host->value(call->context, 2, &value) == RL_INVALID_ARGUMENT);
  CHECK(host->value(call->context, 1, nullptr) == RL_INVALID_ARGUMENT);
  CHECK(host->value(call->context, 1, &value) == RL_OK && value.nbytes == 8);
  rl_bytes_v1 bytes;
  CHECK(host->named_data(call->context, {"none", 4}, &bytes) == RL_INVALID_ARGUMENT);
  host->release_payload(call->context);
  const int32_t sizes[] = {1, 1};
  CHECK(host->resize(call->context, 0, sizes, 1) == RL_INVALID_ARGUMENT);  // an input
  CHECK(host->resize(call->context, 1, nullptr, 1) == RL_INVALID_ARGUMENT);
  CHECK(host->resize(call->context, 1, sizes, 2) != RL_OK);
  CHECK(host->resize(call->context, 1, sizes, UINT32_MAX) == RL_INVALID_ARGUMENT);
  host->explain(call->context, {"", 0});
  return -5;
}

void test_host_functions() {
  int self = 0;
  rl_backend_v1 backend = sound();
  backend.self = &self;
  backend.init = probing_init;
  backend.execute = probing_execute;
  PluginBackend plugin;
  Message message;
  BackendTable table;
  CHECK(plugin.adopt(&backend, message).ok() && table.add(plugin.id(), &plugin).ok());
  const BackendOption options[] = {BackendOption::of_bool("mode", true)};
  BackendOptionsMap map;
  CHECK(map.set("Sound", options, message).ok());
  Loaded loaded(one_delegate_file("Sound", {1}));
  MethodOptions method_options = {};
  method_options.backends = &table;
  method_options.backend_options = &map;
  CHECK(loaded.load("forward", method_options).ok());
  CHECK(run_on(loaded.method, {1, 2}).code() == Code::Internal);
  CHECK(says(loaded.method.message(), "(Sound): the backend returned -5"));
}

int32_t probing_values_init(void*, const rl_init_v1* init, void**) {
  CHECK(init->host->wants_value(init->context, {nullptr, 0}, 3) == 0);
  CHECK(init->host->tell_value(init->context, {nullptr, 0}, 3, 6, nullptr, 0, {nullptr, 0}) ==
        RL_INVALID_ARGUMENT);  // only allowed in execute
  return RL_OK;
}

// Values that cannot be, and then some that can.
int32_t probing_values(void* self, void*, const rl_call_v1* call) {
  const rl_host_v1* host = call->host;
  const float numbers[] = {1, 2, 3, 4};
  const auto tell = [&](int32_t dtype, const int32_t* sizes, uint32_t rank, rl_bytes_v1 data) {
    return host->tell_value(call->context, {nullptr, 0}, 3, dtype, sizes, rank, data);
  };
  const rl_bytes_v1 four = {numbers, sizeof numbers}, none = {nullptr, 0};
  const int32_t sizes[] = {2, 2}, negative[] = {-2, -2}, empty[] = {0, 2};
  int32_t huge[17];
  for (int32_t& size : huge) size = INT32_MAX;
  huge[0] = 0;
  const bool traced = *static_cast<bool*>(self);
  CHECK((host->wants_value(call->context, {nullptr, 0}, 3) != 0) == traced);
  if (!traced) return tell(-1, nullptr, 5, none);  // not even read
  for (const int32_t dtype : {-1, 8, 12, 16, 18, 23, 30, 100, 262, INT32_MIN, INT32_MAX}) {
    CHECK(tell(dtype, sizes, 2, four) == RL_INVALID_ARGUMENT);
  }
  CHECK(tell(6, nullptr, 2, four) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, negative, 2, four) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, huge, 4, none) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, huge + 1, 2, four) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, sizes, 17, four) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, sizes, UINT32_MAX, four) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, sizes, 2, {nullptr, sizeof numbers}) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, sizes, 2, {numbers, sizeof numbers - 1}) == RL_INVALID_ARGUMENT);
  CHECK(tell(7, sizes, 2, four) == RL_INVALID_ARGUMENT);
  CHECK(tell(6, sizes, 2, four) == RL_OK);
  CHECK(tell(6, empty, 2, none) == RL_OK);
  CHECK(tell(6, nullptr, 0, {numbers, sizeof numbers[0]}) == RL_OK);
  return tell(0, sizes, 2, {numbers, 3});
}

void test_values() {
  bool traced = false;
  rl_backend_v1 backend = sound();
  backend.self = &traced;
  backend.init = probing_values_init;
  backend.execute = probing_values;
  PluginBackend plugin;
  Message message;
  BackendTable table;
  CHECK(plugin.adopt(&backend, message).ok() && table.add(plugin.id(), &plugin).ok());
  std::vector<uint8_t> memory(TraceRecorder::kLeastMemory), bytes(1024);
  ValueBuffer values({bytes.data(), bytes.size()});
  TraceRecorder recorder({memory.data(), memory.size()}, &values, ValueLevel::All);
  MethodOptions options = {};
  options.backends = &table;
  Loaded untraced(one_delegate_file("Sound", {1}));
  CHECK(untraced.load("forward", options).ok() && run_on(untraced.method, {1, 2}).ok());
  traced = true;
  options.tracer = &recorder;
  Loaded loaded(one_delegate_file("Sound", {1}));
  CHECK(loaded.load("forward", options).ok());
  CHECK(run_on(loaded.method, {1, 2}).code() == Code::InvalidArgument);
  CHECK(says(loaded.method.message(),
             "(Sound): the value of 3 has 3 bytes, but its sizes (2, 2) and dtype uint8 take 4 "
             "elements of 1 bytes"));
  size_t told = 0;
  for (const Record* r = recorder.first(); r != nullptr; r = recorder.next(*r)) {
    if (r->kind == RecordKind::Value) told += r->number == 3 ? 1 : 100;
  }
  CHECK(told == 3 && recorder.dropped_values() == 0);
  const StringView other[] = {"0/4"};
  recorder.choose_values(other);
  traced = false;  // 0/3 is not wanted
  CHECK(run_on(loaded.method, {1, 2}).ok());
}

struct Opened {
  Opened(const char* path, const std::vector<uint8_t>& file, MethodOptions options = {})
      : loaded(file) {
    CHECK(library.open(path, message).ok() && library.add_to(table, message).ok());
    options.backends = &table;
    loaded.allow_structures(1024);
    status = loaded.load("forward", options);
  }
  Message message;
  BackendLibrary library;
  BackendTable table;
  Loaded loaded;
  Status status;
};

void test_library(const char* path) {
  {
    Opened opened(path, one_delegate_file("Scale", scale_payload(3)));
    CHECK(opened.status.ok() && opened.library.size() == 1);
    CHECK(run_on(opened.loaded.method, {1, 2}).ok());
    CHECK(first(opened.loaded.method.output(0)) == 3);
    CHECK(run_on(opened.loaded.method, {1, -2}).code() == Code::InvalidArgument);
    CHECK(says(opened.loaded.method.message(),
               "forward: instruction 0 (Scale): at mul: an element is negative"));
    CHECK(opened.loaded.method.failed_delegate() == 0);
    CHECK(std::string(opened.loaded.method.failed_place()) == "mul");
    Message message;
    CHECK(opened.library.add_to(opened.table, message).code() ==
          Code::RegistrationAlreadyRegistered);
  }
  Opened resized(path, one_delegate_file("Scale", scale_payload(3), true));
  CHECK(run_on(resized.loaded.method, {2}).ok());
  CHECK(resized.loaded.method.output(0).tensor().numel == 1);
  std::vector<uint8_t> cut = scale_payload(3);
  cut.pop_back();
  Opened wrong(path, one_delegate_file("Scale", cut));
  CHECK(wrong.status.code() == Code::DelegateInvalidCompatibility);
  CHECK(says(wrong.loaded.message,
             "forward: delegate 0 (Scale): at 7: the payload is not 'SCL1' and a factor"));
}

// Writes beyond its output, which is detected if checks are on.
void test_overrun(const char* path) {
  MethodOptions options = {};
  options.check_backends = true;
  Opened opened(path, one_delegate_file("Scale", scale_payload(3)), options);
  CHECK(opened.status.ok());
  CHECK(run_on(opened.loaded.method, {1, 2}).code() == Code::Internal);
  CHECK(says(opened.loaded.method.message(), "wrote past the end of output 0: 2 bytes behind it"));
  // 1.0f is 00 00 80 3f, over zeros.
}

void test_no_library(const char* not_a_library) {
  BackendLibrary library;
  Message message;
  CHECK(library.open("/no/such/library.so", message).code() == Code::AccessFailed);
  CHECK(says(message, "/no/such/library.so: the library cannot be loaded: "));
  BackendLibrary other;
  CHECK(other.open(not_a_library, message).code() == Code::NotFound);
  CHECK(says(message, "exports no rl_get_backend_v1"));
}

}  // namespace

int main(int argc, char** argv) {
  test_hostile_structs();
  test_host_functions();
  if (kHasTracing) test_values();
  if (argc != 4) return check_result();  // no shared libraries on this system
  test_library(argv[1]);
  test_overrun(argv[2]);
  test_no_library(argv[3]);
  return check_result();
}
