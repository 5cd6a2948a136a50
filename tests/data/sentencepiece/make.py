#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
#
# Trains the small tokenizers of this folder on our own built-in corpus and writes what the reference libraries make of some texts:
#
#   NAME.model          SentencePiece models of the kinds that released language models have
#   cases.jsonl         {"model", "text", "ids"}: SentencePieceProcessor.encode()
#   unigram.jsonl       {"tokenizer", "cases"}: tokenizer.json files with Unigram and Precompiled, ids of Hugging Face tokenizers
#   fewer_bytes.jsonl   the same for a byte-level vocabulary that lacks most bytes; "lost" is what the library leaves out
#   directories.jsonl   {"files", "model", "cases"}: files of a model directory (and NAME.model as tokenizer.model), ids of transformers
#
# Run with the versions that the second line of cases.jsonl names: make.py [--check] rewrites or compares.
import json, os, random, sys, tempfile
import sentencepiece as spm
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "../../../capture/text/corpus")
RULES = "tests/data/sentencepiece/make.py"  # a normalization of our own, since nmt_nfkc has 240 KB

# "from TAB to" in code points: full-width letters, ligatures, an accent composed, spaces, what is deleted.
TSV = "\n".join(
    [f"{0xFF21 + i:X}\t{0x41 + i:X}" for i in range(26)] + [f"{0xFF41 + i:X}\t{0x61 + i:X}" for i in range(26)] +
    ["FB01\t66 69", "FB00\t66 66", "65 301\tE9", "61 301\tE1", "3000\t20", "A0\t20", "9\t20", "200B\t", "2026\t2E 2E 2E", "1F600\t3A 29"]) + "\n"

COMMON = dict(input=os.path.join(CORPUS, "calibration.txt"), num_threads=1, minloglevel=2, max_sentence_length=20000, character_coverage=.999)
LLAMA = dict(normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True, byte_fallback=True)
MODELS = {
    "llama": dict(model_type="bpe", vocab_size=900, **LLAMA),
    "gemma": dict(model_type="bpe", vocab_size=900, add_dummy_prefix=False, pad_id=0, eos_id=1, bos_id=2, unk_id=3, allow_whitespace_only_pieces=True,
                  user_defined_symbols=["<start_of_turn>", "\n", "\n\n", "\n\n\n"] + ["\u2581" * n for n in (2, 3, 4, 8)], **LLAMA),
    "plain-bpe": dict(model_type="bpe", vocab_size=700, normalization_rule_tsv="TSV", user_defined_symbols=["<sep>", "(c)", "\uff21\uff22"], control_symbols=["<ctl>"]),
    "unigram": dict(model_type="unigram", vocab_size=900, byte_fallback=True, normalization_rule_tsv="TSV"),
    "unigram-suffix": dict(model_type="unigram", vocab_size=700, treat_whitespace_as_suffix=True, user_defined_symbols=["<sep>", "ing", "the"],
                           normalization_rule_name="identity"),
    "unigram-escaped": dict(model_type="unigram", vocab_size=900, byte_fallback=True, normalization_rule_name="identity", remove_extra_whitespaces=False,
                            add_dummy_prefix=False),
}
HAND = ["", " ", "  ", "a", " a", "a ", "  a   b  ", "\n", "\n\n\n\n", "a\nb\r\nc\td", "\u2581", "\u2581a \u2581\u2581b", "Hello, world! 12345 3.14", "na\u00efve caf\u00e9 cafe\u0301 a\u0301e\u0301",
        "\uff21\uff22\uff23 \uff41\uff42", "of\ufb01ce \ufb00", "\u3000x\u00a0y\tz\u3000", "a\u200bb \u200b", "wait\u2026", "\U0001f600\U0001f601 \U0001f468\u200d\U0001f469\u200d\U0001f467", "\u4f60\u597d\u4e16\u754c", "\u0928\u092e\u0938\u094d\u0924\u0947",
        "<s>x</s> <unk> <0x41> <sep><ctl>", "the thing (c) (c)(c) inging thethe", "x\u0000y", "\ue000\U0010ffff", "aaaaaaaaaaaaaaaaaaaa", "                         x", "<start_of_turn>user\nhi\n\n\n\n\n", "    four        eight"]


