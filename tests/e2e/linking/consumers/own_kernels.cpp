// A program whose only kernel is its own (copy.cpp): `consumer add.pte` prints 1 + FACTOR.
#include <cstdio>

#include "copy.cpp"

int main(int argc, char** argv) {
  const float ones[6] = {1, 1, 1, 1, 1, 1};
  float out[6] = {};
  char failure[COPY_FAILURE] = "usage: consumer add.pte";
  if (argc < 2 || !copy_run(argv[1], ones, ones, out, failure)) {
    std::fprintf(stderr, "%s\n", failure);
    return 1;
  }
  std::printf("%g %g\n", static_cast<double>(out[0]), static_cast<double>(out[5]));
  return 0;
}
