"""Texts and reference tokenizers for comparing Baton's token ids; `tokenizer_reference.py` is the command."""
