// Goes on with a text, in C++ alone: links one target, rushlight::llm.
//
//   ./story model.pte "Once upon a time"
#include <cstdio>

#include "rushlight/llm/runner/load.h"

using namespace rushlight;

namespace {

int complain(const Message& message) {
  std::fprintf(stderr, "error: %s\n", message.text());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s MODEL.pte PROMPT\n", argv[0]);
    return 2;
  }
  Message message;
  llm::Runner runner;
  if (!llm::load(argv[1], {}, &runner, &message).ok()) return complain(message);
  std::vector<int32_t> prompt;
  if (!runner.encode(argv[2], true, true, &prompt, &message).ok()) return complain(message);

  llm::GenerateOptions options = runner.defaults();
  options.max_tokens = 100;
  options.echo = true;
  auto generation = runner.generate({prompt.data(), prompt.size()}, options, &message);
  if (!generation.ok()) return complain(message);
  llm::Piece piece;
  while (generation.value()->next(&piece)) {
    std::fwrite(piece.text.data(), 1, piece.text.size(), stdout);
    std::fflush(stdout);
  }
  std::fputc('\n', stdout);
  return generation.value()->status(&message).ok() ? 0 : complain(message);
}
