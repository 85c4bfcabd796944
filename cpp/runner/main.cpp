// rushlight_runner: runs a method of a program file from the command line.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "rushlight/module/backend_library.h"
#include "rushlight/module/debug/crash_report.h"
#include "rushlight/module/debug/failure_lines.h"
#include "rushlight/module/files/failure_file.h"
#include "rushlight/module/files/trace_file.h"
#include "rushlight/module/module.h"
#include "rushlight/platform/platform.h"
#include "rushlight/runner/npy.h"
#include "rushlight/runner/report.h"
#include "rushlight/runner/verify.h"

namespace {

using namespace rushlight;

constexpr char kUsage[] =
    "usage: rushlight_runner PROGRAM.pte|PROGRAM.bpte [options]\n"
    "       rushlight_runner --ops\n"
    "  --method NAME        what to run; forward by default\n"
    "  --input FILE         an input, in order: .npy, or raw bytes; without it, ones\n"
    "  --data FILE.ptd      the data file that belongs to the program\n"
    "  --backend FILE.so    a library of backends (rl_backend_v1.h); may be given again\n"
    "  --kernels FILE.so    a library of kernels (rl_kernel_v1.h); may be given again\n"
    "  --threads N          how many threads kernels use; all cores by default\n"
    "  --memory-limit N     refuse to load if more bytes are needed\n"
    "  --repeat N           run N times and print least, median and greatest time\n"
    "  --no-map             read the files into memory, for files that others may write\n"
    "  --guard              before each run, ask whether the files have changed\n"
    "  --etdump FILE.etdp   write a trace of the load and the runs in ExecuTorch's format\n"
    "  --etdump-values V    also write values to FILE.etdp.values: outputs (the method's), all\n"
    "                       (what each operator writes), or names with commas between them: of\n"
    "                       kernels and backends (aten::sin.out), indices of instructions (7),\n"
    "                       places inside their delegates (7/12)\n"
    "  --etdump-bytes N     memory for the trace's events; 64 MiB by default\n"
    "  --failure-report F   if a load or a run fails, or crashes, write what happened to F, for\n"
    "                       `rushlight explain F PROGRAM.pte`\n"
    "  --verify             run the test cases of a bundled program (.bpte), of --method or of "
    "all\n"
    "                       methods; exits with 1 if an output departs from what is expected\n"
    "  --rtol X, --atol X   with --verify, in place of the file's tolerances\n"
    "  --print              print every number of the outputs\n"
    "  --list               print the methods and leave\n"
    "  --ops                print the kernels that are linked in, a line for each, and leave\n";

struct Arguments {
  std::string program;
  std::string method;  // empty: forward, and all for --verify
  std::vector<std::string> inputs;
  std::string data;
  std::vector<std::string> backends;
  std::vector<std::string> kernels;
  TraceFileOptions trace;
  std::string failure_report;
  uint64_t memory_limit = 0;
  uint64_t threads = 0;
  long repeat = 1;
  bool map = true;
  bool guard = false;
  bool print = false;
  bool list = false;
  bool ops = false;
  bool verify = false;
  ToleranceOverride tolerance;
};

bool parse_count(const char* text, uint64_t* value) {
  char* end = nullptr;
  *value = std::strtoull(text, &end, 10);
  return end != text && *end == '\0' && text[0] != '-';
}

void parse_values(const std::string& text, TraceFileOptions* trace) {
  trace->values = text == "outputs" ? ValueLevel::Outputs : ValueLevel::All;
  if (text == "outputs" || text == "all") return;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    if (end > at) trace->names.push_back(text.substr(at, end - at));
    at = end + 1;
  }
}

bool parse_text(const std::string& option, const char* value, Arguments* arguments) {
  if (option == "--method") {
    arguments->method = value;
  } else if (option == "--input") {
    arguments->inputs.push_back(value);
  } else if (option == "--data") {
    arguments->data = value;
  } else if (option == "--backend") {
    arguments->backends.push_back(value);
  } else if (option == "--kernels") {
    arguments->kernels.push_back(value);
  } else if (option == "--etdump") {
    arguments->trace.path = value;
  } else if (option == "--failure-report") {
    arguments->failure_report = value;
  } else if (option == "--etdump-values") {
    parse_values(value, &arguments->trace);
  } else {
    return false;
  }
  return true;
}

bool parse_tolerance(const char* text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text, &end);
  return end != text && *end == '\0' && *value >= 0;
}

