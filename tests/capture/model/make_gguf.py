# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a GGUF of a small Hugging Face model, laid out as llama.cpp's convert_hf_to_gguf.py does it, with PyPI's gguf.

make_gguf.py MODEL_DIRECTORY OUT.gguf float|mixed [DENSE_DIRECTORY]

float: everything in F32. mixed: F32, F16, BF16, Q8_0, Q5_1 and Q4_0 in turn, where rows allow it.
DENSE_DIRECTORY gets a model.safetensors in F32 with the values that the GGUF has, in the layout of the model.
Exit code 77: a package is missing.
"""
import json
import os
import struct
import sys

try:
    import gguf
    import numpy as np
except ImportError:
    sys.exit(77)

source, out, kind = sys.argv[1:4]
config = json.load(open(os.path.join(source, "config.json")))
rope = config.get("rope_parameters") or {}
full_rope = rope.get("full_attention", rope)
family = config["model_type"]
layers = config["num_hidden_layers"]
heads, kv_heads = config["num_attention_heads"], config.get("num_key_value_heads", config["num_attention_heads"])
head_dim = config.get("head_dim") or config["hidden_size"] // heads

# All values of the model are in one array (flat). A tensor is an array of indices into it.
with open(os.path.join(source, "model.safetensors"), "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
hf, parts, count = {}, [], 0
for name, info in header.items():
    if name == "__metadata__":
        continue
    raw = data[info["data_offsets"][0]:info["data_offsets"][1]]
    if info["dtype"] == "BF16":
        values = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        assert info["dtype"] == "F32", name
        values = np.frombuffer(raw, np.float32)
    hf[name] = np.arange(count, count + values.size).reshape(info["shape"])
    parts.append(values)
    count += values.size
flat = np.concatenate(parts)

made = {}  # name in the GGUF: (indices, change applied to the values)
used = set()


def take(name):
    used.add(name)
    return hf[name]


def put(name, places, change=""):
    assert name not in made, name
    made[name] = (places, change)


def pairs(places, num):
    """Permutes rows like LlamaModel.permute."""
    return places.reshape(num, 2, places.shape[0] // num // 2, *places.shape[1:]).swapaxes(1, 2).reshape(places.shape)


def tiled(places, axis, dim):
    """Reorders value heads like _reorder_v_heads of Qwen3.5: those of one key head are not adjacent."""
    k, v = config["linear_num_key_heads"], config["linear_num_value_heads"]
    shape = list(places.shape)
    split = places.reshape(shape[:axis] + [k, v // k, dim] + shape[axis + 1:])
    return split.swapaxes(axis, axis + 1).reshape(shape)


ARCH = {"llama": "llama", "mistral": "llama", "mixtral": "llama", "ministral3": "mistral3", "granite": "granite",
        "smollm3": "smollm3", "qwen2": "qwen2", "qwen3": "qwen3", "qwen2_moe": "qwen2moe", "qwen3_moe": "qwen3moe",
        "qwen3_next": "qwen3next", "qwen3_5_text": "qwen35", "qwen3_5_moe_text": "qwen35moe", "gemma2": "gemma2",
        "gemma3_text": "gemma3", "gemma4_text": "gemma4", "phi3": "phi3", "glm4": "glm4", "glm4_moe": "glm4moe",
        "gpt_oss": "gpt-oss", "deepseek_v2": "deepseek2", "deepseek_v3": "deepseek2"}
arch = ARCH[family]
plus_one = arch in ("gemma2", "gemma3", "qwen3next", "qwen35", "qwen35moe")
reordered = arch in ("llama", "mistral3", "granite", "smollm3")
gemma = arch.startswith("gemma")

NORMS = {"input_layernorm": "attn_norm", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
if gemma:
    NORMS |= {"post_attention_layernorm": "post_attention_norm", "pre_feedforward_layernorm": "ffn_norm",
              "post_feedforward_layernorm": "post_ffw_norm", "post_feedforward_layernorm_1": "post_ffw_norm_1",
              "pre_feedforward_layernorm_2": "pre_ffw_norm_2", "post_feedforward_layernorm_2": "post_ffw_norm_2",
              "post_per_layer_input_norm": "post_norm"}
elif arch == "glm4":
    NORMS |= {"post_self_attn_layernorm": "post_attention_norm", "post_attention_layernorm": "ffn_norm",
              "post_mlp_layernorm": "post_ffw_norm"}
elif arch in ("glm4moe", "gpt-oss", "qwen3next", "qwen35", "qwen35moe"):
    NORMS |= {"post_attention_layernorm": "post_attention_norm"}
else:
    NORMS |= {"post_attention_layernorm": "ffn_norm"}
NAMES = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.qkv_proj": "attn_qkv", "mlp.gate_proj": "ffn_gate",
         "mlp.up_proj": "ffn_up", "mlp.gate_up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate": "ffn_gate_inp",
         "block_sparse_moe.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp", "router.proj": "ffn_gate_inp",
         "mlp.shared_expert_gate": "ffn_gate_inp_shexp", "self_attn.q_a_proj": "attn_q_a",
         "self_attn.q_a_layernorm": "attn_q_a_norm", "self_attn.q_b_proj": "attn_q_b",
         "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa", "self_attn.kv_a_layernorm": "attn_kv_a_norm",
         "per_layer_input_gate": "inp_gate", "per_layer_projection": "proj",
         "linear_attn.norm": "ssm_norm", "linear_attn.out_proj": "ssm_out", "linear_attn.in_proj_ba": "ssm_ba"}
for shared in ("shared_expert", "shared_experts"):
    NAMES |= {f"mlp.{shared}.{p}_proj": f"ffn_{p}_shexp" for p in ("gate", "up", "down")}

# Handles the tensors of a layer that need more than a new name.
for i in range(layers):
    here, blk = f"model.layers.{i}.", f"blk.{i}."
    rest = [n[len(here):] for n in hf if n.startswith(here)]
    for prefix, names in (("mlp.experts.", ("gate_proj", "up_proj", "down_proj")),
                          ("block_sparse_moe.experts.", ("w1", "w3", "w2"))):
        numbers = sorted({int(n[len(prefix):].split(".")[0]) for n in rest
                          if n.startswith(prefix) and n[len(prefix)].isdigit()})
        for name, to in zip(names, ("gate", "up", "down")) if numbers else ():
            put(f"{blk}ffn_{to}_exps.weight", np.stack([take(f"{here}{prefix}{e}.{name}.weight") for e in numbers]))
    if "mlp.experts.gate_up_proj" in rest:
        both, down = take(here + "mlp.experts.gate_up_proj"), take(here + "mlp.experts.down_proj")
        if arch == "gpt-oss":
            both = both.transpose(0, 2, 1)
            put(blk + "ffn_gate_exps.weight", both[:, ::2])
            put(blk + "ffn_up_exps.weight", both[:, 1::2])
            put(blk + "ffn_down_exps.weight", down.transpose(0, 2, 1))
            bias = take(here + "mlp.experts.gate_up_proj_bias")
            put(blk + "ffn_gate_exps.bias", bias[:, ::2])
            put(blk + "ffn_up_exps.bias", bias[:, 1::2])
            put(blk + "ffn_down_exps.bias", take(here + "mlp.experts.down_proj_bias"))
        elif i % 2 == 0:
            put(blk + "ffn_gate_exps.weight", both[:, :both.shape[1] // 2])
            put(blk + "ffn_up_exps.weight", both[:, both.shape[1] // 2:])
            put(blk + "ffn_down_exps.weight", down)
        else:
            put(blk + "ffn_gate_up_exps.weight", both)
            put(blk + "ffn_down_exps.weight", down)
    special = {"self_attn.sinks": "attn_sinks.weight", "mlp.gate.e_score_correction_bias": "exp_probs_b.bias",
               "layer_scalar": "layer_output_scale.weight", "router.scale": "ffn_gate_inp.scale",
               "router.per_expert_scale": "ffn_down_exps.scale", "experts.gate_up_proj": "ffn_gate_up_exps.weight",
               "experts.down_proj": "ffn_down_exps.weight"}
    for name, to in special.items():
        if name in rest:
            put(blk + to, take(here + name))
    if "self_attn.kv_b_proj.weight" in rest:
        nope, value = config["qk_nope_head_dim"], config["v_head_dim"]
        both = take(here + "self_attn.kv_b_proj.weight").reshape(heads, nope + value, -1)
        put(blk + "attn_k_b.weight", both[:, :nope].transpose(0, 2, 1))
        put(blk + "attn_v_b.weight", both[:, nope:])
    if "linear_attn.A_log" in rest:
        k, v = config["linear_num_key_heads"], config["linear_num_value_heads"]
        k_dim, v_dim = config["linear_key_head_dim"], config["linear_value_head_dim"]
        conv = take(here + "linear_attn.conv1d.weight")[:, 0]
        log, bias = take(here + "linear_attn.A_log"), take(here + "linear_attn.dt_bias")
        if arch == "qwen3next":
            qkvz = take(here + "linear_attn.in_proj_qkvz.weight")
            cut = np.split(qkvz.reshape(k, -1, qkvz.shape[1]),
                           np.cumsum([k_dim, k_dim, v // k * v_dim]), axis=1)
            q, keys, values, z = (part.reshape(-1, qkvz.shape[1]) for part in cut)
            put(blk + "attn_qkv.weight", np.concatenate([q, keys, values]))
            put(blk + "attn_gate.weight", z)
        else:
            qkv, width = take(here + "linear_attn.in_proj_qkv.weight"), 2 * k * k_dim
            put(blk + "attn_qkv.weight", np.concatenate([qkv[:width], tiled(qkv[width:], 0, v_dim)]))
            put(blk + "attn_gate.weight", tiled(take(here + "linear_attn.in_proj_z.weight"), 0, v_dim))
            put(blk + "ssm_beta.weight", tiled(take(here + "linear_attn.in_proj_b.weight"), 0, 1))
            put(blk + "ssm_alpha.weight", tiled(take(here + "linear_attn.in_proj_a.weight"), 0, 1))
            put(blk + "ssm_out.weight", tiled(take(here + "linear_attn.out_proj.weight"), 1, v_dim))
            conv = np.concatenate([conv[:width], tiled(conv[width:], 0, v_dim)])
            log, bias = tiled(log, 0, 1), tiled(bias, 0, 1)
        put(blk + "ssm_conv1d.weight", conv)
        put(blk + "ssm_a", log, "-exp")
        put(blk + "ssm_dt.bias", bias)
    for name in rest:
        if here + name in used:
            continue
        stem, _, ending = name.rpartition(".")
        places = take(here + name)
        if stem in NORMS:
            put(f"{blk}{NORMS[stem]}.{ending}", places, "+1" if plus_one else "")
            continue
        if reordered and stem in ("self_attn.q_proj", "self_attn.k_proj"):
            places = pairs(places, heads if stem.endswith("q_proj") else kv_heads)
        if stem == "mlp.shared_expert_gate":
            places = places[0]
        put(f"{blk}{NAMES[stem]}.{ending}", places)
put("token_embd.weight", take("model.embed_tokens.weight"))
put("output_norm.weight", take("model.norm.weight"), "+1" if plus_one else "")
if "lm_head.weight" in hf and not config.get("tie_word_embeddings"):
    put("output.weight", take("lm_head.weight"))
for name, to in (("embed_tokens_per_layer.weight", "per_layer_token_embd.weight"),
                 ("per_layer_model_projection.weight", "per_layer_model_proj.weight"),
                 ("per_layer_projection_norm.weight", "per_layer_proj_norm.weight")):
    if "model." + name in hf:
        put(to, take("model." + name))

writer = gguf.GGUFWriter(out, arch)


def key(name, value):
    name = f"{arch}.{name}"
    if isinstance(value, bool):
        writer.add_bool(name, value)
    elif isinstance(value, int):
        writer.add_uint32(name, value)
    elif isinstance(value, float):
        writer.add_float32(name, value)
    elif isinstance(value, str):
        writer.add_string(name, value)
    else:
        writer.add_array(name, value)


def copy(name, field, scale=None):
    if config.get(field) is not None:
        key(name, config[field] if scale is None else config[field] * scale)


copy("context_length", "max_position_embeddings")
copy("embedding_length", "hidden_size")
copy("feed_forward_length", "intermediate_size")
key("attention.head_count", heads)
copy("attention.layer_norm_rms_epsilon", "rms_norm_eps")
key("rope.freq_base", float(full_rope["rope_theta"]))
predicting = config.get("num_nextn_predict_layers") or 0
key("block_count", layers + predicting)
if predicting:
    key("nextn_predict_layers", predicting)
    put(f"blk.{layers}.nextn.eh_proj.weight", hf["model.embed_tokens.weight"][:4])
rope_type = full_rope.get("rope_type", "default")
if rope_type in ("linear", "yarn"):
    key("rope.scaling.type", rope_type)
    key("rope.scaling.factor", float(full_rope["factor"]))
if rope_type == "yarn":
    key("rope.scaling.original_context_length", full_rope["original_max_position_embeddings"])
    for name in ("beta_fast", "beta_slow"):
        key(f"rope.scaling.yarn_{name}", float(full_rope[name]))
if rope_type == "longrope" and arch == "phi3":
    longer = config["max_position_embeddings"] / full_rope["original_max_position_embeddings"]
    key("rope.scaling.original_context_length", full_rope["original_max_position_embeddings"])
    key("rope.scaling.attn_factor",
        float(np.sqrt(1 + np.log(longer) / np.log(full_rope["original_max_position_embeddings"]))))
extra = {}  # tensors that are not weights
for name, field in (("long", "long_factor"), ("short", "short_factor")):
    if rope_type == "longrope" and arch == "phi3":
        extra[f"rope_factors_{name}.weight"] = np.array(full_rope[field], np.float32)
if rope_type == "llama3":
    original = full_rope["original_max_position_embeddings"]
    factors = []
    for freq in full_rope["rope_theta"] ** (-np.arange(0, head_dim, 2) / head_dim):
        turns = original / (2 * np.pi / freq)
        low, high = full_rope["low_freq_factor"], full_rope["high_freq_factor"]
        smooth = np.clip((turns - low) / (high - low), 0, 1)
        factors.append(1 / ((1 - smooth) / full_rope["factor"] + smooth))
    extra["rope_freqs.weight"] = np.array(factors, np.float32)
dims = head_dim
if arch != "deepseek2":
    dims = int(head_dim * full_rope.get("partial_rotary_factor", 1.0)) if arch != "phi3" else (
        int(full_rope.get("partial_rotary_factor", 1.0) * config["hidden_size"]) // heads)
if arch == "gemma4":
    dims = head_dim
elif arch != "deepseek2":
    key("attention.key_length", head_dim)
    key("attention.value_length", head_dim)
    key("attention.head_count_kv", kv_heads)
    key("rope.dimension_count", dims)
if not (arch == "qwen2" or arch == "llama"):
    copy("attention.sliding_window", "sliding_window")
copy("attn_logit_softcapping", "attn_logit_softcapping")
copy("final_logit_softcapping", "final_logit_softcapping")
for name, field in (("expert_count", "num_experts"), ("expert_count", "num_local_experts"),
                    ("expert_count", "n_routed_experts"), ("expert_used_count", "num_experts_per_tok"),
                    ("expert_used_count", "top_k_experts"), ("expert_feed_forward_length", "moe_intermediate_size"),
                    ("expert_shared_feed_forward_length", "shared_expert_intermediate_size"),
                    ("expert_shared_count", "n_shared_experts"),
                    ("leading_dense_block_count", "first_k_dense_replace"),
                    ("expert_group_count", "n_group"), ("expert_group_used_count", "topk_group"),
                    ("ssm.conv_kernel", "linear_conv_kernel_dim"), ("ssm.state_size", "linear_key_head_dim"),
                    ("ssm.group_count", "linear_num_key_heads"), ("ssm.time_step_rank", "linear_num_value_heads"),
                    ("attention.scale", "attention_multiplier"), ("embedding_scale", "embedding_multiplier"),
                    ("residual_scale", "residual_multiplier"), ("logit_scale", "logits_scaling"),
                    ("expert_weights_scale", "routed_scaling_factor")):
    if f"{arch}.{name}" not in writer.kv_data[0]:
        copy(name, field)
if arch == "gpt-oss":
    copy("expert_feed_forward_length", "intermediate_size")
if arch.startswith("qwen3") and "linear_num_value_heads" in config:
    key("ssm.inner_size", config["linear_value_head_dim"] * config["linear_num_value_heads"])
    key("full_attention_interval", config["layer_types"].index("full_attention") + 1)
if arch in ("glm4moe", "deepseek2"):
    key("expert_gating_func", 1 if family == "deepseek_v2" else 2)
    if config["norm_topk_prob"]:
        key("expert_weights_norm", True)
if arch == "mistral3":
    key("rope.scaling.yarn_log_multiplier", float(rope["mscale_all_dim"]))
    key("attention.temperature_scale", float(rope["llama_4_scaling_beta"]))
if arch == "gemma3":
    key("rope.freq_base_swa", float(rope["sliding_attention"]["rope_theta"]))
    key("attention.sliding_window_pattern", config["sliding_window_pattern"])
if arch == "deepseek2":
    rank, turning = config["kv_lora_rank"], config["qk_rope_head_dim"]
    key("attention.head_count_kv", 1)
    key("attention.kv_lora_rank", rank)
    copy("attention.q_lora_rank", "q_lora_rank")
    key("attention.key_length", rank + turning)
    key("attention.value_length", rank)
    key("attention.key_length_mla", config["qk_nope_head_dim"] + turning)
    key("attention.value_length_mla", config["v_head_dim"])
    key("rope.dimension_count", turning)
    if "mscale_all_dim" in rope:
        key("rope.scaling.yarn_log_multiplier", 0.1 * rope["mscale_all_dim"])
if arch == "gemma4":
    full = next(iter(config["per_layer_config"].values()))
    slides = [t == "sliding_attention" for t in config["layer_types"]]
    key("attention.sliding_window_pattern", slides)
    key("attention.head_count_kv", [kv_heads if s else full.get("num_key_value_heads", kv_heads) for s in slides])
    key("attention.key_length", full["head_dim"])
    key("attention.value_length", full["head_dim"])
    key("attention.key_length_swa", head_dim)
    key("attention.value_length_swa", head_dim)
    key("rope.dimension_count", full["head_dim"])
    key("rope.dimension_count_swa", head_dim)
    key("rope.freq_base_swa", float(rope["sliding_attention"]["rope_theta"]))
    copy("attention.shared_kv_layers", "num_kv_shared_layers")
    copy("embedding_length_per_layer_input", "hidden_size_per_layer_input")
    if config["use_double_wide_mlp"]:
        first, size = layers - config["num_kv_shared_layers"], config["intermediate_size"]
        del writer.kv_data[0][f"{arch}.feed_forward_length"]
        key("feed_forward_length", [size if i < first else 2 * size for i in range(layers)])
    turning = int(full["head_dim"] * full_rope["partial_rotary_factor"] / 2)
    extra["rope_freqs.weight"] = np.array([1.0] * turning + [1e30] * (full["head_dim"] // 2 - turning), np.float32)

T = gguf.GGMLQuantizationType
TYPES = [T.F32] if kind == "float" else [T.Q8_0, T.F16, T.Q5_1, T.BF16, T.Q4_0, T.F32]
dense, turn = flat.copy(), 0
for name, (places, change) in made.items():
    values = flat[places].astype(np.float32)
    if change == "+1":
        values = values + np.float32(1)
    if change == "-exp":
        values = -np.exp(values)
    qtype = T.F32
    if values.ndim > 1:
        turn += 1
        qtype = TYPES[turn % len(TYPES)]
        if values.shape[-1] % gguf.GGML_QUANT_SIZES[qtype][0] != 0:
            qtype = T.F16
    raw = gguf.quants.quantize(np.ascontiguousarray(values), qtype)
    stored = gguf.quants.dequantize(raw, qtype).reshape(values.shape)
    if change == "+1":
        stored = stored - np.float32(1)
    if change == "-exp":
        stored = np.log(-stored)
    if not name.startswith(f"blk.{layers}."):
        dense[places] = stored
    writer.add_tensor(name, raw, raw_dtype=qtype)
for name, values in extra.items():
    writer.add_tensor(name, values)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()

if len(sys.argv) > 4:
    os.makedirs(sys.argv[4])
    header, blobs, at = {}, [], 0
    for name, places in hf.items():
        blob = dense[places].tobytes()
        header[name] = {"dtype": "F32", "shape": list(places.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(sys.argv[4], "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))
