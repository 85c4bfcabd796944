// What used to define the functions of Half.
#pragma once

#include <torch/headeronly/util/Half.h>
