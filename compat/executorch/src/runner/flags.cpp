#include "flags.h"

#include <executorch/runtime/platform/log.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace runner {
namespace {

enum class Kind { Text, Unsigned, Signed, Real, Switch };

struct Known {
  const char* name;
  Kind kind;
  void* value;
  const char* help;
};

bool read_whole(const char* text, int64_t least, int64_t most, int64_t* value) {
  char* end = nullptr;
  errno = 0;
  *value = std::strtoll(text, &end, 10);
  return end != text && *end == '\0' && errno == 0 && *value >= least && *value <= most;
}

bool read_real(const char* text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text, &end);
  return end != text && *end == '\0';
}

bool read_value(const Known& flag, const char* text) {
  int64_t whole = 0;
  switch (flag.kind) {
    case Kind::Text:
      *static_cast<std::string*>(flag.value) = text;
      return true;
    case Kind::Unsigned:
      if (!read_whole(text, 0, std::numeric_limits<uint32_t>::max(), &whole)) return false;
      *static_cast<uint32_t*>(flag.value) = static_cast<uint32_t>(whole);
      return true;
    case Kind::Signed:
      if (!read_whole(text, -1, std::numeric_limits<int32_t>::max(), &whole)) return false;
      *static_cast<int32_t*>(flag.value) = static_cast<int32_t>(whole);
      return true;
    case Kind::Real:
      return read_real(text, static_cast<double*>(flag.value));
    case Kind::Switch:
      break;
  }
  const bool is_true = std::strcmp(text, "true") == 0 || std::strcmp(text, "1") == 0;
  const bool is_false = std::strcmp(text, "false") == 0 || std::strcmp(text, "0") == 0;
  *static_cast<bool*>(flag.value) = is_true;
  return is_true || is_false;
}

const char* kind_of(Kind kind) {
  switch (kind) {
    case Kind::Text:
      return "a text";
    case Kind::Unsigned:
      return "a whole number from 0 on";
    case Kind::Signed:
      return "a whole number from -1 on";
    case Kind::Real:
      return "a number";
    case Kind::Switch:
      return "true or false";
  }
  return "";
}

}  // namespace

bool read_flags(int argc, char** argv, Flags& flags, int* status) {
  const Known known[] = {
      {"model_path", Kind::Text, &flags.model_path,
       "the program (.pte), or one with cases (.bpte)"},
      {"data_path", Kind::Text, &flags.data_path, "its data file (.ptd)"},
      {"inputs", Kind::Text, &flags.inputs,
       "files with the bytes of the inputs, with commas between"},
      {"input_shapes", Kind::Text, &flags.input_shapes,
       "sizes of the inputs, as 1x3,,2x2; an empty one stays as it is"},
      {"output_file", Kind::Text, &flags.output_file,
       "output i is written to this name and -i.bin"},
      {"print_output", Kind::Text, &flags.print_output, "none, summary or all"},
      {"method_name", Kind::Text, &flags.method_name, "the method; the program's first by default"},
      {"etdump_path", Kind::Text, &flags.etdump_path, "where the trace is written"},
      {"num_executions", Kind::Unsigned, &flags.num_executions, "how often the method is run"},
      {"cpu_threads", Kind::Signed, &flags.cpu_threads, "how many threads are used; -1: all cores"},
      {"server_mode", Kind::Switch, &flags.server_mode,
       "run once for each line of the standard input, and read --inputs anew for it"},
      {"bundleio_rtol", Kind::Real, &flags.bundleio_rtol,
       "tolerances of the outputs of a .bpte file"},
      {"bundleio_atol", Kind::Real, &flags.bundleio_atol, ""},
  };
  *status = 1;
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name.size() < 2 || name[0] != '-') {
      ET_LOG(Error, "'%s' is no flag: --help lists them", argv[i]);
      return false;
    }
    name.erase(0, name[1] == '-' ? 2 : 1);
    const size_t equals = name.find('=');
    std::string value = equals == std::string::npos ? "" : name.substr(equals + 1);
    bool has_value = equals != std::string::npos;
    name.erase(has_value ? equals : name.size());
    if (name == "help") {
      for (const Known& flag : known) std::printf("--%s: %s\n", flag.name, flag.help);
      *status = 0;
      return false;
    }
    const Known* found = nullptr;
    for (const Known& flag : known) {
      if (name == flag.name) found = &flag;
      if (flag.kind == Kind::Switch && !has_value && name == std::string("no") + flag.name) {
        found = &flag;
        value = "false";
        has_value = true;
      }
    }
    if (found == nullptr) {
      ET_LOG(Error, "there is no flag --%s: --help lists them", name.c_str());
      return false;
    }
    if (!has_value && found->kind == Kind::Switch) {
      value = "true";
    } else if (!has_value && i + 1 < argc) {
      value = argv[++i];
    } else if (!has_value) {
      ET_LOG(Error, "--%s needs %s after it", name.c_str(), kind_of(found->kind));
      return false;
    }
    if (!read_value(*found, value.c_str())) {
      ET_LOG(Error, "--%s is '%s', and must be %s", name.c_str(), value.c_str(),
             kind_of(found->kind));
      return false;
    }
  }
  if (flags.print_output != "none" && flags.print_output != "summary" &&
      flags.print_output != "all") {
    ET_LOG(Error, "--print_output is '%s', and must be none, summary or all",
           flags.print_output.c_str());
    return false;
  }
  if (flags.server_mode && flags.output_file.empty()) {
    ET_LOG(Error, "--server_mode needs --output_file, where the outputs are written");
    return false;
  }
  return true;
}

}  // namespace runner
