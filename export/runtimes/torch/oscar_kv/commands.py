# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""chat, eval and bench: a model with an artifact's cache, beside the same model with its own."""

import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, TextStreamer

from .artifact import Artifact
from .attention import NAME
from .cache import OscarCache, argument, cache_bytes


class Subject:
    """A model, its tokenizer and an artifact."""

    def __init__(self, options):
        device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.options, self.artifact = options, Artifact(options.artifact)
        self.tokenizer = AutoTokenizer.from_pretrained(options.model)
        self.model = AutoModelForCausalLM.from_pretrained(options.model, dtype=options.dtype).to(device).eval()
        self.own = self.model.config._attn_implementation

    def cache(self, own: bool = False):
        """An empty cache, and the attention that goes with it."""
        self.model.set_attn_implementation(self.own if own else NAME)
        if own:
            return DynamicCache(config=self.model.config)
        options = self.options
        return OscarCache.from_artifact(self.artifact, self.model, options.prefill)

    def logits(self, cache, tokens, last: bool = False):
        self.model.set_attn_implementation(NAME if isinstance(cache, OscarCache) else self.own)
        keep = {"logits_to_keep": 1} if last else {}
        return self.model(tokens, **{argument(self.model): cache}, **keep).logits.float()


@torch.no_grad()
def evaluate(options) -> dict:
    """Perplexity and KL of the next token on a text, against the same model's own cache."""
    subject = Subject(options)
    with open(options.text, encoding="utf-8") as file:
        ids = subject.tokenizer(file.read(), return_tensors="pt", verbose=False).input_ids
    sequences = [s for s in ids[0].split(options.length)[: options.sequences or None] if len(s) > 1]
    if not sequences:
        raise SystemExit(f"{options.text}: fewer than two tokens")
    scored = []  # per sequence [4, tokens]: KL, same most likely token, loss in our cache and in the own
    for sequence in sequences:
        tokens = sequence[None].to(subject.model.device)
        own, ours, parts, target = subject.cache(own=True), subject.cache(), [], tokens[0].roll(-1)
        for chunk, next_tokens in zip(tokens.split(options.chunk, 1), target.split(options.chunk)):
            expected = subject.logits(own, chunk).log_softmax(-1)[0]
            found = subject.logits(ours, chunk).log_softmax(-1)[0]
            kl = (expected.exp() * (expected - found)).sum(-1)
            losses = (-of.gather(-1, next_tokens[:, None])[:, 0] for of in (found, expected))
            parts.append(torch.stack([kl, (expected.argmax(-1) == found.argmax(-1)).float(), *losses]))
        # The first quarter has little context (as in oscar-validate); the last token has no successor.
        scored.append(torch.cat(parts, 1)[:, len(sequence) // 4 : -1].double().cpu())
    kl, same, losses, own_losses = torch.cat(scored, 1)
    return {
        "sequences": len(sequences),
        "scored_tokens": len(kl),
        "next_token_kl": float(kl.mean()),
        "next_token_kl_p99": float(kl.quantile(0.99)),
        "same_next_token": float(same.mean()),
        "perplexity": float(losses.mean().exp()),
        "own_perplexity": float(own_losses.mean().exp()),
        "perplexity_ratio": float((losses.mean() - own_losses.mean()).exp()),
        "cache_bytes": ours.nbytes,
        "own_cache_bytes": sum(map(cache_bytes, own.layers)),
        "rows_not_stored": ours.bad_rows,
    }


def allocated(device) -> int:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def wait(device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@torch.no_grad()
def bench(options) -> dict:
    """Prefill and decode of random tokens, with the model's own cache and with ours."""
    subject, results = Subject(options), {}
    model = subject.model
    generator = torch.Generator().manual_seed(0)
    vocabulary = model.config.get_text_config().vocab_size
    prompt = torch.randint(vocabulary, (options.batch, options.tokens), generator=generator).to(model.device)
    for name in ("own", "oscar"):
        cache = subject.cache(own=name == "own")
        before_filling, begin = allocated(model.device), wait(model.device)
        for chunk in prompt.split(options.chunk, 1):
            logits = subject.logits(cache, chunk, last=True)
        filled = wait(model.device)
        times = []
        for _ in range(options.decode):
            before = wait(model.device)
            logits = subject.logits(cache, logits[:, -1:].argmax(-1), last=True)
            times.append(wait(model.device) - before)
        results[name] = {
            "prefill_tokens_per_s": options.batch * options.tokens / (filled - begin),
            "decode_tokens_per_s": options.batch / sorted(times)[len(times) // 2],
            "cache_bytes": sum(map(cache_bytes, cache.layers)),
        }
        del logits
        if model.device.type == "cuda":
            results[name]["allocated_bytes"] = allocated(model.device) - before_filling
        del cache
    own, ours = results["own"], results["oscar"]
    return results | {f"{name}_of_own": ours[name] / own[name] for name in ours}


def chat(options) -> None:
    """Talks until the input ends; the cache stays between turns."""
    subject = Subject(options)
    tokenizer, model = subject.tokenizer, subject.model
    cache, held, messages = subject.cache(), [], []
    while True:
        try:
            said = input("> ")
        except (EOFError, KeyboardInterrupt):
            print()
            return
        messages.append({"role": "user", "content": said})
        if tokenizer.chat_template:
            ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        else:
            ids = tokenizer("".join(message["content"] for message in messages)).input_ids
        if ids[: len(held)] != held or len(ids) == len(held):
            cache, held = subject.cache(), []  # the template wrote an earlier turn in another way
        tokens = torch.tensor([ids], device=model.device)
        streamer = TextStreamer(tokenizer, skip_prompt=True, skip_special_tokens=True)
        written = model.generate(tokens, attention_mask=torch.ones_like(tokens), **{argument(model): cache}, streamer=streamer,
                                 max_new_tokens=options.max_new_tokens,
                                 pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id)[0].tolist()
        held = written[: cache.get_seq_length()]
        answer = tokenizer.decode(written[len(ids) :], skip_special_tokens=True)
        messages.append({"role": "assistant", "content": answer})
