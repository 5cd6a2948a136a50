# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Helpers that the tests of the package oscar_kv share. Tests run as TEST.py PACKAGE MODEL and exit with 77 without transformers.
import os
import pathlib
import sys
import tempfile
import unittest

PACKAGE, MODEL = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
sys.path[:0] = [str(PACKAGE), str(pathlib.Path(__file__).parent)]
os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def skip(what):
    print(f"{sys.argv[0]}: Skipped\npackage {what} is not installed: tools/setup.sh --tests")
    sys.exit(77)


try:
    import torch
    import transformers
except ModuleNotFoundError as missing:
    skip(missing.name)

import oracle
import oscar_kv
import synthetic

torch.set_num_threads(1)
torch.manual_seed(0)
TEXT = 2 * (PACKAGE.parents[2] / "LICENSE").read_text()


def kl(expected, found):
    expected, found = (x.double().log_softmax(-1) for x in (expected, found))
    return float((expected.exp() * (expected - found)).sum(-1).mean())


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name)
        cls.model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
        cls.tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
        cls.ids = cls.tokenizer(TEXT, return_tensors="pt", verbose=False).input_ids

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def setUp(self):
        grad = torch.no_grad()
        grad.__enter__()
        self.addCleanup(grad.__exit__, None, None, None)

    def artifact(self, **choices):
        return oscar_kv.Artifact(synthetic.write(self.folder / str(len(list(self.folder.iterdir()))), **choices))

    def cache(self, artifact, implementation="oscar", **options):
        self.model.set_attn_implementation(implementation)
        return oscar_kv.OscarCache.from_artifact(artifact, self.model, **options)

    def named(self, cache):
        return {oscar_kv.cache.argument(self.model): cache}

    def through(self, cache, ids, sizes, mask=None):
        """Returns the logits of a text that is passed to the model in pieces."""
        logits, end = [], 0
        for piece in ids.split(sizes, 1):
            end += piece.shape[1]
            given = {} if mask is None else {"attention_mask": mask[:, :end]}
            if mask is not None:
                given["position_ids"] = (mask[:, :end].cumsum(1) - 1).clamp(min=0)[:, -piece.shape[1] :]
            logits.append(self.model(piece, **self.named(cache), **given).logits)
        return torch.cat(logits, 1)

    def simulated(self, artifact, ids):
        oracle.register(artifact)
        self.model.set_attn_implementation("oscar_oracle")
        return self.model(ids, use_cache=False).logits