bool parse_option(const std::string& option, const char* value, Arguments* arguments) {
  if (parse_text(option, value, arguments)) return true;
  if (option == "--rtol") return parse_tolerance(value, &arguments->tolerance.rtol);
  if (option == "--atol") return parse_tolerance(value, &arguments->tolerance.atol);
  uint64_t count = 0;
  if (!parse_count(value, &count)) return false;
  if (option == "--memory-limit") {
    arguments->memory_limit = count;
  } else if (option == "--threads") {
    arguments->threads = count;
  } else if (option == "--etdump-bytes" && count <= UINT32_MAX) {
    arguments->trace.bytes = static_cast<size_t>(count);
  } else if (option == "--repeat" && count > 0 && count < 1000000000) {
    arguments->repeat = static_cast<long>(count);
  } else {
    return false;
  }
  return true;
}

bool parse_flag(const std::string& word, Arguments* arguments) {
  if (word == "--no-map") arguments->map = false;
  if (word == "--guard") arguments->guard = true;
  if (word == "--print") arguments->print = true;
  if (word == "--list") arguments->list = true;
  if (word == "--ops") arguments->ops = true;
  if (word == "--verify") arguments->verify = true;
  return word == "--no-map" || word == "--guard" || word == "--print" || word == "--list" ||
         word == "--ops" || word == "--verify";
}

bool parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (parse_flag(word, arguments)) continue;
    if (word.rfind("--", 0) == 0) {
      ++i;
      if (i == argc || !parse_option(word, argv[i], arguments)) return false;
    } else if (arguments->program.empty()) {
      arguments->program = word;
    } else {
      return false;
    }
  }
  if (arguments->trace.path.empty() && arguments->trace.values != ValueLevel::None) return false;
  return arguments->ops || !arguments->program.empty();
}

int complain(const char* text) {
  std::fprintf(stderr, "rushlight_runner: %s\n", text);
  return 1;
}

// Prints the error with the lines of Python that the failure comes from.
int complain(const Method& method) {
  complain(method.message().text());
  char lines[1024];
  if (failure_lines(method, lines, sizeof(lines)) > 0) std::fprintf(stderr, "  from %s\n", lines);
  return 1;
}

// Prints why `module` could not load a method.
int complain(const Module& module) {
  const Method* failed = module.failed_method();
  if (failed != nullptr && failed->failed_delegate() != Method::kNoDelegate) {
    return complain(*failed);
  }
  complain(module.message().text());
  uint32_t cursor = 0;
  MissingBackend missing;
  if (failed != nullptr && failed->next_missing_backend(&cursor, &missing)) {
    std::fputs("  --backend FILE.so loads a library of backends\n", stderr);
  }
  return 1;
}

// Ones of a dtype; zero bytes if the dtype has no simple representation of 1.
std::vector<uint8_t> ones(DType dtype, size_t nbytes) {
  std::vector<uint8_t> bytes(nbytes, 0);
  const size_t size = element_size(dtype);
  uint64_t one = 1;
  if (dtype == DType::Float32) one = 0x3f800000;
  if (dtype == DType::Float64) one = 0x3ff0000000000000;
  if (dtype == DType::Float16) one = 0x3c00;
  if (dtype == DType::BFloat16) one = 0x3f80;
  for (size_t at = 0; at + size <= nbytes && size <= sizeof(one); at += size) {
    std::memcpy(&bytes[at], &one, size);  // little-endian, as the files are
  }
  return bytes;
}

// Reads the input's file at the first call. `storage` keeps the data, since a method may read it in
// place.
Status set_tensor(Method& method, size_t i, const TensorMeta& meta, const Arguments& arguments,
                  InputFile* storage) {
  if (!storage->storage.empty()) {
    // the file was read before
  } else if (i < arguments.inputs.size()) {
    const std::string wrong = read_input(arguments.inputs[i], meta.dtype, meta.shape(), storage);
    if (!wrong.empty()) {
      complain(wrong.c_str());
      return Code::AccessFailed;
    }
  } else {
    storage->dtype = meta.dtype;
    storage->sizes.assign(meta.shape().begin(), meta.shape().end());
    storage->dim_order.assign(meta.dim_order, meta.dim_order + meta.rank);
    if (meta.nbytes > uint64_t{1} << 40) return Code::OutOfResources;
    storage->storage = ones(meta.dtype, meta.nbytes);
  }
  const Span<const int32_t> sizes(storage->sizes.data(), storage->sizes.size());
  return method.set_input(
      i, HostTensor(storage->dtype, sizes, storage->data(), storage->dim_order.data()));
}

Status set_inputs(Method& method, const Arguments& arguments, std::vector<InputFile>* storage) {
  storage->resize(method.n_inputs());
  for (size_t i = 0; i < method.n_inputs(); ++i) {
    const ValueMeta meta = method.meta().input(i);
    Status status = Code::NotSupported;
    if (meta.tag == Tag::Tensor) {
      status = set_tensor(method, i, meta.tensor, arguments, &(*storage)[i]);
    }
    if (meta.tag == Tag::Int) status = method.set_input_int(i, meta.i);
    if (meta.tag == Tag::Double) status = method.set_input_double(i, meta.d);
    if (meta.tag == Tag::Bool) status = method.set_input_bool(i, meta.i != 0);
    if (meta.tag == Tag::String) status = method.set_input_string(i, meta.text);
    if (meta.tag == Tag::None) status = method.set_input_none(i);
    if (!status.ok()) return status;
  }
  return {};
}

