"""Adapters (LoRA): from a folder of `peft` to a file that `Runner.load_adapter` maps."""
