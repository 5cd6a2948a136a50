#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Distils small models of other families whose attention is not random. Each model learns the next-token distribution of a teacher
# with the same vocabulary (tests/data/tiny-qwen3) on some text for a given number of seconds. It starts from the teacher's
# weights if shapes and names agree. The models serve to compare methods on structures that the teacher lacks; the text that they
# generate is useless. Needs a GPU, torch and transformers 5. Trap: how much a model learns depends on the speed of the machine,
# so runs differ.
#
#   tools/bench/distil_families.py TEACHER TEXT.jsonl OUT [--seconds 80] [--families llama qwen2 ...]
import argparse
import json
import os
import shutil
import sys
import time

import torch
import torch.nn.functional as F
import transformers

ROPE = {"rope_type": "default", "rope_theta": 1e6}
LOCAL_ROPE = {"rope_type": "default", "rope_theta": 1e4}
ALTERNATE = ["sliding_attention", "full_attention"]
# Per family: its configuration class, the fields that differ from the teacher's, and the teacher's fields that it does not have.
FAMILIES = {
    "llama": ("LlamaConfig", {}, ()),
    "qwen2": ("Qwen2Config", {"use_sliding_window": False}, ("head_dim",)),
    "gemma2": ("Gemma2Config", {"query_pre_attn_scalar": 64, "sliding_window": 512, "attn_logit_softcapping": 50.0,
                                "final_logit_softcapping": 30.0}, ()),
    "gemma3": ("Gemma3TextConfig", {"query_pre_attn_scalar": 64, "sliding_window": 512, "layer_types": 2 * ALTERNATE,
                                    "rope_parameters": {"full_attention": ROPE, "sliding_attention": LOCAL_ROPE}}, ()),
    "olmo2": ("Olmo2Config", {}, ("head_dim",)),
    "glm4": ("Glm4Config", {"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}}, ()),
    "gpt_oss": ("GptOssConfig", {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 256, "intermediate_size": 320,
                                 "layer_types": 2 * ALTERNATE, "router_aux_loss_coef": 0.0}, ()),
    "deepseek_v3": ("DeepseekV3Config", {"q_lora_rank": None, "kv_lora_rank": 128, "qk_nope_head_dim": 64, "qk_rope_head_dim": 32,
                                         "v_head_dim": 64, "num_key_value_heads": 4, "n_routed_experts": 8, "num_experts_per_tok": 2,
                                         "n_group": 1, "topk_group": 1, "moe_intermediate_size": 160, "first_k_dense_replace": 4},
                    ("head_dim",)),
}
EAGER = ("gemma2", "gpt_oss")  # these use soft caps or sinks, which need eager attention
LENGTHS = ((1024, 16), (2048, 8), (4096, 4))  # (tokens, sequences) of a step; steps take turns


def config_of(family, teacher):
    name, own, without = FAMILIES[family]
    same = ("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "intermediate_size", "vocab_size",
            "max_position_embeddings", "rms_norm_eps", "tie_word_embeddings", "eos_token_id")
    fields = {field: getattr(teacher, field) for field in same} | {"rope_parameters": ROPE, "bos_token_id": None, "pad_token_id": None} | own
    config = getattr(transformers, name)(**{field: value for field, value in fields.items() if field not in without})
    if family in EAGER:
        config._attn_implementation = "eager"
    return config


def start_from(teacher, student, family, head_dim):
    """Copies weights with the same name and shape. If the student has no QK-norm, the projections include the norm's weights."""
    known, state = teacher.state_dict(), student.state_dict()
    plain = family in ("llama", "qwen2")
    for name, weight in state.items():
        if name not in known or known[name].shape != weight.shape or ("norm" in name and not plain):
            continue
        value = known[name].clone()
        for side in ("q", "k"):
            if plain and f"{side}_proj.weight" in name:
                value *= known[name.replace(f"{side}_proj", f"{side}_norm")].repeat(len(value) // head_dim)[:, None]
        if family.startswith("gemma") and "embed" in name:  # Gemma multiplies embeddings by the root of the width
            value /= student.config.hidden_size ** 0.5
        weight.copy_(value)
    student.load_state_dict(state)


def distil(family, arguments):
    torch.manual_seed(0)
    teacher = transformers.AutoModelForCausalLM.from_pretrained(arguments.teacher, dtype=torch.float32).cuda().eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(arguments.teacher, "tokenizer.json"))
    with open(arguments.text) as lines:
        ids = torch.tensor([token for line in lines for token in
                            tokenizer.encode(json.loads(line)["text"], add_special_tokens=False) + [teacher.config.eos_token_id]])
    student = transformers.AutoModelForCausalLM.from_config(config_of(family, teacher.config), dtype=torch.float32).cuda().train()
    start_from(teacher, student, family, teacher.config.head_dim)
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-3, weight_decay=0.01, betas=(0.9, 0.95), fused=True)
    begin, step = time.monotonic(), 0
    while (done := (time.monotonic() - begin) / arguments.seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 1.5e-3 * min(1, step / 40) * (1 - done) + 1e-5
        length, count = LENGTHS[step % len(LENGTHS)]
        at = torch.randint(0, len(ids) - length - 1, (count,))
        tokens = torch.stack([ids[i:i + length] for i in at]).cuda()
        following = torch.stack([ids[i + 1:i + length + 1] for i in at]).cuda()
        with torch.autocast("cuda", torch.bfloat16):
            with torch.no_grad():
                wanted = teacher(tokens).logits.float().log_softmax(-1)
            found = student(tokens).logits.float().log_softmax(-1)
        loss = F.kl_div(found, wanted, log_target=True, reduction="sum") / tokens.numel() + 0.2 * F.nll_loss(
            found.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimizer.step()
        step += 1
    to = os.path.join(arguments.out, f"tiny-{family}")
    student.to(torch.bfloat16).save_pretrained(to)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(os.path.join(arguments.teacher, name), to)
    print(f"{family}: {step} steps, loss {loss.item():.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description="Small models of other families that learned from one.")
    parser.add_argument("teacher")
    parser.add_argument("text", help="JSON lines with a member text")
    parser.add_argument("out", help="tiny-FAMILY is written here")
    parser.add_argument("--seconds", type=float, default=80)
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    arguments = parser.parse_args()
    workers = [torch.multiprocessing.get_context("spawn").Process(target=distil, args=(family, arguments))
               for family in arguments.families]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    failed = [family for family, worker in zip(arguments.families, workers) if worker.exitcode != 0]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
