# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""python -m oscar_kv chat|eval|bench MODEL ARTIFACT, python -m oscar_kv lm_eval ..."""

import argparse
import json
import sys


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="oscar_kv", description="Runs a model with the cache of an oscar artifact.")
    verbs = top.add_subparsers(dest="verb", required=True)

    def verb(name: str, help: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(name, help=help, description=help)
        one.add_argument("model", help="a directory or an id of the Hugging Face hub")
        one.add_argument("artifact", help="of oscar-calibrate, or what oscar-export --to oscar-torch wrote")
        one.add_argument("--device", help="cuda where there is one, else cpu")
        one.add_argument("--dtype", default="auto", help="of the model: auto, float32, bfloat16, float16")
        one.add_argument("--prefill", choices=("quantized", "exact"), default="quantized",
                         help="what tokens of a prompt read of each other (exact: as servers do)")
        return one

    chat = verb("chat", "Talk to the model.")
    chat.add_argument("--max-new-tokens", type=int, default=512)
    evaluate = verb("eval", "Perplexity and next-token KL on a text, against the model's own cache.")
    evaluate.add_argument("--text", required=True, help="a file in UTF-8")
    evaluate.add_argument("--length", type=int, default=2048, help="tokens of a sequence")
    evaluate.add_argument("--sequences", type=int, default=0, help="at most as many; 0: the whole text")
    bench = verb("bench", "Tokens a second and bytes of the cache, beside the model's own cache.")
    bench.add_argument("--tokens", type=int, default=8192, help="of the prompt")
    bench.add_argument("--decode", type=int, default=64, help="tokens decoded; the median counts")
    bench.add_argument("--batch", type=int, default=1)
    for one in (evaluate, bench):
        one.add_argument("--chunk", type=int, default=512, help="tokens of a pass")
    verbs.add_parser("lm_eval", help="lm-evaluation-harness with the model `oscar` (its own options follow)")
    return top


def main(arguments: list[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["lm_eval"]:
        from . import harness

        return harness.main(arguments[1:])
    options = parser().parse_args(arguments)
    from .artifact import ArtifactError

    try:
        from . import commands

        if options.verb == "chat":
            return commands.chat(options)
        results = (commands.evaluate if options.verb == "eval" else commands.bench)(options)
    except (ArtifactError, ImportError, OSError) as error:
        raise SystemExit(f"oscar_kv: {error}") from error
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
