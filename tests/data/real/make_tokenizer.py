#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# make_tokenizer.py TOKENIZER.JSON: what Hugging Face tokenizers makes of 300 texts with SmolLM2-135M-Instruct's tokenizer.json.
import json, os, random, sys
from tokenizers import Tokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
words = open(os.path.join(HERE, "../../../capture/text/corpus/evaluation.txt"), encoding="utf-8").read().split(" ")
tokenizer = Tokenizer.from_file(sys.argv[1])
rng = random.Random(5)
odd = ["\u00e9", "e\u0301", "\uff21", "\u3000", "\n", "\n\n", "\t", "\r\n", "\u4e2d\u6587", "\U0001f600", "7", "2026", "3.14159", "\u0416\u0443\u043a", "\u0627\u0644", "\u200b", "<|im_start|>", "<|im_end|>",
       "<|endoftext|>", "don't", "WE'LL", "x = [1,2];", "    ", "\u0661\u0662", "\u00b2", "\u2028", "\u0000", "\U0010fffd", "\U00040000", "\u0004", "\U000a0041\u001d", "\u0928\u092e\u0938\u094d\u0924\u0947", "\ud55c\uae00", "\u2713", "//", "'s", "\u2019s"]
texts = ["", " ", "\n", "  \n  ", "Hello, world!", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", "a<|im_start|> b", "1234567890", "\u00a0x"] + odd
while len(texts) < 300:
    at = rng.randrange(len(words) - 12)
    picked = words[at:at + rng.randrange(1, 12)]
    for _ in range(rng.randrange(4)):
        picked.insert(rng.randrange(len(picked) + 1), rng.choice(odd) * rng.randrange(1, 3))
    texts.append("".join(word + rng.choice(["", " ", " ", " ", "  "]) for word in picked))
with open(os.path.join(HERE, "tokenizer_cases.jsonl"), "w") as out:
    for text in texts:
        out.write(json.dumps(dict(text=text, ids=tokenizer.encode(text).ids)) + "\n")