def texts(seed, count):
    rng = random.Random(seed)
    words = open(os.path.join(CORPUS, "evaluation.txt"), encoding="utf-8").read().split(" ")
    odd = ["\u00e9", "e\u0301", "\uff21", "\ufb01", "\u3000", "  ", "\n", "\n\n", "\t", "\u4e2d\u6587", "\U0001f600", "\u2581", "7", "2026", "\u0416", "\u200b", "<sep>", "(c)", "\u03a9", "\u2026"]
    made = list(HAND)
    while len(made) < count:
        at = rng.randrange(len(words) - 12)
        picked = words[at:at + rng.randrange(1, 12)]
        for _ in range(rng.randrange(4)):
            picked.insert(rng.randrange(len(picked) + 1), rng.choice(odd) * rng.randrange(1, 3))
        made.append("".join(w + rng.choice(["", " ", " ", " ", "  "]) for w in picked))
    return made


def train(name, folder):
    options = dict(COMMON, **MODELS[name])
    if options.get("normalization_rule_tsv"):
        options["normalization_rule_tsv"] = os.path.join(folder, "rules.tsv")
        open(options["normalization_rule_tsv"], "w").write(TSV)
    spm.SentencePieceTrainer.train(model_prefix=os.path.join(folder, name), **options)
    from sentencepiece import sentencepiece_model_pb2
    proto = sentencepiece_model_pb2.ModelProto()
    proto.ParseFromString(open(os.path.join(folder, name + ".model"), "rb").read())
    for field in ("input", "model_prefix", "normalization_rule_tsv"):  # paths of this machine
        proto.trainer_spec.ClearField(field) if field != "normalization_rule_tsv" else proto.normalizer_spec.ClearField(field)
    return proto.SerializeToString(deterministic=True)


def rows_of(tokenizer, seed, count, special=(False, True)):
    rng, rows = random.Random(seed), []
    size = tokenizer.get_vocab_size()
    for i, text in enumerate(texts(seed, count)):
        add = special[i % len(special)]
        tokens = [rng.randrange(size) for _ in range(rng.randrange(12))]
        rows.append(dict(text=text, special=add, ids=tokenizer.encode(text, add_special_tokens=add).ids, tokens=tokens, skip=bool(i % 2),
                         decoded=tokenizer.decode(tokens, skip_special_tokens=bool(i % 2))))
    return rows


def unigram_files(models_):
    from sentencepiece import sentencepiece_model_pb2
    out = []
    for name, fallback, split in (("unigram", True, True), ("unigram", False, False), ("unigram-escaped", True, True)):
        proto = sentencepiece_model_pb2.ModelProto()
        proto.ParseFromString(models_[name])
        tokenizer = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], 0, fallback))
        steps = [normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)] if proto.normalizer_spec.precompiled_charsmap else []
        tokenizer.normalizer = normalizers.Sequence(steps + [normalizers.Replace(Regex(" {2,}"), " ")])
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=split)
        tokenizer.decoder = decoders.Metaspace(replacement="\u2581", prepend_scheme="always")
        tokenizer.add_special_tokens([AddedToken("<s>", normalized=False, special=True), AddedToken("</s>", normalized=False, special=True)])
        tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 2)])
        out.append(dict(tokenizer=json.loads(tokenizer.to_str()), cases=rows_of(tokenizer, 3, 90)))
    return out


def fewer_bytes():
    out = []
    for unknown, digits in ((None, True), ("<unk>", False)):
        tokenizer = Tokenizer(models.BPE(unk_token=unknown, fuse_unk=unknown is not None))
        steps = [pre_tokenizers.Digits(individual_digits=True)] if digits else []
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps + [pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.train([os.path.join(CORPUS, "calibration.txt")],
                        trainers.BpeTrainer(vocab_size=500, special_tokens=["<unk>", "<|im_start|>"], initial_alphabet=[], show_progress=False))
        rows = rows_of(tokenizer, 4, 120)
        known = {tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())}
        byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        for row in rows:
            row["lost"] = 0 if unknown else sum(c not in known for part in row["text"].split("<unk>") if part
                                                for c in byte_level.pre_tokenize_str(part)[0][0])
        out.append(dict(tokenizer=json.loads(tokenizer.to_str()), cases=rows))
    return out


