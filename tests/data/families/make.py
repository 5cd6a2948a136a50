# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Makes the models of this folder with their golden values; see README.md. Nothing runs it but a person who wants
another family: python3 make.py NAME ... (needs transformers 5.24 and torch)."""
import copy
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

torch.set_num_threads(1)
kept = {}


def watch(model):
    """Keeps what enters and leaves attention in every layer."""
    if model.config.model_type == "falcon":
        return watch_falcon(model)
    modules = {sys.modules[type(part).__module__] for part in model.modules() if hasattr(part, "layer_idx")}
    originals = {module: module.eager_attention_forward for module in modules}

    def watched(original):
        def eager_attention_forward(layer, query, key, value, attention_mask, scaling=None, **rest):
            out, weights = original(layer, query, key, value, attention_mask, scaling=scaling, **rest)
            name = f"layer.{layer.layer_idx}."
            for kind, x in (("q", query), ("k", key), ("v", value)):
                kept[name + kind] = x[0].transpose(0, 1).contiguous().clone()
            kept[name + "attn_out"] = out[0].contiguous().clone()
            return out, weights
        return eager_attention_forward

    for module, original in originals.items():
        module.eager_attention_forward = watched(original)
    return lambda: [setattr(module, "eager_attention_forward", original) for module, original in originals.items()]


def watch_falcon(model):
    """Its attention is no function of its own, and shows keys and values once for each head of queries."""
    module, hooks = sys.modules[type(model).__module__], []
    original, current = module.apply_rotary_pos_emb, []

    def apply_rotary_pos_emb(query, key, *rest):
        turned = original(query, key, *rest)
        for kind, x in zip("qk", turned):
            kept[f"layer.{current[-1]}.{kind}"] = x[0].transpose(0, 1).contiguous().clone()
        return turned

    def watch_layer(index, attention):
        split = attention._split_heads

        def split_heads(fused):
            current.append(index)
            kept[f"layer.{index}.v"] = split(fused)[2][0].contiguous().clone()
            return split(fused)

        def before_dense(_, inputs):
            heads = (attention.num_heads, attention.head_dim)
            kept[f"layer.{index}.attn_out"] = inputs[0][0].unflatten(-1, heads).contiguous().clone()
            for kind in "kv":
                x = kept[f"layer.{index}.{kind}"]
                kept[f"layer.{index}.{kind}"] = x[:, ::x.shape[1] // attention.num_kv_heads].contiguous()

        attention._split_heads = split_heads
        hooks.append(attention.dense.register_forward_pre_hook(before_dense))

    module.apply_rotary_pos_emb = apply_rotary_pos_emb
    for index, layer in enumerate(model.transformer.h):
        watch_layer(index, layer.self_attention)

    def restore():
        module.apply_rotary_pos_emb = original
        for hook in hooks:
            hook.remove()
        for layer in model.transformer.h:
            del layer.self_attention._split_heads
    return restore


def watch_parts(model):
    """Keeps latents and the output of linear attention."""
    def keep(name):
        def hook(module, inputs, output):
            kept[name] = (output[0] if isinstance(output, tuple) else output)[0].clone()
        return hook
    hooks = []
    for name, module in model.named_modules():
        layer = name.split(".layers.")[1].split(".")[0] if ".layers." in name else ""
        if name.endswith("linear_attn"):
            hooks.append(module.register_forward_hook(keep(f"layer.{layer}.linear_attn_out")))
        if name.endswith("kv_a_layernorm"):
            hooks.append(module.register_forward_hook(keep(f"layer.{layer}.c_kv")))
    return lambda: [hook.remove() for hook in hooks]


def randomize(model):
    for name, x in list(model.named_parameters()) + list(model.named_buffers()):
        if "inv_freq" in name or "embed_scale" in name or not x.is_floating_point():
            continue
        if "act_fn.beta" in name or "act_fn.eps" in name:
            x.copy_(x.bfloat16().float())
            continue
        if "layer_scalar" in name:
            x.copy_(0.5 + 0.3 * torch.rand_like(x))
        elif "A_log" in name:
            x.copy_(2 * torch.rand_like(x) - 1)
        elif "e_score_correction_bias" in name:  # stays float32
            x.copy_(0.05 * torch.randn_like(x))
            continue
        elif name.endswith("norm.weight") or "layernorm" in name or (x.dim() == 1 and name.endswith("weight")):
            x.copy_(x.mean() + 0.1 * torch.randn_like(x))
        else:
            x.copy_(torch.randn_like(x) * (0.15 if x.dim() > 1 else 0.3))
        x.copy_(x.bfloat16().float())


def legacy(config):
    """The spelling before transformers 5."""
    if "thinker_config" in config:
        return {**config, "thinker_config": legacy(config["thinker_config"])}
    if config["model_type"] == "dbrx":
        old = {k: v for k, v in config.items() if k not in ("transformers_version", "rope_parameters")}
        old["attn_config"] = {**old["attn_config"], "rope_theta": config["rope_parameters"]["rope_theta"]}
        return old
    if "text_config" in config:
        text = legacy(config["text_config"])
        if config["model_type"].startswith(("qwen2_5_omni", "qwen3_omni")):
            text["rope_scaling"] = {"mrope_section": [1, 1, 1], "rope_type": "default", "type": "default"}
            text["init_std"] = 0.02
        if config["model_type"].startswith("qwen3_omni"):
            text["rope_scaling"].update(interleaved=True, mrope_interleaved=True)
            text["shared_expert_intermediate_size"] = 0
        if config["model_type"] == "idefics3":
            text.update(qk_layer_norms=False, use_resampler=False, pixel_shuffle_factor=2, is_llama_config=True,
                        neftune_noise_alpha=0.0, perceiver_config={"qk_layer_norms_perceiver": False})
        if config["model_type"] == "paligemma":
            text.pop("use_bidirectional_attention")
            return {**config, "text_config": text, "vocab_size": 30}
        if config["model_type"] == "qwen2_5_vl":
            text.pop("layer_types")
            text["rope_scaling"] = {"type": "mrope", "mrope_section": [1, 1, 1]}
        return {**config, "text_config": text}
    old = {k: v for k, v in config.items() if k not in ("transformers_version", "_sliding_window_pattern")}
    if "dtype" in old:
        old["torch_dtype"] = old.pop("dtype")
    if config["model_type"] in ("mellum", "laguna"):  # never had another spelling
        return old
    rope = old.pop("rope_parameters", None)
    if rope is not None and "full_attention" in rope and config["model_type"] != "gemma4_text":
        sliding, rope = rope["sliding_attention"], rope["full_attention"]
        if config["model_type"] == "gemma3_text":
            old["rope_local_base_freq"] = sliding["rope_theta"]
    if config["model_type"] == "gemma4_text":
        old["rope_parameters"] = rope
        layers = old.pop("per_layer_config")
        first = next(iter(layers.values()))
        old["global_head_dim"] = first["head_dim"]
        if "num_key_value_heads" in first:
            old["num_global_key_value_heads"] = first["num_key_value_heads"]
    elif config["model_type"] in ("ministral3", "mistral4"):
        old["rope_parameters"] = {**rope, "type": rope["rope_type"]}
    elif rope is not None:
        rope = dict(rope)
        old["rope_theta"] = rope.pop("rope_theta")
        if "partial_rotary_factor" in rope:
            old["partial_rotary_factor"] = rope.pop("partial_rotary_factor")
        old["rope_scaling"] = None if rope["rope_type"] == "default" else rope
        if rope["rope_type"] == "longrope":
            rope["type"] = rope.pop("rope_type")
    if config["model_type"] in ("gemma2", "gemma3_text", "olmo3", "cohere2", "exaone4", "vaultgemma", "cwm", "dots1",
                                "llama4_text"):
        old.pop("layer_types")
    if config["model_type"] == "afmoe":
        old.update(global_attn_every_n_layers=2, route_norm=True, score_func="sigmoid", n_group=1, topk_group=1)
        old.pop("layer_types")
    if config["model_type"] == "exaone_moe":
        old["is_moe_layer"] = [kind == "sparse" for kind in old.pop("mlp_layer_types")]
    if config["model_type"] == "gemma":
        old.update(hidden_act="gelu", hidden_activation="gelu_pytorch_tanh")
    if config["model_type"] == "hunyuan_v1_moe":
        layers = old["num_hidden_layers"]
        old.update(moe_topk=[old["moe_topk"]] * layers, num_shared_expert=[1] * layers, use_mla=False, use_cla=False,
                   moe_intermediate_size=[old["intermediate_size"]] * layers, kv_lora_rank=512)
    if config["model_type"] == "axk1":
        old.update(moe_layer_freq=1, scoring_func="sigmoid", topk_method="noaux_tc")
    if config["model_type"] == "mimo_v2_flash":
        old["hybrid_layer_pattern"] = [int(kind == "sliding_attention") for kind in old.pop("layer_types")]
        old["moe_layer_freq"] = [int(kind == "sparse") for kind in old.pop("mlp_layer_types")]
        old.update(swa_rope_theta=sliding["rope_theta"], layernorm_epsilon=old.pop("rms_norm_eps"),
                   swa_num_key_value_heads=2 * old["num_key_value_heads"], swa_head_dim=old["head_dim"],
                   sliding_window_size=old["sliding_window"], attention_chunk_size=old["sliding_window"],
                   add_swa_attention_sink_bias=True, add_full_attention_sink_bias=False, n_shared_experts=None)
    if config["model_type"] in ("axk1", "deepseek_v2", "minicpm3", "youtu"):
        old.pop("qk_head_dim", None)
        old.pop("head_dim", None)
    if config["model_type"] in ("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text"):
        old["full_attention_interval"] = old.pop("layer_types").index("full_attention") + 1
    if config["model_type"] == "qwen3_moe" and "num_local_experts" in old:
        old["num_experts"] = old.pop("num_local_experts")
    if config["model_type"] in ("deepseek_v3", "glm4_moe_lite", "glm_moe_dsa"):
        old.pop("qk_head_dim", None)
        old.pop("head_dim", None)
        old.update(moe_layer_freq=1, scoring_func="sigmoid", topk_method="noaux_tc", num_nextn_predict_layers=1)
        if old["rope_scaling"]:
            old["rope_scaling"]["type"] = old["rope_scaling"].pop("rope_type")
        if "mlp_layer_types" in old:
            old["first_k_dense_replace"] = old.pop("mlp_layer_types").index("sparse")
    if config["model_type"] == "minimax_m2":
        old["rotary_dim"] = int(old.pop("partial_rotary_factor") * old["head_dim"])
        old.update(qk_norm_type="per_layer", scoring_func="sigmoid", use_qk_norm=True, use_routing_bias=True)
    if config["model_type"] == "gpt_neox":
        old.update(rotary_pct=old.pop("partial_rotary_factor"), rotary_emb_base=old.pop("rope_theta"))
        old.pop("rope_scaling")
    if config["model_type"] == "exaone":
        old.update(num_layers=old.pop("num_hidden_layers"), layer_norm_epsilon=old.pop("rms_norm_eps"),
                   activation_function=old.pop("hidden_act"), embed_dropout=0.0, architectures=["ExaoneForCausalLM"])
    if config["model_type"] == "internlm3":
        old.update(qkv_bias=old.pop("attention_bias"), bias=old.pop("mlp_bias"), architectures=["InternLM3ForCausalLM"])
    if config["model_type"] == "falcon":
        old.update(apply_residual_connection_post_layernorm=False)
    if config["model_type"] == "gpt_bigcode":
        old.update(validate_runner_input=True, inference_runner=0, pre_allocate_kv_cache=False)
    if config["model_type"] == "gpt_oss":
        old.update(swiglu_limit=7.0, experts_per_token=old["num_experts_per_tok"])
    return old


def make(name, fields, seed=1):
    torch.manual_seed(seed)
    fields = dict(fields)
    tokens, thinker = fields.pop("tokens", 20), fields.pop("thinker", False)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    if config.model_type == "mistral4":  # only reached through a wrapper
        config._attn_implementation = "eager"
        model = transformers.Mistral4ForCausalLM(config).float().eval()
    elif thinker:  # not among those that a class is chosen for
        config._attn_implementation = "eager"
        names = {"qwen2_5_omni": "Qwen2_5Omni", "qwen3_omni_moe": "Qwen3OmniMoe", "qwen2_audio": "Qwen2Audio"}
        model = getattr(transformers, names[config.model_type] + "ForConditionalGeneration")(config).float().eval()
    elif "vision_config" in fields and config.model_type != "phi4_multimodal":
        model = AutoModelForImageTextToText.from_config(config, attn_implementation="eager").float().eval()
    else:
        model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        randomize(model)
    model.config.dtype = "bfloat16"
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    stored = copy.deepcopy(model).bfloat16()
    for exact, rounded in ((model.named_buffers(), stored.buffers()), (model.named_parameters(), stored.parameters())):
        for (tensor, x), y in zip(exact, rounded):
            if "e_score_correction_bias" in tensor:
                y.data = x.data.clone()
    stored.save_pretrained(folder)
    if os.path.exists(f"{folder}/generation_config.json"):
        os.remove(f"{folder}/generation_config.json")
    with open(f"{folder}/config.json") as file:
        written = json.load(file)
    with open(f"{folder}/config.legacy.json", "w") as file:
        json.dump(legacy(written), file, indent=2)
    ids = torch.randint(0, config.get_text_config().vocab_size, (1, 40))[:, :tokens]
    for golden, count in (("golden", tokens), ("golden_short", 12 if "longrope" in str(written) else 0)):
        if count == 0:
            continue
        kept.clear()
        restore, restore_parts = watch(model), watch_parts(model)
        with torch.no_grad():
            runs = model.thinker if hasattr(model, "thinker") else model
            logits = runs(input_ids=ids[:, :count], use_cache=False).logits
        restore()
        restore_parts()
        for part in [name for name in kept if name.endswith(".c_kv")]:
            key = kept[part.replace("c_kv", "k")]
            kept[part.replace("c_kv", "k_pe")] = key[:, 0, -config.qk_rope_head_dim:]
        out = {**kept, "logits": logits[0], "input_ids": ids[0, :count].int()}
        save_file({k: v.contiguous() for k, v in out.items()}, f"{folder}/{golden}.safetensors",
                  metadata={"source": f"transformers {transformers.__version__}, float32, CPU, eager"})
    size = sum(os.path.getsize(f"{folder}/{f}") for f in os.listdir(folder))
    print(name, size, "bytes, logits", float(logits.std()))


COMMON = dict(vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=256, bos_token_id=1, eos_token_id=2, pad_token_id=0)


def model(model_type, **fields):
    return {"model_type": model_type, **COMMON, **fields}


def small(model_type, **fields):
    return model(model_type, **{"vocab_size": 32, "hidden_size": 24, "intermediate_size": 20, "num_hidden_layers": 2,
                                **fields})


def vl(model_type, text, **vision_fields):
    """A multimodal model around that text part; its vision part has one layer and is not run."""
    vision = dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=8, out_hidden_size=text["hidden_size"],
                  patch_size=2, spatial_merge_size=1, temporal_patch_size=1, num_position_embeddings=4,
                  deepstack_visual_indexes=[], fullatt_block_indexes=[0], window_size=4, **vision_fields)
    return {"model_type": model_type, "text_config": text, "vision_config": vision,
            "tie_word_embeddings": False}


def gpt(model_type, **fields):
    """A text model whose fields have names of their own."""
    usual = {} if model_type in ("gpt_bigcode", "dbrx") else dict(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=256)
    return {"model_type": model_type, "vocab_size": 32, "bos_token_id": 1, "eos_token_id": 2, **usual, **fields}


def rope(kind="default", theta=5000.0, **fields):
    return {"rope_type": kind, "rope_theta": theta, **fields}


YARN = dict(factor=8.0, original_max_position_embeddings=16, beta_fast=2.0, beta_slow=0.25)
LONG = dict(short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.5], original_max_position_embeddings=16)
DELTA = dict(linear_key_head_dim=8, linear_value_head_dim=6, linear_num_key_heads=2, linear_num_value_heads=4,
             linear_conv_kernel_dim=4)
LATENT = dict(kv_lora_rank=16, qk_nope_head_dim=10, qk_rope_head_dim=8, v_head_dim=12, num_key_value_heads=4,
              moe_intermediate_size=12, n_shared_experts=1, num_experts_per_tok=2)
SMALL_LATENT = dict(kv_lora_rank=12, qk_nope_head_dim=6, qk_rope_head_dim=4, v_head_dim=8, num_key_value_heads=4)
SMALL_EXPERTS = dict(moe_intermediate_size=8, n_shared_experts=1, num_experts_per_tok=2)
VISION = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2, image_size=4, patch_size=2)
AUDIO = dict(d_model=4, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=4, num_mel_bins=4,
             max_source_positions=4, output_dim=24)
QWEN_VISION = dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=8, out_hidden_size=24, patch_size=2,
                   spatial_merge_size=1, temporal_patch_size=1, num_position_embeddings=4,
                   deepstack_visual_indexes=[], fullatt_block_indexes=[0], window_size=4)
TOKENS = dict(audio_token_id=31, image_token_id=30, video_token_id=29)
MODELS = {
    "mistral": small("mistral", head_dim=8, sliding_window=10, rope_parameters=rope()),
    "qwen2": model("qwen2", use_sliding_window=True, sliding_window=10, max_window_layers=1, rope_parameters=rope()),
    "qwen3": small("qwen3", head_dim=10, attention_bias=True, tie_word_embeddings=True, rope_parameters=rope()),
    "llama-linear": model("llama", rope_parameters=rope("linear", factor=4.0), mlp_bias=True),
    "llama-dynamic": model("llama", tokens=32, max_position_embeddings=24, rope_parameters=rope("dynamic", factor=4.0)),
    "llama-longrope": model("llama", rope_parameters=rope("longrope", **LONG)),
    "llama-yarn": model("llama", rope_parameters=rope("yarn", truncate=False, **YARN), attention_bias=True),
    "ministral3": small("ministral3", head_dim=8, rope_parameters=rope(
        "yarn", llama_4_scaling_beta=0.3, mscale=1.0, mscale_all_dim=1.0, **YARN)),
    "ministral": small("ministral", head_dim=8, sliding_window=10, rope_parameters=rope(),
                       layer_types=["full_attention", "sliding_attention"]),
    "phi3": model("phi3", tokens=24, hidden_size=48, intermediate_size=24, original_max_position_embeddings=16,
                  sliding_window=20,
                  rope_parameters=rope("longrope", partial_rotary_factor=0.7,
                                       **{**LONG, "short_factor": [1.0, 1.1, 1.3, 1.4],
                                          "long_factor": [1.0, 2.0, 4.0, 7.0]})),
    "smollm3": model("smollm3", no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=10,
                     layer_types=["full_attention", "sliding_attention", "full_attention"],
                     rope_parameters=rope()),
    "gemma2": model("gemma2", head_dim=16, query_pre_attn_scalar=24, sliding_window=10, attn_logit_softcapping=3.0,
                    final_logit_softcapping=2.0, rope_parameters=rope()),
    "gemma3_text": small("gemma3_text", head_dim=8, num_hidden_layers=3, query_pre_attn_scalar=24, sliding_window=10,
                         sliding_window_pattern=3, rope_parameters={
                             "full_attention": rope("linear", 100000.0, factor=4.0),
                             "sliding_attention": rope(theta=1000.0)}),
    "gemma4_text": model("gemma4_text", head_dim=8, num_hidden_layers=2, global_head_dim=16,
                         num_global_key_value_heads=1, attention_k_eq_v=True, hidden_size_per_layer_input=0,
                         sliding_window=10, layer_types=["sliding_attention", "full_attention"],
                         enable_moe_block=True, num_experts=4, top_k_experts=2, moe_intermediate_size=12,
                         final_logit_softcapping=2.0),
    "gemma4_text-ple": model("gemma4_text", head_dim=8, num_hidden_layers=4, global_head_dim=16,
                             num_key_value_heads=1, hidden_size_per_layer_input=8, vocab_size_per_layer_input=64,
                             num_kv_shared_layers=2, use_double_wide_mlp=True, sliding_window=10,
                             layer_types=["sliding_attention", "full_attention"] * 2),
    "glm4": small("glm4", head_dim=8, rope_parameters=rope(partial_rotary_factor=0.5)),
    "olmo2": model("olmo2", rope_parameters=rope()),
    "olmo3": model("olmo3", num_hidden_layers=4, sliding_window=10, rope_parameters={
        "full_attention": rope("yarn", **YARN), "sliding_attention": rope()}),
    "granite": model("granite", embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.45,
                     logits_scaling=2.5, rope_parameters=rope()),
    "seed_oss": small("seed_oss", head_dim=8, attention_out_bias=True, rope_parameters=rope()),
    "exaone4": model("exaone4", num_hidden_layers=4, sliding_window=10, sliding_window_pattern=4,
                     rope_parameters=rope()),
    "exaone4-full": model("exaone4", num_hidden_layers=2, sliding_window=None, layer_types=["full_attention"] * 2,
                          rope_parameters=rope()),
    "cohere2": model("cohere2", num_hidden_layers=4, sliding_window=10, logit_scale=0.4, rope_parameters=rope()),
    "starcoder2": model("starcoder2", sliding_window=10, norm_epsilon=1e-3, rope_parameters=rope()),
    "mixtral": model("mixtral", intermediate_size=16, num_local_experts=4, num_experts_per_tok=2, sliding_window=None,
                     rope_parameters=rope()),
    "qwen2_moe": model("qwen2_moe", moe_intermediate_size=16, shared_expert_intermediate_size=24, num_experts=6,
                       num_experts_per_tok=2, decoder_sparse_step=2, rope_parameters=rope()),
    "qwen3_moe": model("qwen3_moe", head_dim=12, moe_intermediate_size=8, num_experts=6, num_experts_per_tok=2,
                       norm_topk_prob=True, mlp_only_layers=[1], rope_parameters=rope()),
    "qwen3_next": model("qwen3_next", head_dim=16, layer_types=["linear_attention", "full_attention"] * 2,
                        moe_intermediate_size=8, num_hidden_layers=4, shared_expert_intermediate_size=12,
                        num_experts=4, num_experts_per_tok=2, **DELTA,
                        rope_parameters=rope(partial_rotary_factor=0.25)),
    "qwen3_5_text": model("qwen3_5_text", head_dim=32, layer_types=["linear_attention", "full_attention"],
                          num_attention_heads=2, num_key_value_heads=1, num_hidden_layers=2, **DELTA,
                          rope_parameters=rope(partial_rotary_factor=0.25, mrope_section=[2, 1, 1],
                                               mrope_interleaved=True)),
    "qwen3_5_moe_text": small("qwen3_5_moe_text", head_dim=32, num_attention_heads=2, num_key_value_heads=1,
                              num_hidden_layers=4, moe_intermediate_size=12, shared_expert_intermediate_size=12,
                              num_experts=4, num_experts_per_tok=2, **{**DELTA, "linear_conv_kernel_dim": 3},
                              rope_parameters=rope(partial_rotary_factor=0.25, mrope_section=[2, 1, 1],
                                                   mrope_interleaved=True)),
    "glm4_moe": small("glm4_moe", head_dim=8, num_hidden_layers=3, attention_bias=True, use_qk_norm=True,
                      moe_intermediate_size=12, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2,
                      n_group=2, topk_group=1, routed_scaling_factor=1.5,
                      rope_parameters=rope(partial_rotary_factor=0.5)),
    "minimax_m2": small("minimax_m2", head_dim=8, num_local_experts=6, num_experts_per_tok=2, intermediate_size=12,
                        num_hidden_layers=2, rope_parameters=rope(partial_rotary_factor=0.5)),
    "gpt_oss": small("gpt_oss", head_dim=8, num_hidden_layers=3, num_local_experts=4, num_experts_per_tok=2,
                     intermediate_size=12, sliding_window=10, rope_parameters=rope("yarn", truncate=False, **YARN)),
    "granitemoe": model("granitemoe", intermediate_size=16, num_hidden_layers=2, num_local_experts=4,
                        num_experts_per_tok=2, embedding_multiplier=3.0, attention_multiplier=0.4,
                        residual_multiplier=0.45, logits_scaling=2.5, rope_parameters=rope()),
    "ernie4_5_moe": model("ernie4_5_moe", moe_intermediate_size=12, moe_k=2, moe_num_experts=6,
                          moe_num_shared_experts=2, rope_parameters=rope()),
    "deepseek_v3": model("deepseek_v3", **LATENT, q_lora_rank=24, n_routed_experts=8, n_group=4, topk_group=2,
                         first_k_dense_replace=1, routed_scaling_factor=2.5, rope_parameters=rope(
                             "yarn", mscale=0.7, mscale_all_dim=1.0, **YARN)),
    "deepseek_v3-plain": model("deepseek_v3", **LATENT, q_lora_rank=None, n_routed_experts=6, n_group=1, topk_group=1,
                               num_hidden_layers=2, first_k_dense_replace=0, attention_bias=True,
                               norm_topk_prob=False, rms_norm_eps=1e-3, rope_parameters=rope()),
    "glm4_moe_lite": model("glm4_moe_lite", **LATENT, q_lora_rank=24, n_routed_experts=6, num_hidden_layers=2,
                           rms_norm_eps=1e-3, rope_parameters=rope()),
    "glm_moe_dsa": model("glm_moe_dsa", tokens=40, **LATENT, q_lora_rank=24, n_routed_experts=6, num_hidden_layers=2,
                         first_k_dense_replace=1, index_topk=40, index_head_dim=16, index_n_heads=2,
                         rope_parameters=rope()),
    "ernie4_5": small("ernie4_5", head_dim=8, use_bias=True, rope_parameters=rope()),
    "gemma": small("gemma", head_dim=8, rope_parameters=rope()),
    "vaultgemma": small("vaultgemma", head_dim=8, query_pre_attn_scalar=24, sliding_window=10,
                        attn_logit_softcapping=3.0, final_logit_softcapping=2.0, rope_parameters=rope()),
    "cohere": small("cohere", use_qk_norm=True, logit_scale=0.4, rope_parameters=rope()),
    "glm": small("glm", head_dim=8, rope_parameters=rope(partial_rotary_factor=0.5)),
    "olmo": small("olmo", clip_qkv=0.5, rope_parameters=rope()),
    "olmoe": small("olmoe", intermediate_size=12, num_experts=4, num_experts_per_tok=2, clip_qkv=1.0,
                   rope_parameters=rope()),
    "flex_olmo": small("flex_olmo", intermediate_size=12, num_experts=4, num_experts_per_tok=2,
                       rope_parameters=rope()),
    "dots1": small("dots1", moe_intermediate_size=8, n_routed_experts=6, n_shared_experts=1, num_experts_per_tok=2,
                   norm_topk_prob=True, first_k_dense_replace=1, routed_scaling_factor=2.5, sliding_window=10,
                   max_window_layers=1, rope_parameters=rope()),
    "hunyuan_v1_dense": small("hunyuan_v1_dense", head_dim=8,
                              rope_parameters=rope("dynamic", alpha=1000.0, factor=1.0)),
    "hunyuan_v1_moe": small("hunyuan_v1_moe", head_dim=8, intermediate_size=8, num_experts=4, moe_topk=2,
                            rope_parameters=rope()),
    "apertus": small("apertus", rope_parameters=rope("llama3", factor=8.0, original_max_position_embeddings=16,
                                                     low_freq_factor=1.0, high_freq_factor=4.0)),
    "arcee": small("arcee", mlp_bias=True, rope_parameters=rope("yarn", **YARN)),
    "nemotron": small("nemotron", hidden_size=32, mlp_bias=True, rope_parameters=rope(partial_rotary_factor=0.5)),
    "stablelm": small("stablelm", hidden_size=32, use_qkv_bias=True, rope_parameters=rope(partial_rotary_factor=0.25)),
    "stablelm-parallel": small("stablelm", hidden_size=32, qk_layernorm=True, use_parallel_residual=True,
                               rope_parameters=rope(partial_rotary_factor=0.5)),
    "phi": small("phi", hidden_size=32, qk_layernorm=True, rope_parameters=rope(partial_rotary_factor=0.5)),
    "phimoe": small("phimoe", hidden_size=32, intermediate_size=12, num_local_experts=4, num_experts_per_tok=2,
                    attention_bias=True, lm_head_bias=True, router_jitter_noise=0.1, max_position_embeddings=64,
                    rope_parameters=rope("longrope", **{**LONG, "original_max_position_embeddings": 32},
                                         short_mscale=1.2, long_mscale=1.2)),
    "solar_open": small("solar_open", head_dim=8, moe_intermediate_size=8, n_routed_experts=6, num_experts_per_tok=2,
                        routed_scaling_factor=1.5, rope_parameters=rope()),
    "exaone_moe": small("exaone_moe", head_dim=8, moe_intermediate_size=8, num_experts=6, num_experts_per_tok=2,
                        sliding_window=10, sliding_window_pattern=2, rope_parameters=rope()),
    "afmoe": small("afmoe", head_dim=8, moe_intermediate_size=8, num_experts=6, num_experts_per_tok=2,
                   num_shared_experts=1, route_scale=1.5, mup_enabled=True, sliding_window=10,
                   layer_types=["sliding_attention", "full_attention"], rope_parameters=rope()),
    "bitnet": small("bitnet", rope_parameters=rope()),
    "helium": small("helium", head_dim=6, rope_parameters=rope()),
    "cwm": small("cwm", head_dim=8, sliding_window=10, rope_parameters=rope()),
    "jais2": small("jais2", rope_parameters=rope()),
    "hy_v3": small("hy_v3", head_dim=8, moe_intermediate_size=8, num_experts=6, num_experts_per_tok=2,
                   router_scaling_factor=1.5, rope_parameters=rope()),
    "granitemoeshared": small("granitemoeshared", intermediate_size=12, num_local_experts=4, num_experts_per_tok=2,
                              shared_intermediate_size=12, embedding_multiplier=3.0, attention_multiplier=0.4,
                              residual_multiplier=0.45, logits_scaling=2.5, rope_parameters=rope()),
    "llama4_text": small("llama4_text", head_dim=8, num_hidden_layers=3, intermediate_size=8,
                         intermediate_size_mlp=24, num_local_experts=4, interleave_moe_layer_step=2,
                         no_rope_layer_interval=3, attention_chunk_size=32, floor_scale=8, attn_scale=0.3,
                         rope_parameters=rope()),
    "mistral4": small("mistral4", **SMALL_LATENT, **SMALL_EXPERTS, q_lora_rank=12, n_routed_experts=6,
                      n_group=3, topk_group=2, routed_scaling_factor=1.5, rope_parameters=rope(
                          "yarn", llama_4_scaling_beta=0.3, mscale=1.0, mscale_all_dim=1.0, **YARN)),
    "deepseek_v2": small("deepseek_v2", **SMALL_LATENT, **SMALL_EXPERTS, q_lora_rank=None,
                         n_routed_experts=6, topk_method="group_limited_greedy", n_group=3, topk_group=1,
                         first_k_dense_replace=1, routed_scaling_factor=1.5, rope_parameters=rope(
                             "yarn", mscale=0.7, mscale_all_dim=0.7, **YARN)),
    "youtu": small("youtu", **SMALL_LATENT, q_lora_rank=12, rope_parameters=rope()),
    "minicpm3": small("minicpm3", **SMALL_LATENT, q_lora_rank=12, scale_depth=0.9, scale_emb=3.0, dim_model_base=16,
                      rope_parameters=rope()),
    "mimo_v2_flash": small("mimo_v2_flash", head_dim=10, v_head_dim=8, num_key_value_heads=1, moe_intermediate_size=8,
                           n_routed_experts=6, num_experts_per_tok=2, sliding_window=10, rope_parameters={
                               "full_attention": rope(partial_rotary_factor=0.4),
                               "sliding_attention": rope(theta=1000.0, partial_rotary_factor=0.4)}),
    "axk1": small("axk1", **SMALL_LATENT, **SMALL_EXPERTS, q_lora_rank=12, n_routed_experts=6, n_group=3, topk_group=2,
                  first_k_dense_replace=1, rope_parameters=rope()),
    "mellum": small("mellum", head_dim=8, moe_intermediate_size=8, num_experts=4, num_experts_per_tok=2,
                    sliding_window=10, layer_types=["sliding_attention", "full_attention"], rope_parameters={
                        "full_attention": rope("yarn", **YARN), "sliding_attention": rope(theta=1000.0)}),
    "granite_swa": small("granite_swa", embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.45,
                         logits_scaling=2.5, num_hidden_layers=3, sliding_window=10,
                         layer_rope_theta=[0, 1000.0, 5000.0], rope_parameters=rope()),
    "granitemoe_swa": small("granitemoe_swa", intermediate_size=12, num_local_experts=4, num_experts_per_tok=2,
                            shared_intermediate_size=12, embedding_multiplier=3.0, attention_multiplier=0.4,
                            residual_multiplier=0.45, logits_scaling=2.5, sliding_window=10, rope_parameters=rope()),
    "granitemoehybrid": small("granitemoehybrid", num_local_experts=0, shared_intermediate_size=20,
                              embedding_multiplier=3.0, attention_multiplier=0.4, residual_multiplier=0.45,
                              logits_scaling=2.5, position_embedding_type="rope", mamba_n_heads=2,
                              layer_types=["full_attention"] * 2, rope_parameters=rope()),
    "qwen2_5_vl": vl("qwen2_5_vl", small("qwen2_5_vl_text", rope_parameters=rope(mrope_section=[1, 1, 1]))),
    "qwen3_vl": vl("qwen3_vl", small("qwen3_vl_text", head_dim=8, rope_parameters=rope(
        mrope_section=[2, 1, 1], mrope_interleaved=True))),
    "qwen3_vl_moe": vl("qwen3_vl_moe", small("qwen3_vl_moe_text", head_dim=8, moe_intermediate_size=8, num_experts=4,
                                             num_experts_per_tok=2, rope_parameters=rope(
                                                 mrope_section=[2, 1, 1], mrope_interleaved=True))),
    "falcon": gpt("falcon", ffn_hidden_size=20, num_attention_heads=4, rope_parameters=rope()),
    "falcon-grouped": gpt("falcon", ffn_hidden_size=20, num_kv_heads=2, new_decoder_architecture=True, bias=True,
                          rope_parameters=rope()),
    "falcon-one_norm": gpt("falcon", ffn_hidden_size=20, num_kv_heads=2, new_decoder_architecture=True,
                           num_ln_in_parallel_attn=1, tie_word_embeddings=False, rope_parameters=rope()),
    "falcon-apart": gpt("falcon", ffn_hidden_size=20, multi_query=False, parallel_attn=False, rope_parameters=rope()),
    "gpt_neox": gpt("gpt_neox", hidden_size=32, intermediate_size=20, rope_parameters=rope(partial_rotary_factor=0.25)),
    "gpt_neox-apart": gpt("gpt_neox", intermediate_size=20, use_parallel_residual=False, attention_bias=False,
                          hidden_act="gelu_fast", rope_parameters=rope(partial_rotary_factor=1.0)),
    "gpt_bigcode": gpt("gpt_bigcode", n_embd=24, n_head=4, n_layer=2, n_positions=48, n_inner=20),
    "gpt_bigcode-heads": gpt("gpt_bigcode", n_embd=24, n_head=4, n_layer=2, n_positions=48, n_inner=20,
                             multi_query=False, scale_attn_weights=False, activation_function="gelu"),
    "dbrx": gpt("dbrx", d_model=24, n_heads=4, n_layers=2, max_seq_len=256, rope_parameters=rope(),
                attn_config=dict(clip_qkv=0.6, kv_n_heads=2, rope_theta=5000.0),
                ffn_config=dict(ffn_hidden_size=8, moe_num_experts=4, moe_top_k=2)),
    "exaone": small("exaone", tie_word_embeddings=True, rope_parameters=rope(
        "llama3", factor=8.0, original_max_position_embeddings=16, low_freq_factor=1.0, high_freq_factor=4.0)),
    "internlm3": small("internlm3", head_dim=8, attention_bias=True, mlp_bias=True, tokens=32,
                       max_position_embeddings=24, rope_parameters=rope("dynamic", factor=4.0)),
    "phi4_multimodal": small("phi4_multimodal", hidden_size=32, original_max_position_embeddings=16, tokens=24,
                             vision_config={**VISION, "crop_size": 4, "image_token_id": 30},
                             audio_config=dict(hidden_size=4, intermediate_size=4, num_blocks=1, num_attention_heads=2,
                                               input_size=8, nemo_conv_channels=4, ext_pw_out_channel=4,
                                               depthwise_separable_out_channel=4, bias_max_distance=4,
                                               audio_token_id=31),
                             rope_parameters=rope("longrope", partial_rotary_factor=0.75, **{
                                 **LONG, "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.0, 2.0, 4.0]})),
    "ernie4_5_vl_moe": {"model_type": "ernie4_5_vl_moe", "text_config": small(
        "ernie4_5_vl_moe_text", moe_intermediate_size=[8, 4], moe_k=2, moe_num_experts=4, moe_num_shared_experts=1,
        rope_parameters=rope(mrope_section=[1, 1, 1])),
        "vision_config": dict(depth=1, hidden_size=8, num_heads=2, intermediate_size=8, patch_size=2,
                              spatial_merge_size=1, temporal_merge_size=1)},
    "glm46v": vl("glm46v", small("glm4v_text", hidden_size=32, rope_parameters=rope(
        partial_rotary_factor=0.5, mrope_section=[1, 1, 0])), image_size=4),
    "idefics3": {"model_type": "idefics3", "text_config": small("llama", rope_parameters=rope()),
                 "vision_config": VISION, "image_token_id": 31},
    "smolvlm": {"model_type": "smolvlm", "text_config": small("llama", tie_word_embeddings=True, head_dim=8,
                                                              rope_parameters=rope()),
                "vision_config": VISION, "image_token_id": 31, "tie_word_embeddings": True},
    "llava_onevision": {"model_type": "llava_onevision", "text_config": small("qwen2", rope_parameters=rope()),
                        "vision_config": dict(model_type="siglip_vision_model", **VISION),
                        "image_grid_pinpoints": [[4, 4]], "image_token_index": 31, "video_token_index": 30},
    "paligemma": {"model_type": "paligemma", "text_config": small("gemma", head_dim=8, rope_parameters=rope()),
                  "vision_config": dict(model_type="siglip_vision_model", **VISION), "projection_dim": 24,
                  "hidden_size": 24, "vocab_size": 32, "image_token_index": 31},
    "paligemma-2": {"model_type": "paligemma", "text_config": small(
        "gemma2", head_dim=8, query_pre_attn_scalar=24, sliding_window=10, rope_parameters=rope()),
        "vision_config": dict(model_type="siglip_vision_model", **VISION), "projection_dim": 24,
        "hidden_size": 24, "vocab_size": 32, "image_token_index": 31},
    "qwen2_audio": {"model_type": "qwen2_audio", "thinker": True, "text_config": small("qwen2", rope_parameters=rope()),
                    "audio_config": dict(model_type="qwen2_audio_encoder", **AUDIO), "audio_token_index": 31},
    "qwen2_5_omni": {"model_type": "qwen2_5_omni", "thinker": True, "enable_audio_output": False, "thinker_config": dict(
        text_config=small("qwen2_5_omni_text", rope_parameters=rope(mrope_section=[1, 1, 1])), audio_config=AUDIO,
        vision_config=QWEN_VISION, **TOKENS)},
    "qwen3_omni_moe": {"model_type": "qwen3_omni_moe", "thinker": True, "enable_audio_output": False, "thinker_config": dict(
        text_config=small("qwen3_omni_moe_text", head_dim=6, moe_intermediate_size=8, num_experts=4,
                          num_experts_per_tok=2, rope_parameters=rope(mrope_section=[1, 1, 1])),
        audio_config=dict(downsample_hidden_size=4, **AUDIO), vision_config=QWEN_VISION, **TOKENS)},
    "laguna": small("laguna", head_dim=8, num_attention_heads_per_layer=[4, 6], moe_intermediate_size=8,
                    shared_expert_intermediate_size=8, num_experts=6, num_experts_per_tok=2, sliding_window=10,
                    moe_routed_scaling_factor=1.5, layer_types=["sliding_attention", "full_attention"],
                    rope_parameters={"full_attention": rope("yarn", partial_rotary_factor=0.5, **YARN),
                                     "sliding_attention": rope(theta=1000.0)}),
    "minimax_m3": small("minimax_m3_vl_text", head_dim=8, rotary_dim=4, intermediate_size=8,
                        dense_intermediate_size=12, shared_intermediate_size=8, num_local_experts=6,
                        num_experts_per_tok=2, swiglu_limit=0.3, index_block_size=8, index_topk_blocks=4,
                        index_n_heads=2, index_head_dim=8, layer_types=["full_attention", "minimax_m3_sparse"],
                        mlp_layer_types=["dense", "sparse"], rope_parameters=rope(partial_rotary_factor=0.5)),
    "glm4v": vl("glm4v", small("glm4v_text", hidden_size=32, rope_parameters=rope(
        partial_rotary_factor=0.5, mrope_section=[1, 1, 0])), image_size=4),
    "glm4v_moe": vl("glm4v_moe", small("glm4v_moe_text", head_dim=8, moe_intermediate_size=8, n_routed_experts=6,
                                       n_shared_experts=1, num_experts_per_tok=2, routed_scaling_factor=1.5,
                                       rope_parameters=rope(partial_rotary_factor=0.5, mrope_section=[1, 1, 0])),
                    image_size=4),
}

if __name__ == "__main__":
    for each in sys.argv[1:] or MODELS:
        make(each, MODELS[each])
