// Functions of <cmath> on reduced floats.
#pragma once

#include <c10/util/BFloat16-math.h>
