#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Makes a model of a given size with random bf16 weights, for timing a calibration; its results mean nothing. It is dense
# (Qwen3-8B's shapes) or a mixture of experts (Qwen3-30B-A3B's), in shards like those on the Hugging Face Hub. Each shard has a
# thread. Files have no holes, and every byte is on the disk at the end.
# Traps: the tokenizer is the small bundled one, padded to the vocabulary with merges that text hardly ever uses. It loads like a
# real one, but cuts text into shorter tokens. Tensors repeat one random pool per shard, so that writing takes all the time.
#
#   tools/bench/make_synthetic_model.py OUT [--family qwen3|qwen3_moe] [--layers 36 | --gigabytes 60] [--shards 4]
import argparse
import concurrent.futures
import json
import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.join(HERE, "../../tests/data/tiny-qwen3")

COMMON = {
    "num_attention_heads": 32, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960, "rope_theta": 1000000.0,
    "rms_norm_eps": 1e-06, "tie_word_embeddings": False, "hidden_act": "silu", "attention_bias": False, "torch_dtype": "bfloat16",
    "bos_token_id": 151643, "eos_token_id": 151645, "use_cache": True, "attention_dropout": 0.0, "initializer_range": 0.02,
    "rope_scaling": None, "sliding_window": None, "use_sliding_window": False,
}
FAMILIES = {
    # Qwen3-8B.
    "qwen3": COMMON | {
        "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 36,
        "num_key_value_heads": 8, "intermediate_size": 12288,
    },
    # Qwen3-30B-A3B: 61 GB, of which 58 are experts.
    "qwen3_moe": COMMON | {
        "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "hidden_size": 2048, "num_hidden_layers": 48,
        "num_key_value_heads": 4, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_experts": 128,
        "num_experts_per_tok": 8, "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": [],
        "output_router_logits": False, "router_aux_loss_coef": 0.001,
    },
}
POOL_VALUES = 2**24 - 3  # per shard; odd, so that rows of a large tensor do not repeat periodically


def mlp_of(config, layer):
    """Yields the names and shapes of a layer's MLP or experts."""
    hidden = config["hidden_size"]
    experts = config.get("num_experts", 0)
    inner = config["moe_intermediate_size" if experts else "intermediate_size"]
    for part in [f"experts.{e}." for e in range(experts)] or [""]:
        yield f"{layer}mlp.{part}down_proj.weight", (hidden, inner)
        yield f"{layer}mlp.{part}gate_proj.weight", (inner, hidden)
        yield f"{layer}mlp.{part}up_proj.weight", (inner, hidden)
    if experts:
        yield layer + "mlp.gate.weight", (experts, hidden)


def tensors_of(config):
    """Yields the names and shapes of all tensors, in the order of the model."""
    hidden, head = config["hidden_size"], config["head_dim"]
    q, kv = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield from mlp_of(config, layer)
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
    """Divides the tensors in order into `count` shards of about the same size."""
    limit = sum(size_of(shape) for _, shape in tensors) / count
    shards, filled = [[]], 0
    for name, shape in tensors:
        if filled >= limit and len(shards) < count:
            shards.append([])
            filled = 0
        shards[-1].append((name, shape))
        filled += size_of(shape)
    return shards


def random_bf16(choose, count):
    """Returns random values of either sign with magnitudes from 2**-7 to 2**-5 and a root mean square of 0.019."""
    values = bytearray(2 * count)
    values[0::2] = choose.randbytes(count)  # the last bit of the exponent, and the mantissa
    values[1::2] = choose.randbytes(count).translate(bytes(0x3C | (byte & 0x80) for byte in range(256)))
    return values


def random_norm(choose, count):
    """Returns random values from 1 to 1.25."""
    values = bytearray(b"\x80\x3f" * count)
    values[0::2] = choose.randbytes(count).translate(bytes(0x80 | (byte & 0x1F) for byte in range(256)))
    return values


def write_all(file, data):
    while data:  # one write takes at most 2 GB
        data = data[file.write(data):]


def write_shard(path, tensors, seed):
    choose = random.Random(seed)
    pool = memoryview(random_bf16(choose, POOL_VALUES))
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size_of(shape)]}
        offset += size_of(shape)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    at = 0  # position in the pool
    with open(path, "wb", buffering=0) as file:
        write_all(file, len(text).to_bytes(8, "little") + text)
        for name, shape in tensors:
            if name.endswith("norm.weight"):
                write_all(file, memoryview(random_norm(choose, shape[0])))
                continue
            left = size_of(shape)
            while left:
                piece = pool[at:at + left]
                write_all(file, piece)
                left -= len(piece)
                at = (at + len(piece)) % len(pool)
        os.fsync(file.fileno())


def write_tokenizer(out, vocab_size):
    with open(os.path.join(BUNDLED, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    special = tokenizer["added_tokens"]
    wanted = max(len(tokenizer["model"]["vocab"]), vocab_size - 293)  # Qwen3's 151936 ids are 151643 tokens, 26 added ones and unused ones
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


def layers_within(config, gigabytes):
    """Returns how many layers fit into `gigabytes`; at least one."""
    def size(layers):
        return sum(size_of(shape) for _, shape in tensors_of(config | {"num_hidden_layers": layers}))
    one = size(1)
    return max(1, 1 + int((gigabytes * 1e9 - one) // (size(2) - one)))


def main():
    parser = argparse.ArgumentParser(description="Writes a model with random weights and the shapes of a known one.")
    parser.add_argument("out")
    parser.add_argument("--family", choices=FAMILIES, default="qwen3")
    parser.add_argument("--layers", type=int, help="default: as many as the known one")
    parser.add_argument("--gigabytes", type=float, help="as many layers as this holds")
    parser.add_argument("--shards", type=int, default=4)
    arguments = parser.parse_args()
    config = FAMILIES[arguments.family]
    layers = arguments.layers or config["num_hidden_layers"]
    if arguments.gigabytes:
        layers = layers_within(config, arguments.gigabytes)
    config = config | {"num_hidden_layers": layers, "max_window_layers": layers}
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
    print(f"{arguments.out}: {index['metadata']['total_size'] / 1e9:.2f} GB, {layers} layers, {len(shards)} shards")


if __name__ == "__main__":
    main()
