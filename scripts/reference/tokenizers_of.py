"""The reference tokenizers of a GGUF file: Hugging Face's `tokenizers` and llama.cpp, each as text to ids."""

from collections.abc import Callable
from pathlib import Path

from gguf import GGUFReader, TokenType
from tokenizers import AddedToken, Tokenizer, decoders, models

from llamacpp import Model

from .pretokenizers import PRE_TOKENIZERS

Encode = Callable[[str], list[int]]


def llama_cpp(path: Path) -> Encode:
    """llama.cpp's ids of raw text: no begin token, no control tokens out of the text."""
    return Model(path, vocab_only=True).tokenize


def hugging_face(path: Path) -> Encode | None:
    """`tokenizers`' ids for a byte-level BPE file whose pre-tokenizer is in our table; None for any other."""
    fields = GGUFReader(path).fields
    pre = fields["tokenizer.ggml.pre"].contents() if "tokenizer.ggml.pre" in fields else "default"
    if fields["tokenizer.ggml.model"].contents() != "gpt2" or pre not in PRE_TOKENIZERS:
        return None
    tokenizer = byte_level_bpe(
        pre,
        fields["tokenizer.ggml.tokens"].contents(),
        fields["tokenizer.ggml.token_type"].contents(),
        fields["tokenizer.ggml.merges"].contents(),
    )
    tokenizer.encode_special_tokens = True
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def byte_level_bpe(pre: str, tokens: list[str], types: list[int], merges: list[str]) -> Tokenizer:
    """The tokenizer that a GGUF file's lists describe."""
    rules = PRE_TOKENIZERS[pre]
    pairs = [tuple(merge.split(" ", 1)) for merge in merges]
    vocabulary = {token: i for i, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=rules.ignore_merges))
    tokenizer.pre_tokenizer = rules.pre_tokenizer()
    if normalizer := rules.normalizer():
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(_added(tokens, types, TokenType.CONTROL, special=True))
    tokenizer.add_tokens(_added(tokens, types, TokenType.USER_DEFINED, special=False))
    return tokenizer


def _added(tokens: list[str], types: list[int], kind: TokenType, special: bool) -> list[AddedToken]:
    chosen = [token for token, token_type in zip(tokens, types, strict=True) if token_type == kind]
    return [AddedToken(token, special=special, normalized=False) for token in chosen]
