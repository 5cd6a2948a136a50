# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# oscar_kv_test.py PACKAGE MODEL: compares the package oscar_kv in transformers on the bundled model with oracle.py, which computes
# every query's own mixture of exact and quantized rows without a cache.
import json
import sys
import unittest

from case import Case, kl  # imported first, because it may skip the tests

import oracle
import oscar_kv
import synthetic
import torch
import transformers
from oscar_kv import attention
from oscar_kv.steps import Core

KINDS = {  # kinds of choices
    "mixed bits": {"k_bits": [2, 3], "v_bits": [4, 2]},
    "byte scales": {"k_bits": 3, "group": 16, "scales": "byte"},
    "groups": {"v_bits": 4, "group": 32, "clip": (0.9, 0.8)},
    "range": {"scales": None, "feedback": False},
}
# Nats. Another order of summation changes roundings to bf16 and thus codes. Quantization itself costs 20 times as much.
SAME = 2e-3


class Attention(Case):
    """Tests one layer with every option of an attention function."""

    def rows(self, tokens, batch=2, heads=2, q_heads=4, dim=64):
        q, k, v = (torch.randn(batch, n, tokens, dim) for n in (q_heads, heads, heads))
        return q, k + torch.randn(1, heads, 1, dim), v

    def layer(self, artifact, prefill="quantized", window=0, implementation="oscar"):
        core = Core(artifact.windows, prefill, lambda: implementation)
        return oscar_kv.layer.OscarLayer(artifact.layer(0), core, window), core

    def attend(self, layer, q, k, v, sizes, **options):
        outputs = []
        for part in zip(*(x.split(sizes, 2) for x in (q, k, v))):
            keys, values = layer.update(*part[1:])
            outputs.append(attention.forward(None, part[0], keys, values, None, **options)[0])
        return torch.cat(outputs, 1).transpose(1, 2)

    def test_equals_the_simulator(self):
        q, k, v = self.rows(150)
        rules = [{}, {"window": 40}, {"softcap": 2.0}, {"sinks": torch.randn(4)}]
        for (name, choices), rule in zip(KINDS.items(), rules):
            artifact = self.artifact(**choices)
            layer, core = self.layer(artifact, window=rule.get("window", 0))
            first = [0, 23]
            core.first = list(first)
            options = {"softcap": rule.get("softcap"), "s_aux": rule.get("sinks")}
            found = self.attend(layer, q, k, v, [70, 1, 1, 30, 48], **options)
            expected = oracle.attention(layer.stored, artifact.windows, q, k, v, torch.tensor(first), 64**-0.5,
                                        **{key: rule.get(key) for key in ("window", "softcap", "sinks")})
            with self.subTest(name):
                torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-5)

    def test_exact_prefill_reads_its_own_rows(self):
        artifact = self.artifact(feedback=False)
        q, k, v = self.rows(120)
        stored = artifact.layer(0)
        first = torch.zeros(2, dtype=torch.long)
        layer, _ = self.layer(artifact, "exact")
        found = self.attend(layer, q, k, v, [100, 20])
        all_exact = oracle.attention(stored, (16, 1000), q, k, v, first, 64**-0.5)
        torch.testing.assert_close(found[:, :, :100], all_exact[:, :, :100], atol=2e-5, rtol=2e-5)
        # The first 100 tokens are quantized from token 16 to their recent window. Later tokens are exact.
        quantized = torch.zeros(120, dtype=torch.bool)
        quantized[16 : 16 + (100 - 32 - 16) // oracle.STEP * oracle.STEP] = True
        keys, values = (torch.where(quantized[:, None], oracle.quantized(s, t), t) for s, t in
                        ((stored.k, oracle.turned(stored.k, k)), (stored.v, oracle.turned(stored.v, v))))
        queries = oracle.turned_queries(stored.k, q, 2)
        logits = queries @ keys.repeat_interleave(2, 1).mT * 64**-0.5
        logits = logits.masked_fill(~torch.ones(120, 120, dtype=torch.bool).tril(), -torch.inf)
        out = logits.softmax(-1) @ values.repeat_interleave(2, 1) @ oracle.matrices(stored.v.undo, 4).mT
        torch.testing.assert_close(found[:, :, 100:], out[:, :, 100:], atol=2e-5, rtol=2e-5)

    def test_another_attention_reads_the_same(self):
        artifact = self.artifact(k_bits=[2, 3])
        q, k, v = self.rows(700)
        sizes = [100, 30, 500] + [1] * 70
        expected = self.attend(self.layer(artifact, "exact")[0], q, k, v, sizes)
        layer, end, found = self.layer(artifact, implementation="sdpa")[0], 0, []
        for queries, *rows in zip(*(x.split(sizes, 2) for x in (q, k, v))):
            keys, values = (x.repeat_interleave(2, 1) for x in layer.update(*rows))
            end += queries.shape[2]
            seen = torch.ones(end, end, dtype=torch.bool).tril()[-queries.shape[2] :]
            found.append(torch.nn.functional.scaled_dot_product_attention(queries, keys, values, seen))
        off = (torch.cat(found, 2) - expected).norm(dim=-1) / expected.norm(dim=-1)
        self.assertLess(off.max(), 0.02)  # our keys, values and queries are rounded to bf16

    def test_sliding_layers_hold_what_is_seen(self):
        artifact = self.artifact()
        q, k, v = self.rows(1500, batch=1)
        full, _ = self.layer(artifact)
        sliding, _ = self.layer(artifact, window=64)
        found = self.attend(sliding, q, k, v, [1000] + [1] * 500)
        self.attend(full, q, k, v, [1500])
        self.assertLess(sliding.nbytes, full.nbytes / 2)
        stored = sliding.stored
        expected = oracle.attention(stored, artifact.windows, q, k, v, torch.zeros(1, dtype=torch.long), 64**-0.5, window=64)
        torch.testing.assert_close(found, expected, atol=2e-5, rtol=2e-5)


class Model(Case):
    def assert_same(self, expected, found):
        self.assertLess(kl(expected, found), SAME)

    def test_a_generation_is_the_simulators_pass(self):
        for choices in (KINDS["mixed bits"], KINDS["range"]):
            artifact, ids = self.artifact(**choices), self.ids[:, :90]
            cache = self.cache(artifact)
            written = self.model.generate(ids, **self.named(cache), max_new_tokens=64, do_sample=False, eos_token_id=None,
                                          pad_token_id=0, output_logits=True, return_dict_in_generate=True)
            found = torch.stack(written.logits, 1)
            self.assertEqual(written.sequences.shape[1], 154)
            expected = self.simulated(artifact, written.sequences)[:, 89:-1]
            self.model.set_attn_implementation("sdpa")
            exact = self.model(written.sequences).logits[:, 89:-1]
            # The remaining differences come from values that round to another bf16 number.
            self.assertLess(kl(expected, found), kl(exact, expected) / 20)
            torch.testing.assert_close(kl(exact, found), kl(exact, expected), rtol=0.05, atol=0)
            self.assertGreater((found.argmax(-1) == expected.argmax(-1)).float().mean(), 0.96)

    def test_pieces_do_not_matter(self):
        artifact, ids = self.artifact(k_bits=[2, 3]), self.ids[:, :200]
        whole = self.through(self.cache(artifact), ids, 200)
        for sizes in (64, [100, 1, 1, 50, 48], [1] * 120 + [80]):
            self.assert_same(whole, self.through(self.cache(artifact), ids, sizes))
        self.assertGreater(kl(self.through(self.cache(artifact, prefill="exact"), ids, 100), whole), 3 * SAME)

    def test_padding_on_the_left_is_nothing(self):
        artifact, ids = self.artifact(k_bits=[2, 3]), self.ids[:, :180]
        alone = self.through(self.cache(artifact), ids, [90, 60] + [1] * 30)
        for implementation in ("oscar", "sdpa"):
            padded = torch.cat([torch.full((1, 20), 5), ids], 1)
            both = torch.cat([padded, self.ids[:, 300:500]])
            mask = torch.ones_like(both)
            mask[0, :20] = 0
            if implementation == "sdpa":
                alone = self.through(self.cache(artifact, "sdpa"), ids, [90, 60] + [1] * 30)
            found = self.through(self.cache(artifact, implementation), both, [110, 60] + [1] * 30, mask)[:1, 20:]
            self.assert_same(alone, found)

    def test_a_padded_batch_writes_the_same(self):
        artifact, texts = self.artifact(), [self.ids[:, :100], self.ids[:, 100:170]]
        options = {"max_new_tokens": 20, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        ids = torch.cat([texts[0], torch.nn.functional.pad(texts[1], (30, 0))])
        mask = torch.cat([torch.ones(1, 100), torch.nn.functional.pad(torch.ones(1, 70), (30, 0))]).long()
        both = self.model.generate(ids, attention_mask=mask, **self.named(self.cache(artifact)), **options)
        for text, written in zip(texts, both):
            alone = self.model.generate(text, **self.named(self.cache(artifact)), **options)[0, -20:]
            self.assertGreaterEqual((alone == written[-20:]).sum(), 10)  # a tie may be broken differently once

    def test_padding_that_the_cache_did_not_see_is_refused(self):
        cache = self.cache(self.artifact())
        mask = torch.ones_like(self.ids[:, :100])
        self.through(cache, self.ids[:, :90], 90, mask[:, :90])
        mask[:, :10] = 0
        with self.assertRaisesRegex(ValueError, "begins at tokens"):
            self.model(self.ids[:, 90:100], **self.named(cache), attention_mask=mask)
        mask = torch.ones_like(self.ids[:, :100])
        mask[:, 95:] = 0
        with self.assertRaisesRegex(ValueError, "pad on the left"):
            self.model(self.ids[:, :100], **self.named(self.cache(self.artifact())), attention_mask=mask)
        blocks = torch.ones(1, 1, 100, 100, dtype=torch.bool)
        with self.assertRaisesRegex(NotImplementedError, "no masks but of padding"):
            self.model(self.ids[:, :100], **self.named(self.cache(self.artifact())), attention_mask=blocks)

    def test_another_attention_takes_its_rows(self):
        artifact, ids = self.artifact(feedback=False), self.ids[:, :300]
        ours = self.through(self.cache(artifact, prefill="exact"), ids, [200, 80, 20])
        self.model.set_attn_implementation("sdpa")
        exact = self.model(ids).logits
        for implementation in ("sdpa", "eager"):
            found = self.through(self.cache(artifact, implementation), ids, [200, 80, 20])
            self.assertLess(kl(ours, found), kl(exact, ours) / 4)

    def test_without_a_cache_nothing_is_quantized(self):
        ids = self.ids[:, :100].view(2, 50)
        mask = torch.ones_like(ids)
        mask[0, :12] = 0
        expected, found = [], []
        for implementation, logits in (("sdpa", expected), ("oscar", found)):
            self.model.set_attn_implementation(implementation)
            logits += [self.model(ids, use_cache=False).logits, self.model(ids, attention_mask=mask, use_cache=False).logits[:, 12:]]
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)

    def test_generate_prefills_in_chunks(self):
        artifact, ids = self.artifact(), self.ids[:, :150]
        options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0, "eos_token_id": None}
        written = [self.model.generate(ids, **self.named(self.cache(artifact)), **options, **chunks).tolist()
                   for chunks in ({}, {"prefill_chunk_size": 40})]
        self.assertEqual(*written)

    def test_crop(self):
        artifact, ids = self.artifact(), self.ids[:, :200]
        cache = self.cache(artifact)
        self.through(cache, ids, 200)
        cache.crop(-15)
        self.assertEqual(cache.get_seq_length(), 185)
        again = self.through(cache, ids[:, 185:], [5] + [1] * 10)
        self.assert_same(self.through(self.cache(artifact), ids, 200)[:, 185:], again)
        with self.assertRaisesRegex(ValueError, "at most"):
            cache.crop(-60)

    def test_beams_and_assistants(self):
        artifact, ids = self.artifact(), self.ids[:, :120]
        options = {"max_new_tokens": 12, "do_sample": False, "pad_token_id": 0}
        cache = self.cache(artifact)
        self.model.generate(ids, **self.named(cache), num_beams=3, **options)
        self.assertEqual(len(cache.core.real), 3)
        greedy = self.model.generate(ids, **self.named(self.cache(artifact)), **options)
        looked_up = self.model.generate(ids, **self.named(self.cache(artifact)), prompt_lookup_num_tokens=4, **options)
        self.assertEqual(greedy.tolist(), looked_up.tolist())
        selected = self.cache(artifact)
        self.through(selected, self.ids[:, :600].view(3, 200), 200)
        selected.batch_select_indices(torch.tensor([2, 0]))
        both = self.through(selected, self.ids[:, 600:620].view(2, 10), 5)
        alone = self.cache(artifact)
        self.through(alone, self.ids[:, 400:600], 200)
        self.assert_same(self.through(alone, self.ids[:, 600:610], 5), both[:1])

    def test_bytes(self):
        for batch in (1, 3):
            artifact = self.artifact(k_bits=[2, 3], windows=(64, 256))
            cache = self.cache(artifact)
            ids = self.ids[:, : batch * 2048].reshape(batch, 2048)
            self.through(cache, ids, 512)
            rows = 4 * batch * 2  # layers, texts, heads
            codes = (2048 - 64 - 256) * (2.5 + 2 + 4 * 16 / 64) * 64 / 8  # bf16 scale and zero for each side
            windows = (64 + 288) * 2 * 64 * 2
            self.assertGreater(cache.nbytes, rows * (codes + windows))
            self.assertLess(cache.nbytes, rows * (codes * 1.15 + windows))
            own = transformers.DynamicCache(config=self.model.config)
            self.model.set_attn_implementation("sdpa")
            self.model(ids, **self.named(own))
            self.assertEqual(sum(map(oscar_kv.cache.cache_bytes, own.layers)), rows * 2048 * 2 * 64 * 4)
            cache.reset()
            self.assertEqual((cache.nbytes, cache.get_seq_length()), (0, 0))


