# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""The programs of oscar. They find the libraries of torch in the folder beside this package."""
import os
import sys


def main():
    """Replaces this process by the program whose name was typed."""
    programs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")
    os.execv(os.path.join(programs, os.path.basename(sys.argv[0])), sys.argv)