def directories(models_, byte_level):
    """Files of a model directory: what transformers makes of them, where SentencePiece itself has no opinion."""
    from transformers import AutoTokenizer
    token = lambda content, **flags: dict(dict(content=content, lstrip=False, rstrip=False, normalized=False, single_word=False, special=False), **flags)
    json_ = dict(byte_level, added_tokens=byte_level["added_tokens"] + [dict(token("<|strip|>", lstrip=True, special=True), id=500)])
    json_["model"] = dict(json_["model"], unk_token=None)
    texts_ = ["a <think>b</think>", "say  <|im_start|>  the the the", " <|strip|> x<extra>", "[PAD]the\u0120the"]
    cls = dict(tokenizer_class="PreTrainedTokenizerFast")
    configs = [
        {}, dict(added_tokens_decoder={"501": token("<think>"), "502": token("</think>", special=True)}),
        dict(added_tokens_decoder={"1": token("<|im_start|>", lstrip=True, rstrip=True, special=True), "501": token("<think>", normalized=True)}),
        dict(eos_token="the", pad_token="[PAD]", additional_special_tokens=["<think>", "<extra>"]), dict(extra_special_tokens={"image_token": "<extra>"}, video_token="the"),
        dict(added_tokens_decoder={"700": token("<think>")}), dict(eos_token="<|strip|>")]
    others = [{}] * len(configs) + [{"added_tokens.json": {"<think>": 501, "</think>": 502, "<|strip|>": 500}},
                                    {"added_tokens.json": {"<extra>": 501}, "special_tokens_map.json": {"cls_token": "<extra>", "mask_token": token("the", rstrip=True)}}]
    rows = [({"tokenizer.json": json_, "tokenizer_config.json": dict(cls, **config)} | other, None, texts_)
            for config, other in zip(configs + [{}, {}], others)]
    texts_ = ["<s>[INST] hi [/INST] x</s>", "hello", "a<|im_start|>b <|im_start|>c"]
    start = {"800": token("<|im_start|>", special=True)}
    for model, config in (("llama", dict(cls, add_bos_token=True)), ("llama", dict(tokenizer_class="LlamaTokenizer", add_bos_token=True, add_eos_token=True)),
                          ("llama", dict(tokenizer_class="LlamaTokenizer", add_bos_token=True, legacy=True)), ("llama", dict(cls, added_tokens_decoder=start)),
                          ("llama", dict(tokenizer_class="BaichuanTokenizer", bos_token="<s>", eos_token="</s>", add_bos_token=True, additional_special_tokens=["[INST]"])),
                          ("gemma", dict(cls, add_bos_token=True, bos_token="<s>")), ("unigram", dict(cls, add_bos_token=True, add_eos_token=True)),
                          ("plain-bpe", cls)):
        rows.append(({"tokenizer_config.json": config}, model, texts_))
    out = []
    for files, model, texts_ in rows:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                json.dump(content, open(os.path.join(folder, name), "w"))
            if model:
                open(os.path.join(folder, "tokenizer.model"), "wb").write(models_[model])
            tokenizer = AutoTokenizer.from_pretrained(folder)
            out.append(dict(files=files, model=model, cases=[dict(text=text, ids=tokenizer.encode(text)) for text in texts_]))
        if model is None:  # the test puts the same tokenizer.json together
            del out[-1]["model"], files["tokenizer.json"]
    return out


def main():
    with tempfile.TemporaryDirectory() as folder:
        trained = {name: train(name, folder) for name in MODELS}
    files = {name + ".model": data for name, data in trained.items()}
    rows = []
    for name, data in trained.items():
        processor = spm.SentencePieceProcessor(model_proto=data)
        rows += [dict(model=name, text=text, ids=processor.encode(text)) for text in texts(1, 100)
                 if not any(p in text for p in ("<s>", "<ctl>"))]
    lines = lambda items: "".join(json.dumps(item) + "\n" for item in items).encode()
    files["cases.jsonl"] = lines(rows)
    files["unigram.jsonl"] = lines(unigram_files(trained))
    files["fewer_bytes.jsonl"] = lines(fewer_bytes())
    byte_level = json.loads(files["fewer_bytes.jsonl"].split(b"\n")[0])["tokenizer"]
    files["directories.jsonl"] = lines(directories(trained, byte_level))
    for name, data in files.items():
        path = os.path.join(HERE, name)
        if "--check" in sys.argv:
            assert open(path, "rb").read() == data, f"{name} differs"
        else:
            open(path, "wb").write(data)


main()
