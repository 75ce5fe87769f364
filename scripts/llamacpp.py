"""A small wrapper around llama.cpp's C interface (through llama-cpp-python), for comparing Baton with it.

Only what the scripts here need: load, tokenize, run a batch, read logits.
"""

import ctypes
from pathlib import Path

import llama_cpp as ll
import numpy as np

F32, F16 = 0, 1
"""ggml's type numbers, for the KV cache."""
ANY_FLASH_ATTENTION, NO_FLASH_ATTENTION = (
    ll.LLAMA_FLASH_ATTN_TYPE_AUTO,
    ll.LLAMA_FLASH_ATTN_TYPE_DISABLED,
)

_silent = ll.llama_log_callback(lambda level, text, data: None)


class Model:
    """One GGUF file and, unless only its vocabulary is wanted, a context to run it in. Use it in a `with`."""

    def __init__(
        self,
        path: Path,
        *,
        n_ctx: int = 512,
        n_ubatch: int = 512,
        n_threads: int = 2,
        kv_type: int = F16,
        flash_attention: int = ANY_FLASH_ATTENTION,
        vocab_only: bool = False,
    ) -> None:
        ll.llama_log_set(_silent, ctypes.c_void_p(0))
        ll.llama_backend_init()
        self._context = None
        self._model = ll.llama_model_load_from_file(str(path).encode(), self._model_params(vocab_only))
        if not self._model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        self.vocab = ll.llama_model_get_vocab(self._model)
        self.n_vocab = ll.llama_vocab_n_tokens(self.vocab)
        if not vocab_only:
            params = self._context_params(n_ctx, n_ubatch, n_threads, kv_type, flash_attention)
            self._context = ll.llama_init_from_model(self._model, params)
            if not self._context:
                raise RuntimeError(f"llama.cpp cannot make a context for {path}")
            self._batch = ll.llama_batch_init(n_ctx, 0, 1)

    @staticmethod
    def _model_params(vocab_only: bool) -> ll.llama_model_params:
        params = ll.llama_model_default_params()
        params.n_gpu_layers = 0
        params.vocab_only = vocab_only
        return params

    @staticmethod
    def _context_params(
        n_ctx: int, n_ubatch: int, n_threads: int, kv_type: int, flash_attention: int
    ) -> ll.llama_context_params:
        params = ll.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = n_ctx
        params.n_ubatch = n_ubatch
        params.n_threads = params.n_threads_batch = n_threads
        params.type_k = params.type_v = kv_type
        params.flash_attn_type = flash_attention
        return params

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        if self._context:
            ll.llama_batch_free(self._batch)
            ll.llama_free(self._context)
        ll.llama_model_free(self._model)

    @property
    def adds_bos(self) -> bool:
        """Whether raw text gets a begin token."""
        return ll.llama_vocab_get_add_bos(self.vocab)

    @property
    def bos(self) -> int:
        """Id of the begin token."""
        return ll.llama_vocab_bos(self.vocab)

    def tokenize(self, text: str, *, add_special: bool = False, parse_special: bool = False) -> list[int]:
        """Token ids of a text."""
        data = text.encode()
        ids = (ll.llama_token * (len(data) + 8))()
        n = ll.llama_tokenize(self.vocab, data, len(data), ids, len(ids), add_special, parse_special)
        if n < 0:
            raise RuntimeError(f"llama.cpp cannot tokenize {text!r}")
        return list(ids[:n])

    def clear(self) -> None:
        """Empties the KV cache."""
        ll.llama_memory_clear(ll.llama_get_memory(self._context), True)

    def decode(self, tokens: np.ndarray, position: int = 0, *, all_logits: bool = False) -> None:
        """Runs tokens at `position`, `position` + 1, …; keeps the logits of the last, or of all."""
        batch = self._batch
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i] = int(token)
            batch.pos[i] = position + i
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = 0
            batch.logits[i] = all_logits or i == len(tokens) - 1
        code = ll.llama_decode(self._context, batch)
        if code != 0:
            raise RuntimeError(f"llama_decode answered {code}")

    def logits(self, n_rows: int) -> np.ndarray:
        """The kept logits of the last `decode`, float32 [n_rows, n_vocab]."""
        pointer = ll.llama_get_logits(self._context)
        return np.ctypeslib.as_array(pointer, shape=(n_rows, self.n_vocab)).copy()

    def synchronize(self) -> None:
        """Waits until the last `decode` is done."""
        ll.llama_synchronize(self._context)
