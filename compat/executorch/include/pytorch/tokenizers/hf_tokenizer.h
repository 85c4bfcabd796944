// Tokenizers of Hugging Face, compiled from the folder of a model.
#pragma once

#include <pytorch/tokenizers/compiled_tokenizer.h>

namespace tokenizers {

class HFTokenizer : public CompiledTokenizer {};

}  // namespace tokenizers