class Families(Case):
    """Tests random models with special attention: their own code, our cache and the simulator."""

    SHAPE = {"hidden_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
             "intermediate_size": 128, "vocab_size": 500, "max_position_embeddings": 1024, "bos_token_id": 0, "eos_token_id": 0}

    def logits(self, config, layers):
        torch.manual_seed(0)
        self.model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        for name, weights in self.model.named_parameters():
            if "sinks" in name:
                weights.normal_()
        artifact, ids = self.artifact(layers=layers, feedback=False, k_bits=[2, 3]), torch.randint(500, (2, 200))
        found = self.through(self.cache(artifact), ids, [90, 60] + [1] * 50)
        self.model.set_attn_implementation("eager")
        return self.model(ids, use_cache=False).logits, self.simulated(artifact, ids), found

    def test_softcap_sinks_and_sliding_windows(self):
        windows = {**self.SHAPE, "sliding_window": 48}
        for config in (
            transformers.Gemma2Config(**windows, query_pre_attn_scalar=64, attn_logit_softcapping=3.0),
            transformers.GptOssConfig(**windows, num_local_experts=2, num_experts_per_tok=1),
            transformers.MistralConfig(**windows),
        ):
            exact, expected, found = self.logits(config, 4)
            with self.subTest(config.model_type):
                self.assertLess(kl(expected, found), kl(exact, expected) / 200)

    def test_layers_that_share_keys_and_linear_attention(self):
        kinds = ["sliding_attention", "full_attention"] * 2
        shared = transformers.Gemma4TextConfig(**self.SHAPE, sliding_window=48, num_kv_shared_layers=2, global_head_dim=64, layer_types=kinds,
                                               hidden_size_per_layer_input=32, vocab_size_per_layer_input=500)
        linear = transformers.Qwen3NextConfig(**self.SHAPE, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=64,
                                              shared_expert_intermediate_size=64, linear_num_key_heads=2, linear_num_value_heads=2,
                                              linear_key_head_dim=32, linear_value_head_dim=32,
                                              layer_types=["full_attention"] + 3 * ["linear_attention"])
        for config, layers in ((shared, 2), (linear, 1)):
            exact, expected, found = self.logits(config, layers)
            with self.subTest(config.model_type):
                self.assertLess(kl(expected, found), kl(exact, expected) / 50)


