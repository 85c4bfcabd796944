/* The C interface in C11: `consumer model.pte 1 2 3 4` gives the first input those values (float32,
 * in the shape (1, count)) and prints the first output. */
#include <rushlight.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  float x[64];
  int32_t sizes[] = {1, argc - 2};
  if (argc < 3 || argc > 66) return 2;
  for (int i = 2; i < argc; ++i) x[i - 2] = strtof(argv[i], NULL);

  rl_error error = RL_ERROR_INIT;
  rl_module* module = NULL;
  rl_value_v1 input = rl_tensor(x, RL_FLOAT32, sizes, 2), output = RL_VALUE_INIT;
  if (rl_check_abi(RL_ABI_VERSION, &error) != RL_OK ||
      rl_module_open(argv[1], NULL, &module, &error) != RL_OK ||
      rl_module_run(module, "forward", &input, 1, &output, 1, &error) != RL_OK) {
    fprintf(stderr, "%s\n", error.text);
    return 1;
  }
  const float* y = output.data;
  for (int32_t i = 0; i < output.sizes[output.rank - 1]; ++i) printf("%g ", y[i]);
  printf("\n");
  return rl_module_close(module, &error) == RL_OK ? 0 : 1;
}
