// How many cores there are to compute on.
#pragma once

#include <cstdint>

namespace executorch::extension::cpuinfo {

// Those that the process may use: by its affinity and the time quota of its control group.
uint32_t get_num_performant_cores();

}  // namespace executorch::extension::cpuinfo

namespace torch::executorch::cpuinfo {
using ::executorch::extension::cpuinfo::get_num_performant_cores;
}  // namespace torch::executorch::cpuinfo
