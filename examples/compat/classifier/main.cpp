// classifier PROGRAM.pte LABELS.txt IMAGE.ppm...: prints each image's labels, the likeliest first.
#include <executorch/extension/module/module.h>
#include <executorch/extension/tensor/tensor.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "image.h"

using executorch::extension::from_blob;
using executorch::extension::Module;
using executorch::runtime::Error;
using executorch::runtime::to_string;

namespace {

std::vector<std::string> read_lines(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool classify(Module& module, const std::vector<std::string>& labels, const std::string& path) {
  const auto meta = module.method_meta("forward");
  const auto input = meta.ok() ? meta->input_tensor_meta(0) : meta.error();
  if (!input.ok() || input->sizes().size() != 4) {
    std::fprintf(stderr, "the program takes no image\n");
    return false;
  }
  const int size = input->sizes()[2];
  std::vector<float> values;
  std::string reason;
  if (!read_image(path, size, &values, &reason)) {
    std::fprintf(stderr, "%s\n", reason.c_str());
    return false;
  }
  const auto outputs = module.forward(from_blob(values.data(), {1, 3, size, size}));
  if (!outputs.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), to_string(outputs.error()));
    return false;
  }
  const auto scores = outputs->at(0).toTensor();
  std::vector<size_t> order(std::min<size_t>(labels.size(), scores.numel()));
  std::iota(order.begin(), order.end(), size_t{0});
  const float* score = scores.const_data_ptr<float>();
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score[a] > score[b]; });
  std::printf("%s:", path.substr(path.find_last_of('/') + 1).c_str());
  for (const size_t i : order) std::printf(" %s %.4f", labels[i].c_str(), score[i]);
  std::printf("\n");
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: classifier PROGRAM.pte LABELS.txt IMAGE.ppm...\n");
    return 1;
  }
  Module module(argv[1]);
  const Error error = module.load_forward();
  if (error != Error::Ok) {
    std::fprintf(stderr, "%s: %s\n", argv[1], to_string(error));
    return 1;
  }
  const std::vector<std::string> labels = read_lines(argv[2]);
  bool all = true;
  for (int i = 3; i < argc; ++i) all = classify(module, labels, argv[i]) && all;
  return all ? 0 : 1;
}