// Inputs are set again before every run, since their memory may be reused for other tensors.
int run(Method& method, const Arguments& arguments) {
  std::vector<InputFile> storage;
  std::vector<double> times;
  for (long i = 0; i < arguments.repeat; ++i) {
    if (!set_inputs(method, arguments, &storage).ok()) return complain(method.message().text());
    const uint64_t start = now_ns();
    if (!method.execute().ok()) return complain(method);
    times.push_back(static_cast<double>(now_ns() - start) * 1e-6);
  }
  std::sort(times.begin(), times.end());
  std::printf("%ld runs: min %.4f ms, median %.4f ms, max %.4f ms\n", arguments.repeat,
              times.front(), times[times.size() / 2], times.back());
  for (size_t i = 0; i < method.n_outputs(); ++i) {
    print_value(i, method.output(i), arguments.print);
  }
  return 0;
}

// Writes the trace, also of a run that failed, and says what it does not hold.
int save_trace(TraceFile& trace) {
  Message message;
  if (!trace.save(message).ok()) return complain(message.text());
  const TraceRecorder& recorder = trace.recorder();
  if (recorder.dropped() > 0 || recorder.dropped_values() > 0) {
    std::fprintf(stderr,
                 "rushlight_runner: %llu events and %llu values found no room in the trace: give "
                 "more --etdump-bytes, or room on the disk\n",
                 static_cast<unsigned long long>(recorder.dropped()),
                 static_cast<unsigned long long>(recorder.dropped_values()));
  }
  return 0;
}

// Opens the program, loads the method and runs it.
int open_and_run(const Arguments& arguments, const BackendTable& backends, Tracer* tracer,
                 const FailureHook& failure) {
  ModuleOptions options;
  options.backends = &backends;
  options.memory_limit = arguments.memory_limit;
  options.threads = static_cast<size_t>(arguments.threads);
  options.map = arguments.map;
  options.guard = arguments.guard;
  options.tracer = tracer;
  options.failure = failure;
  if (!arguments.data.empty()) options.data_path = arguments.data.c_str();
  Module module;
  const uint64_t start = now_ns();
  if (!module.open(arguments.program.c_str(), options).ok()) {
    return complain(module.message().text());
  }
  for (const std::string& path : arguments.kernels) {
    if (!module.add_kernels(path.c_str()).ok()) return complain(module.message().text());
  }
  print_program(module);
  if (arguments.list) return 0;
  if (arguments.verify) {
    return verify_and_print(module, arguments.method, arguments.tolerance) ? 0 : 1;
  }
  Result<Method*> method =
      module.method(arguments.method.empty() ? "forward" : arguments.method.c_str());
  if (!method.ok()) return complain(module);
  std::printf("loaded in %.3f ms; %llu bytes in use\n",
              static_cast<double>(now_ns() - start) * 1e-6,
              static_cast<unsigned long long>(module.memory_in_use()));
  if (arguments.inputs.size() > method.value()->n_inputs()) {
    return complain("more inputs were given than the method has");
  }
  return run(*method.value(), arguments);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, &arguments)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (arguments.ops) {
    const KernelTable* kernels = default_kernels();
    if (kernels == nullptr) return complain("no kernels are linked in");
    print_kernels(*kernels);
    return 0;
  }
  std::vector<BackendLibrary> libraries(arguments.backends.size());
  BackendTable backends;
  (void)register_default_backends(backends);
  Message message;
  for (size_t i = 0; i < libraries.size(); ++i) {
    Status status = libraries[i].open(arguments.backends[i].c_str(), message);
    if (status.ok()) status = libraries[i].add_to(backends, message);
    if (!status.ok()) return complain(message.text());
  }
  FailureFile failure(arguments.failure_report);
  FailureHook hook;
  if (!arguments.failure_report.empty()) {
    hook = failure.hook();
    const char* path = arguments.failure_report.c_str();
    if (!install_crash_report(path, message).ok()) return complain(message.text());
  }
  TraceFile trace;
  const bool is_traced = !arguments.trace.path.empty();
  if (is_traced && !trace.open(arguments.trace, message).ok()) return complain(message.text());
  const int failed = open_and_run(arguments, backends, trace.tracer(), hook);
  if (failure.is_written()) {
    std::fprintf(stderr, "  rushlight explain %s %s tells more\n", failure.path().c_str(),
                 arguments.program.c_str());
  }
  const int not_saved = is_traced ? save_trace(trace) : 0;
  return failed != 0 ? failed : not_saved;
}
