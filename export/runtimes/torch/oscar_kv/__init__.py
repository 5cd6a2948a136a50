# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the cache that oscar-calibrate chose, in Hugging Face transformers.

    from oscar_kv import OscarCache
    model = AutoModelForCausalLM.from_pretrained(MODEL, attn_implementation="oscar")
    model.generate(**inputs, past_key_values=OscarCache.from_artifact(ARTIFACT, model))

`Artifact` reads artifacts and their reports; it needs neither torch nor transformers.
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
