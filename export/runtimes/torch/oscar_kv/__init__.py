# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the cache that oscar-calibrate chose, in Hugging Face transformers.

    import oscar_kv
    model = AutoModelForCausalLM.from_pretrained(MODEL, attn_implementation="oscar")
    cache = oscar_kv.OscarCache.from_artifact(ARTIFACT, model)
    model.generate(**inputs, past_key_values=cache)

`Artifact` reads artifacts and their reports, and needs neither torch nor transformers.
"""

from .artifact import VERSION, Artifact, ArtifactError

__version__ = VERSION
__all__ = ["Artifact", "ArtifactError"]

try:
    from . import attention as _attention  # registers attn_implementation="oscar"
    from .cache import OscarCache

    __all__.append("OscarCache")
except ModuleNotFoundError as missing:
    if missing.name not in ("torch", "transformers"):
        raise
