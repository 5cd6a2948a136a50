# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""lm-evaluation-harness on an artifact's cache: its model `oscar` is `hf` with artifact=DIR.

`hf` computes log-likelihoods in one pass without a cache; here they go through the quantized one, in chunks.
"""

import functools
import sys

CHUNK = 512  # tokens of a pass; what is read does not depend on it


@functools.cache
def register() -> None:
    import torch
    from lm_eval.api.registry import register_model
    from lm_eval.models.huggingface import HFLM

    from .artifact import Artifact
    from .attention import NAME
    from .cache import OscarCache, argument

    @register_model("oscar")
    class OscarLM(HFLM):
        def __init__(self, pretrained, artifact, prefill="quantized", **kwargs):
            self.artifact, self.prefill = Artifact(artifact), prefill
            if isinstance(pretrained, str):
                kwargs["attn_implementation"] = NAME
            super().__init__(pretrained, **kwargs)

        def _cache(self) -> dict:
            return {argument(self.model): OscarCache.from_artifact(self.artifact, self.model, self.prefill)}

        def _model_call(self, inps, attn_mask=None, labels=None):
            cache, logits = self._cache(), []
            with torch.no_grad():
                for chunk in inps.split(CHUNK, dim=1):
                    logits.append(self.model(chunk, **cache).logits)
            return torch.cat(logits, 1)

        def _model_generate(self, context, max_length, stop, **generation_kwargs):
            return super()._model_generate(context, max_length, stop, **self._cache(), **generation_kwargs)


def main(arguments: list[str]) -> None:
    """lm_eval's own command line, with `--model oscar`."""
    try:
        from lm_eval.__main__ import cli_evaluate
    except ModuleNotFoundError as missing:
        raise SystemExit(f"oscar_kv lm_eval: {missing.name} is not installed: pip install 'lm_eval[hf]==0.4.13'") from missing
    register()
    sys.argv = ["lm_eval", *arguments]
    cli_evaluate()
