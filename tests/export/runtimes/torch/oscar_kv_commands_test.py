# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# oscar_kv_commands_test.py PACKAGE MODEL: tests python -m oscar_kv, lm-evaluation-harness with it, and the installed wheel.
import contextlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import textwrap
import unittest
import unittest.mock

from case import MODEL, PACKAGE, TEXT, Case, kl  # imported first, because it may skip the tests
import torch

from oscar_kv.__main__ import main


class Commands(Case):
    def run_verb(self, *arguments, said=""):
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()), unittest.mock.patch("sys.stdin", io.StringIO(said)):
            main([str(argument) for argument in arguments])
        return out.getvalue()

    def test_eval(self):
        artifact = self.artifact(windows=(16, 32))
        text = self.folder / "text"
        text.write_text(TEXT)
        found = json.loads(self.run_verb("eval", MODEL, artifact.directory, "--text", text, "--length", 300, "--sequences", 2,
                                         "--dtype", "float32", "--device", "cpu"))
        kls = []
        for ids in self.ids[0, :600].split(300):
            self.model.set_attn_implementation("sdpa")
            exact = self.model(ids[None]).logits
            kls.append(kl(exact[:, 75:-1], self.simulated(artifact, ids[None])[:, 75:-1]))
        self.assertEqual((found["scored_tokens"], found["rows_not_stored"]), (2 * 224, 0))
        self.assertAlmostEqual(found["next_token_kl"] / (sum(kls) / 2), 1, delta=0.05)
        self.assertLess(found["cache_bytes"], found["own_cache_bytes"])

    def test_rounding_moves_the_mean_more_than_the_simulator_does(self):
        """Noise of 1e-6 in the embedding changes codes. Its effect limits how closely two implementations can agree."""
        artifact, ids = self.artifact(windows=(16, 32)), self.ids[:, :600]
        self.model.set_attn_implementation("sdpa")
        exact = self.model(ids).logits[:, 150:-1]
        simulated = kl(exact, self.simulated(artifact, ids)[:, 150:-1])
        weight = self.model.model.embed_tokens.weight.data
        kept, served = weight.clone(), []
        for noise in (0, 1e-6, 1e-6, 1e-6):
            weight *= 1 + noise * torch.randn_like(weight)
            served.append(kl(exact, self.through(self.cache(artifact), ids, 600)[:, 150:-1]))
            weight.copy_(kept)
        moved = [abs(x / served[0] - 1) for x in served[1:]]
        print(f"served / simulated - 1: {served[0] / simulated - 1:.1e}; noise of 1e-6 moves served by", *(f"{x:.1e}" for x in moved))
        self.assertLess(abs(served[0] / simulated - 1), 3 * max(moved))

    def test_bench_and_chat(self):
        artifact = self.artifact(windows=(16, 32)).directory
        found = json.loads(self.run_verb("bench", MODEL, artifact, "--tokens", 300, "--decode", 3, "--device", "cpu"))
        self.assertLess(found["cache_bytes_of_own"], 0.7)
        said = self.run_verb("chat", MODEL, artifact, "--device", "cpu", "--max-new-tokens", 5, said="One two\nthree\n")
        self.assertGreater(len(said), 10)

    def test_lm_eval(self):
        try:
            import lm_eval  # noqa: F401
        except ModuleNotFoundError:
            print(f"{sys.argv[0]}: Skipped\nlm_eval 0.4.13 is not at hand: pip install 'lm_eval[hf]==0.4.13'")
            self.skipTest("no lm_eval")
        (self.folder / "tasks").mkdir()
        pages = self.folder / "tasks" / "pages.jsonl"
        pages.write_text("".join(json.dumps({"page": TEXT[i * 900 : (i + 1) * 900]}) + "\n" for i in range(3)))
        common = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {pages}}}}}\ntest_split: test\n"
        for name, task in {
            "text": 'output_type: loglikelihood_rolling\ndoc_to_text: ""\ndoc_to_target: "{{page}}"\n'
                    "metric_list: [{metric: byte_perplexity}]\n",
            "writing": 'output_type: generate_until\ndoc_to_text: "{{page}}"\ndoc_to_target: " "\n'
                       'generation_kwargs: {until: ["@@"], max_gen_toks: 6}\nmetric_list: [{metric: exact_match}]\n',
        }.items():
            (self.folder / "tasks" / f"{name}.yaml").write_text(f"task: oscar_{name}\n{common}{task}")
        found = {}
        for model in ("oscar", "hf"):
            out = self.folder / f"lm_eval-{model}"
            given = f"pretrained={MODEL},dtype=float32"
            if model == "oscar":
                given += f",artifact={self.artifact().directory}"
            self.run_verb("lm_eval", "--model", model, "--model_args", given, "--tasks", "oscar_text,oscar_writing", "--include_path",
                          self.folder / "tasks", "--device", "cpu", "--batch_size", 2, "--output_path", out, "--log_samples")
            results = json.loads(next(out.rglob("results_*.json")).read_text())["results"]
            samples = next(out.rglob("samples_oscar_writing*.jsonl")).read_text().splitlines()
            found[model] = results["oscar_text"]["byte_perplexity,none"]
            self.assertTrue(all(json.loads(line)["resps"][0][0] for line in samples))
        # The quantized cache was used, and its perplexity is close to the exact one.
        self.assertNotEqual(found["oscar"], found["hf"])
        self.assertAlmostEqual(found["oscar"] / found["hf"], 1, delta=0.05)

    def test_lm_eval_that_is_not_there_is_named(self):
        with unittest.mock.patch.dict(sys.modules, {"lm_eval": None, "lm_eval.__main__": None}):
            with self.assertRaisesRegex(SystemExit, "lm_eval.* is not installed: pip install"):
                main(["lm_eval", "--model", "oscar"])


class Wheel(Case):
    """Does what a new user does: installs the wheel next to torch and transformers, and runs the README's lines."""

    def test_installed_and_tried(self):
        if importlib.util.find_spec("wheel") is None:
            print(f"{sys.argv[0]}: Skipped\npackage wheel is not installed: tools/setup.sh --tests")
            self.skipTest("no wheel")
        wheel = subprocess.run([PACKAGE.parents[2] / "tools" / "wheel.sh", self.folder], check=True, capture_output=True, text=True,
                               env=os.environ | {"PYTHON": sys.executable}).stdout.strip()
        site = self.folder / "site"
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site, wheel], check=True)
        lines = (PACKAGE / "README.md").read_text().split("\n\n")[2]
        code = (f"MODEL, ARTIFACT, inputs = {str(MODEL)!r}, {str(self.artifact().directory)!r}, {{}}\n" + textwrap.dedent(lines))
        code = code.replace("**inputs", "torch.arange(80)[None], max_new_tokens=3").replace("from trans", "import torch\nfrom trans", 1)
        environment = {name: value for name, value in os.environ.items() if name != "OSCAR_TORCH_LIBRARY"}
        environment["PYTHONPATH"] = f"{site}:{environment.get('PYTHONPATH', '')}"
        done = subprocess.run([sys.executable, "-c", code + "\nimport oscar_kv; print(oscar_kv.__file__)"], capture_output=True,
                              text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith(str(site)), done.stdout)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
