#include "image.h"

#include <fstream>

bool read_image(const std::string& path, int size, std::vector<float>* values,
                std::string* reason) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  int width = 0;
  int height = 0;
  int most = 0;
  if (!(file >> magic >> width >> height >> most) || magic != "P6" || most != 255) {
    *reason = path + " is no binary PPM file with 8 bits a channel";
    return false;
  }
  file.get();  // the one space after the header
  if (width < size || height < size || width > 8192 || height > 8192) {
    *reason = path + " must have from " + std::to_string(size) + " to 8192 rows and columns";
    return false;
  }
  std::vector<unsigned char> pixels(static_cast<size_t>(width) * height * 3);
  if (!file.read(reinterpret_cast<char*>(pixels.data()),
                 static_cast<std::streamsize>(pixels.size()))) {
    *reason = path + " ends before its last pixel";
    return false;
  }
  values->clear();
  for (int channel = 0; channel < 3; ++channel) {
    for (int row = 0; row < size; ++row) {
      for (int column = 0; column < size; ++column) {
        float sum = 0;
        int count = 0;
        for (int y = row * height / size; y < (row + 1) * height / size; ++y) {
          for (int x = column * width / size; x < (column + 1) * width / size; ++x) {
            sum += pixels[(static_cast<size_t>(y) * width + x) * 3 + channel];
            ++count;
          }
        }
        values->push_back(sum / (255.0f * static_cast<float>(count)));
      }
    }
  }
  return true;
}