class Reader(Case):
    def refused(self, change, message):
        folder = synthetic.write(self.folder / f"{self.id()}-{len(list(self.folder.iterdir()))}")
        change(folder)
        with self.assertRaisesRegex(oscar_kv.ArtifactError, message):
            artifact = oscar_kv.Artifact(folder)
            for layer in artifact.layer_ids:
                artifact.layer(layer)

    def test_a_changed_byte(self):
        def change(folder):
            path = folder / "rotations.safetensors"
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 1
            path.write_bytes(data)

        self.refused(change, "damaged or was changed")

    def test_what_is_not_right_is_named(self):
        def edit(**members):
            def change(folder):
                manifest = json.loads((folder / "manifest.json").read_text())
                for key, value in members.items():
                    if key in manifest["auto"]["layers"][1]:
                        manifest["auto"]["layers"][1][key] = value
                    else:
                        manifest[key] = value
                (folder / "manifest.json").write_text(json.dumps(manifest))

            return change

        self.refused(lambda folder: (folder / "manifest.json").unlink(), "no manifest.json")
        self.refused(lambda folder: (folder / "manifest.json").write_text("{"), "is not JSON")
        self.refused(lambda folder: (folder / "rotations.safetensors").unlink(), "cannot be read")
        self.refused(edit(**{"$schema": {"name": "oscar-artifact", "version": 1}}), "schema oscar-artifact 1, expected")
        self.refused(edit(imported={}), "imported")
        self.refused(edit(k_bits=8), "codes of .* bits, expected 2, 3 or 4")
        self.refused(edit(k_bits=[2, 2, 2]), "3 bits for 2 KV heads")
        self.refused(edit(quant_group_size=24), "groups of 24")
        self.refused(edit(calibration={"latent_layers": [2]}), "latent attention")

    def test_another_model_is_refused(self):
        with self.assertRaisesRegex(oscar_kv.ArtifactError, "another model.s"):
            self.cache(self.artifact(layers=5))
        cache = self.cache(self.artifact(heads=4))
        with self.assertRaisesRegex(oscar_kv.ArtifactError, "2 KV heads .* has 4"):
            self.model(self.ids[:, :5], **self.named(cache))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
