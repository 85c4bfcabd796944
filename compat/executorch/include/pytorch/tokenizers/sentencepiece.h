// Tokenizers of SentencePiece, compiled from a tokenizer.model.
#pragma once

#include <pytorch/tokenizers/compiled_tokenizer.h>

namespace tokenizers {

class SPTokenizer : public CompiledTokenizer {};

}  // namespace tokenizers
