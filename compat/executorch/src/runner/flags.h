// The flags of executor_runner: --name=value, --name value, --name and --noname for those of true
// and false; one dash or two.
#pragma once

#include <cstdint>
#include <string>

namespace runner {

struct Flags {
  std::string model_path = "model.pte";
  std::string data_path;
  std::string inputs;
  std::string input_shapes;
  std::string output_file;
  std::string print_output = "summary";
  std::string method_name;
  std::string etdump_path;
  uint32_t num_executions = 1;
  int32_t cpu_threads = -1;
  bool server_mode = false;
  double bundleio_rtol = 0.01;
  double bundleio_atol = 0.01;
};

// False if the program is to end with `*status`: after --help, or with what is wrong in the log.
bool read_flags(int argc, char** argv, Flags& flags, int* status);

}  // namespace runner
