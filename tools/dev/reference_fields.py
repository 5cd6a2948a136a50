#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oscar authors
# SPDX-License-Identifier: Apache-2.0
"""Prints capture/model/spec/reference_fields.inc: of each configuration class of transformers that oscar reads, the fields that its
modeling code never reads, and the defaults of the fields that a nested text_config may leave out.

    tools/dev/reference_fields.py PATH/site-packages/transformers > capture/model/spec/reference_fields.inc

Parses the sources and imports nothing, so that a downloaded wheel is enough. A field counts as read if its name is an attribute or
a string anywhere in the family's modeling files, in the methods of its configuration class, or in what all models share. The
pinned version is kVersion; another one is refused."""
import ast
import json
import pathlib
import re
import sys

kVersion = "5.24.0"
kShared = ("activations.py", "cache_utils.py", "configuration_utils.py", "masking_utils.py", "modeling_flash_attention_utils.py",
           "modeling_layers.py", "modeling_rope_utils.py", "modeling_utils.py", "conversion_mapping.py", "core_model_loading.py",
           "integrations")
kTheta = 10000.0  # the default in RotaryEmbeddingConfigMixin
# Fields that no forward pass depends on. The wrapping configuration decides whether the head is tied.
kDropped = {"tie_word_embeddings", "use_cache", "initializer_range", "pretraining_tp", "output_router_logits", "router_aux_loss_coef", "router_jitter_noise"}


def names(tree, of_configs_alone=False):
    """Yields attributes that are read, and strings that may name one. `of_configs_alone`: only of expressions like self.config."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
            if not of_configs_alone or re.search(r"(config|self)\)?$", ast.unparse(node.value)):
                yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def parse(path):
    return ast.parse(path.read_text())


def sources(root, name):
    return sorted((root / name).rglob("*.py")) if (root / name).is_dir() else [root / name]


def literal(node):
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


class ConfigClass:
    """The fields of one class, including those of its bases in the same file."""

    def __init__(self, name, classes):
        node = classes[name]
        self.fields, self.reads, self.theta, self.aliases = {}, set(), None, {}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes:
                other = ConfigClass(base.id, classes)
                self.fields.update(other.fields)
                self.reads |= other.reads
                self.theta = other.theta
                self.aliases.update(other.aliases)
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and "ClassVar" not in ast.unparse(part.annotation):
                self.fields[part.target.id] = literal(part.value) if part.value else None
            elif isinstance(part, ast.FunctionDef):
                self.reads |= set(names(part))
            elif isinstance(part, ast.Assign) and part.targets[0].id == "default_theta":
                self.theta = literal(part.value)
            elif isinstance(part, ast.Assign) and part.targets[0].id == "attribute_map":
                self.aliases = literal(part.value) or {}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    version = re.search(r'__version__ = "(.+)"', (root / "__init__.py").read_text()).group(1)
    if version != kVersion:
        sys.exit(f"{root}: transformers {version}; the table is of {kVersion}")
    families = pathlib.Path(__file__).parent.parent.parent / "capture/model/families"
    rows = "".join(path.read_text() for path in families.glob("*.cc"))  # other lists of three names are not model types
    wanted = sorted({name for name in re.findall(r'\{"(\w+)",\s*"\w+",\s*(?:Read\w+|"\w+")\}', rows)} | {"gemma4_unified_text"})
    auto = parse(root / "models/auto/auto_mappings.py")
    # name -> class, as pairs in lists
    class_of = {}
    for node in ast.walk(auto):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2 and all(isinstance(e, ast.Constant) for e in node.elts):
            if str(node.elts[1].value).endswith("Config"):
                class_of.setdefault(node.elts[0].value, node.elts[1].value)
    file_of = {}
    for path in sorted(root.glob("models/*/configuration_*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(), re.M):
            file_of.setdefault(name, path)
    base_file = parse(root / "configuration_utils.py")
    base = ConfigClass("PreTrainedConfig", {n.name: n for n in ast.walk(base_file) if isinstance(n, ast.ClassDef)})
    shared = {name for part in kShared for path in sources(root, part) for name in names(parse(path), of_configs_alone=True)}
    print("// SPDX-FileCopyrightText: 2026 The oscar authors\n// SPDX-License-Identifier: Apache-2.0\n//")
    print(f"// Made by tools/dev/reference_fields.py from transformers {kVersion}: change that instead.")
    for model_type in wanted:
        if model_type not in class_of:
            continue
        path = file_of[class_of[model_type]]
        tree = parse(path)
        config = ConfigClass(class_of[model_type], {n.name: n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)})
        reads = set(config.reads) | shared | set(config.aliases.values())
        for modeling in path.parent.glob("modeling_*.py"):
            reads |= set(names(parse(modeling)))
        own = {name: value for name, value in config.fields.items()
               if name not in base.fields and name not in kDropped and not name.endswith("_token_id")}
        unread = sorted(name for name in own if name not in reads)
        defaults = {name: value for name, value in own.items()
                    if isinstance(value, (bool, int, float, str)) and "dropout" not in name and "_config" not in name
                    and name not in unread}
        theta = config.theta or kTheta
        if "num_hidden_layers" in own and "rope_parameters" in own and isinstance(theta, float):
            defaults["rope_theta"] = theta
        text = json.dumps(defaults, separators=(",", ":")) if "num_hidden_layers" in own else ""
        if unread or text:
            print(f'{{"{model_type}", "{" ".join(unread)}", R"({text})"}},')


main()
