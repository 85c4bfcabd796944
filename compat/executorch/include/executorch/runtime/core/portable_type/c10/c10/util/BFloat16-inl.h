// What used to define the functions of BFloat16.
#pragma once

#include <torch/headeronly/util/BFloat16.h>
