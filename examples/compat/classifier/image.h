// Images in binary PPM files, as the input of a network.
#pragma once

#include <string>
#include <vector>

// The image's channels, one after the other, with values from 0 to 1, in `size` rows and columns:
// each the average of the pixels that it covers. False, with a reason, for a file that is no such
// image or is smaller.
bool read_image(const std::string& path, int size, std::vector<float>* values, std::string* reason);
