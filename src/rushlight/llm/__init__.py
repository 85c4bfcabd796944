"""Language models: export, tokenizers, and running them."""
