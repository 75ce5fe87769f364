#!/usr/bin/env python3
"""Makes a GGUF model of real shapes with random weights, for measuring speed: what it says means nothing.

    python scripts/random_model.py dense-1b TOKENIZER.gguf OUT.gguf

The tokenizer is that of another GGUF file. Weights are Q4_0, norms float32. Needs what requirements.txt names.
"""

import argparse

import gguf
import numpy as np

# The dense one has the shape of Llama 3.2 1B, the other that of a small Qwen3 with experts.
SHAPES = {
    "dense-1b": {
        "arch": "llama", "n_layer": 16, "n_embd": 2048, "n_head": 32, "n_kv_head": 8, "head_dim": 64, "n_ff": 8192,
    },
    "moe-small": {
        "arch": "qwen3moe", "n_layer": 12, "n_embd": 1024, "n_head": 16, "n_kv_head": 4, "head_dim": 64, "n_ff": 512,
        "n_expert": 32, "n_used": 4,
    },
}
CONTEXT = 8192
BLOCK, BLOCK_BYTES = 32, 18


def q4_0(rng: np.random.Generator, *shape: int, gain: float = 1.0) -> np.ndarray:
    """Random blocks whose values have a spread of about gain / sqrt(columns).

    Of the values -8 to 7 the first is left out, so that the mean is zero: one of -0.5 is a part that all tokens have in
    common.
    """
    n_blocks = int(np.prod(shape)) // BLOCK
    low, high = rng.integers(1, 16, size=(2, n_blocks, BLOCK_BYTES), dtype=np.uint8)
    blocks = low | high << 4
    scale = np.float16(gain / (4.3 * np.sqrt(shape[-1])))
    blocks[:, :2] = np.frombuffer(scale.tobytes(), dtype=np.uint8)
    return blocks.reshape(*shape[:-1], shape[-1] // BLOCK * BLOCK_BYTES)


def copy_tokenizer(reader: gguf.GGUFReader, writer: gguf.GGUFWriter) -> int:
    """Copies the tokenizer's metadata; gives the size of its vocabulary."""
    n_vocab = 0
    for field in reader.fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        kind = field.types[0]
        sub_type = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value = field.contents()
        writer.add_key_value(field.name, value, kind, sub_type)
        if field.name == "tokenizer.ggml.tokens":
            n_vocab = len(value)
    return n_vocab


def add_metadata(writer: gguf.GGUFWriter, shape: dict) -> None:
    """Writes the hyperparameters."""
    writer.add_block_count(shape["n_layer"])
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(shape["n_embd"])
    writer.add_head_count(shape["n_head"])
    writer.add_head_count_kv(shape["n_kv_head"])
    writer.add_key_length(shape["head_dim"])
    writer.add_value_length(shape["head_dim"])
    writer.add_rope_dimension_count(shape["head_dim"])
    writer.add_rope_freq_base(500000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_feed_forward_length(shape["n_ff"])
    if "n_expert" in shape:
        writer.add_expert_count(shape["n_expert"])
        writer.add_expert_used_count(shape["n_used"])
        writer.add_expert_feed_forward_length(shape["n_ff"])


def add_tensors(writer: gguf.GGUFWriter, shape: dict, n_vocab: int) -> None:
    """Writes the weights, layer by layer.

    Tokens begin with a spread of 1, and all layers together add about as much, so that tokens stay as different as in a
    trained model: where they become alike, all choose the same experts.
    """
    rng = np.random.default_rng(1)
    n_embd, n_ff, head_dim = shape["n_embd"], shape["n_ff"], shape["head_dim"]
    width, kv_width = shape["n_head"] * head_dim, shape["n_kv_head"] * head_dim

    each = 1 / np.sqrt(2 * shape["n_layer"])

    def matrix(name: str, *dims: int, gain: float = 1.0) -> None:
        writer.add_tensor(name, q4_0(rng, *dims, gain=gain), raw_dtype=gguf.GGMLQuantizationType.Q4_0)

    def ones(name: str, n: int) -> None:
        writer.add_tensor(name, np.ones(n, dtype=np.float32))

    matrix("token_embd.weight", n_vocab, n_embd, gain=np.sqrt(n_embd))
    for i in range(shape["n_layer"]):
        layer = f"blk.{i}."
        ones(layer + "attn_norm.weight", n_embd)
        matrix(layer + "attn_q.weight", width, n_embd)
        matrix(layer + "attn_k.weight", kv_width, n_embd)
        matrix(layer + "attn_v.weight", kv_width, n_embd)
        if shape["arch"] == "qwen3moe":
            ones(layer + "attn_q_norm.weight", head_dim)
            ones(layer + "attn_k_norm.weight", head_dim)
        matrix(layer + "attn_output.weight", n_embd, width, gain=each)
        ones(layer + "ffn_norm.weight", n_embd)
        if "n_expert" in shape:
            n_expert = shape["n_expert"]
            router = rng.standard_normal((n_expert, n_embd), dtype=np.float32) / np.float32(np.sqrt(n_embd))
            writer.add_tensor(layer + "ffn_gate_inp.weight", router)
            matrix(layer + "ffn_gate_exps.weight", n_expert, n_ff, n_embd)
            matrix(layer + "ffn_up_exps.weight", n_expert, n_ff, n_embd)
            matrix(layer + "ffn_down_exps.weight", n_expert, n_embd, n_ff, gain=each)
        else:
            matrix(layer + "ffn_gate.weight", n_ff, n_embd)
            matrix(layer + "ffn_up.weight", n_ff, n_embd)
            matrix(layer + "ffn_down.weight", n_embd, n_ff, gain=each)
    ones("output_norm.weight", n_embd)
    matrix("output.weight", n_vocab, n_embd)


def main() -> None:
    """Makes the model that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("tokenizer", help="GGUF file whose tokenizer to take")
    parser.add_argument("out", help="where to write the model")
    args = parser.parse_args()
    shape = SHAPES[args.shape]
    writer = gguf.GGUFWriter(args.out, shape["arch"])
    n_vocab = copy_tokenizer(gguf.GGUFReader(args.tokenizer), writer)
    add_metadata(writer, shape)
    add_tensors(writer, shape, n_vocab)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
