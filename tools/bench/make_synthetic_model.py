#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# A model of a given size with random bf16 weights, in shards as the Hugging Face hub has them, for timing a calibration: its
# numbers mean nothing. Written with torch, on a GPU where there is one.
# Trap: the tokenizer is the bundled small one, filled up to the vocabulary with merges that text hardly ever uses: it loads like a
# real one, but cuts text into shorter tokens.
#
#   tools/bench/make_synthetic_model.py OUT [--layers 36] [--shards 4]
import argparse
import concurrent.futures
import json
import os
import random

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.join(HERE, "../../tests/data/tiny-qwen3")

# Qwen3-8B.
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
    "max_position_embeddings": 40960, "rope_theta": 1000000.0, "rms_norm_eps": 1e-06, "tie_word_embeddings": False,
    "hidden_act": "silu", "attention_bias": False, "torch_dtype": "bfloat16", "bos_token_id": 151643, "eos_token_id": 151645,
    "use_cache": True, "attention_dropout": 0.0, "initializer_range": 0.02, "rope_scaling": None, "sliding_window": None,
    "use_sliding_window": False, "max_window_layers": 36,
}


def tensors_of(config):
    """Names and shapes, in the order of the model."""
    hidden, head, inner = config["hidden_size"], config["head_dim"], config["intermediate_size"]
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "mlp.down_proj.weight", (hidden, inner)
        yield layer + "mlp.gate_proj.weight", (inner, hidden)
        yield layer + "mlp.up_proj.weight", (inner, hidden)
        yield layer + "post_attention_layernorm.weight", (hidden,)
        yield layer + "self_attn.k_norm.weight", (head,)
        yield layer + "self_attn.k_proj.weight", (kv, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, q)
        yield layer + "self_attn.q_norm.weight", (head,)
        yield layer + "self_attn.q_proj.weight", (q, hidden)
        yield layer + "self_attn.v_proj.weight", (kv, hidden)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (config["vocab_size"], hidden)


def size_of(shape):
    count = 2  # bytes of a bf16
    for n in shape:
        count *= n
    return count


def shards_of(tensors, count):
    """Cut in order into `count` shards of about the same size."""
    limit = sum(size_of(shape) for _, shape in tensors) / count
    shards, filled = [[]], 0
    for name, shape in tensors:
        if filled >= limit and len(shards) < count:
            shards.append([])
            filled = 0
        shards[-1].append((name, shape))
        filled += size_of(shape)
    return shards


def write_shard(path, tensors, seed):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size_of(shape)]}
        offset += size_of(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb", buffering=0) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, shape in tensors:
            if name.endswith("norm.weight"):
                weight = 1 + 0.1 * torch.randn(shape, generator=generator, device=device)
            else:
                weight = torch.empty(shape, device=device, dtype=torch.bfloat16).normal_(0, 0.02, generator=generator)
            rest = memoryview(weight.to(torch.bfloat16).cpu().view(torch.uint8).numpy()).cast("B")
            while rest:  # one write takes at most 2 GB
                rest = rest[file.write(rest):]


def write_tokenizer(out, vocab_size):
    with open(os.path.join(BUNDLED, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    special = tokenizer["added_tokens"]
    wanted = max(len(tokenizer["model"]["vocab"]), vocab_size - 293)  # Qwen3 has 151643 and 26 added ones of 151936
    vocab, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
    pieces, choose = [piece for piece in vocab if len(piece) > 1], random.Random(0)
    while len(vocab) < wanted:
        left, right = choose.choice(pieces), choose.choice(pieces)
        if left + right not in vocab:
            vocab[left + right] = len(vocab)
            merges.append([left, right])
    for i, token in enumerate(special):
        token["id"] = len(vocab) + i
    with open(os.path.join(out, "tokenizer.json"), "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, ensure_ascii=False)
    with open(os.path.join(BUNDLED, "tokenizer_config.json"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(out, "tokenizer_config.json"), "w", encoding="utf-8") as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser(description="Writes a model with random weights and the shapes of Qwen3-8B.")
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=CONFIG["num_hidden_layers"])
    parser.add_argument("--shards", type=int, default=4)
    arguments = parser.parse_args()
    config = CONFIG | {"num_hidden_layers": arguments.layers, "max_window_layers": arguments.layers}
    os.makedirs(arguments.out, exist_ok=True)
    with open(os.path.join(arguments.out, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file, indent=2)
    shards = shards_of(list(tensors_of(config)), arguments.shards)
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    with concurrent.futures.ThreadPoolExecutor(len(shards) + 1) as pool:
        work = [pool.submit(write_shard, os.path.join(arguments.out, name), shard, seed)
                for seed, (name, shard) in enumerate(zip(names, shards))]
        work.append(pool.submit(write_tokenizer, arguments.out, config["vocab_size"]))
        for job in work:
            job.result()
    index = {"metadata": {"total_size": sum(size_of(shape) for shard in shards for _, shape in shard)},
             "weight_map": {tensor: name for name, shard in zip(names, shards) for tensor, _ in shard}}
    with open(os.path.join(arguments.out, "model.safetensors.index.json"), "w", encoding="utf-8") as file:
        json.dump(index, file)
    print(f"{arguments.out}: {index['metadata']['total_size'] / 1e9:.2f} GB in {len(shards)} shards")


if __name__ == "__main__":
    main()
