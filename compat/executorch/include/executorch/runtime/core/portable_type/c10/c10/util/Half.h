// The same header under its older path.
#pragma once

#include <torch/headeronly/util/Half.h>
