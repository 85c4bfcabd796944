// Tokenizers of Mistral, compiled from the folder of a model.
#pragma once

#include <pytorch/tokenizers/compiled_tokenizer.h>

namespace tokenizers {

class Tekken : public CompiledTokenizer {};

}  // namespace tokenizers
