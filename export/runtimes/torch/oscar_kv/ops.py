# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Loads the operators torch.ops.oscar.* of liboscar_torch.so."""

import os
from pathlib import Path

import torch

NAME, VARIABLE = "liboscar_torch.so", "OSCAR_TORCH_LIBRARY"


def library() -> Path:
    """The library that VARIABLE names, else the one beside this package."""
    given = os.environ.get(VARIABLE)
    beside = Path(__file__).parent / NAME
    path = Path(given) if given else beside
    if path.is_file():
        return path
    if given:
        raise ImportError(f"{VARIABLE} names {path}, which is not a file")
    raise ImportError(
        f"{NAME} is neither beside this package ({beside}) nor named by {VARIABLE}; " "tools/build.sh of oscar builds it"
    )


def load():
    """torch.ops.oscar, with the library loaded."""
    if not hasattr(torch.ops.oscar, "attend"):
        path = library()
        try:
            torch.ops.load_library(str(path))
        except OSError as error:
            raise ImportError(f"{path}: cannot be loaded: {error}") from error
    return torch.ops.oscar
