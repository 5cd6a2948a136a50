// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Lints one .pt file. First measures its tensors one by one, so that every bad head gets a finding.
// Then runs the strict reader (ReadRotationFile), which may still refuse the file.
#include "zoo/lint/lint_pt.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "capture/files/quote.h"
#include "export/formats/rotation_checks.h"
#include "export/formats/rotation_pair.h"
#include "export/formats/rotation_schemas.h"
#include "linalg/base/error.h"

namespace fs = std::filesystem;

namespace oscar {
namespace {

double OrthogonalityLimit(DType dtype) {
  if (dtype == DType::kBF16) return kMaxBFloat16FileOrthogonality;
  if (dtype == DType::kF16) return kMaxFloat16FileOrthogonality;
  return kMaxFloat32FileOrthogonality;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

const PtTensor* TensorMember(const PtDict& dict, const char* key) {
  const PtValue* value = dict.Find(key);
  return value == nullptr ? nullptr : value->If<PtTensor>();
}

// Returns nothing for shapes that no rotation has; the strict reader reports them.
std::optional<MatrixStack> StackOfTensor(const PtTensor& tensor) {
  if (!IsFloat(tensor.dtype)) return std::nullopt;
  try {
    return StackOf(tensor.shape, "rotation");
  } catch (const InputError&) {
    return std::nullopt;
  }
}

void LintMatrix(const PtFile& file, const PtTensor& tensor, bool orthogonal, const LintPlace& place,
                LintSink* sink) {
  if (const auto stack = StackOfTensor(tensor)) {
    LintRotations(file.Floats(tensor, "rotation"), stack->count, stack->dim,
                  orthogonal ? OrthogonalityLimit(tensor.dtype) : 0, place, sink);
  }
}

// Lints a dict that holds a rotation and its metadata. `orthogonal`: whether the file says that the
// matrix is orthogonal; absent if the file does not say. `fitted`: whether the eigenvalues come
// from data.
void LintEntry(const PtFile& file, const PtDict& entry, std::optional<bool> orthogonal, bool fitted,
               const LintPlace& place, LintSink* sink) {
  const bool undone = entry.Find("q_rotation") != nullptr || entry.Find("o_rotation") != nullptr;
  const PtTensor* rotation = TensorMember(entry, "rotation");
  if (rotation != nullptr) LintMatrix(file, *rotation, orthogonal.value_or(!undone), place, sink);
  for (const char* inverse : {"q_rotation", "o_rotation"}) {
    if (const PtTensor* tensor = TensorMember(entry, inverse))
      LintMatrix(file, *tensor, false, place, sink);
  }
  const PtTensor* eigenvalues = TensorMember(entry, "eigenvalues");
  if (eigenvalues == nullptr || rotation == nullptr || !IsFloat(eigenvalues->dtype)) return;
  const auto stack = StackOfTensor(*rotation);
  const int64_t count = PtFile::Count(*eigenvalues);
  if (!stack || (count != stack->dim && count != stack->count * stack->dim)) return;
  const std::vector<float> values = file.Floats(*eigenvalues, "eigenvalues");
  if (fitted) LintSpectrum(values, count / stack->dim, stack->dim, place, sink);
}

// Returns false and adds a finding if the format version is not supported.
bool LintVersion(const PtDict& root, const LintPlace& place, LintSink* sink) {
  const PtValue* version = root.Find("format_version");
  if (version == nullptr) return true;
  const auto* number = version->If<int64_t>();
  const auto* text = version->If<std::string>();
  if ((number != nullptr && *number >= 1 && *number <= 3) ||
      (text != nullptr && *text == "identity-v1")) {
    return true;
  }
  sink->Add("unknown-version", place, "format_version " + PtToJson(*version).dump(),
            "1, 2, 3 or \"identity-v1\"");
  return false;
}

std::optional<bool> DeclaredOrthogonal(const PtDict& root) {
  const PtDict* transform = nullptr;
  if (const PtValue* value = root.Find("transform")) transform = value->If<PtDict>();
  const PtValue* declared = transform == nullptr ? nullptr : transform->Find("orthogonal");
  const auto* orthogonal = declared == nullptr ? nullptr : declared->If<bool>();
  return orthogonal == nullptr ? std::nullopt : std::optional<bool>(*orthogonal);
}

bool IsDataFree(std::string_view objective) {
  return objective.starts_with("hadamard") || objective.starts_with("identity");
}

void LintContents(const PtFile& file, LintSink* sink) {
  LintPlace place{file.path(), {}, {}, ""};
  const PtValue& root = file.root();
  if (MatchesMoments(root)) return;
  if (const PtDict* layers = DictMember(root, "layers")) {
    const PtDict& top = *root.If<PtDict>();
    if (!LintVersion(top, place, sink)) return;
    const PtValue* objective = top.Find("objective");
    const auto* name = objective == nullptr ? nullptr : objective->If<std::string>();
    const bool fitted = name == nullptr || !IsDataFree(*name);
    for (const auto& [key, value] : layers->entries) {
      place.layer_id = ParseLayerId(PtKeyText(key));
      if (const auto* entry = value->If<PtDict>())
        LintEntry(file, *entry, DeclaredOrthogonal(top), fitted, place, sink);
    }
  } else if (MatchesMlaLayer(root) && root.If<PtDict>() != nullptr) {
    const PtDict& entry = *root.If<PtDict>();
    LintEntry(file, entry, DeclaredOrthogonal(entry), true, place, sink);
  } else if (MatchesFlat(root)) {
    for (const auto& [key, value] : root.If<PtDict>()->entries) {
      place.layer_id = ParseLayerId(PtKeyText(key));
      LintMatrix(file, *value->If<PtTensor>(), true, place, sink);
    }
  } else if (const auto* tensor = root.If<PtTensor>()) {
    LintMatrix(file, *tensor, true, place, sink);
  }
}

std::string WithoutPath(const fs::path& path, std::string text) {
  const std::string prefix = path.string() + ": ";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

char SideOfName(const fs::path& path) {
  const std::string name = path.filename().string();
  if (name.starts_with("k_rotation")) return 'k';
  return name.starts_with("v_rotation") ? 'v' : 0;
}

// Returns the objective in "k_rotation_<objective>.pt", or "".
std::string ObjectiveOfName(const fs::path& path) {
  constexpr size_t kPrefix = std::string_view("k_rotation_").size();
  const std::string stem = path.stem().string();
  return SideOfName(path) != 0 && stem.size() > kPrefix ? stem.substr(kPrefix) : "";
}

void LintName(const PtFacts& facts, LintSink* sink) {
  const LintPlace place{facts.path, {}, {}, ""};
  const RotationFile& file = *facts.file;
  if (facts.mla()) {
    if (!facts.path.stem().string().starts_with("layer_"))
      sink->Add("unusual-name", place, "one layer of a latent cache", "layer_<id>.pt");
    return;
  }
  if (!facts.rotations()) return;
  const char side = SideOfName(facts.path);
  if (side == 0) {
    sink->Add("unusual-name", place, "rotations whose file name does not say K or V",
              "k_rotation*.pt or v_rotation*.pt");
    return;
  }
  const std::string named = ObjectiveOfName(facts.path);
  const bool variant = named.starts_with("oscar2");  // the same name is used for K and V
  const char content_side = ObjectiveSide(file.objective),
             named_side = variant ? char{0} : ObjectiveSide(named);
  const std::string expected = side == 'k' ? "an objective of K (qqt)" : "an objective of V (sst)";
  if (content_side != 0 && content_side != side) {
    sink->Add("name-contradicts-content", place,
              fmt::format("named {}_rotation, but contains {}", side, Quoted(file.objective)),
              expected);
  } else if (named_side != 0 && named_side != side) {
    sink->Add("name-contradicts-content", place,
              fmt::format("{}_rotation with {} in its name", side, Quoted(named)), expected);
  }
  const bool named_per_head = named.find("perhead") != named.npos;
  const bool named_shared = named_side != 0 && !named_per_head;
  if ((named_per_head && !facts.per_head()) || (named_shared && facts.per_head())) {
    sink->Add("name-contradicts-content", place,
              facts.per_head() ? "per-head rotations under a name for shared rotations"
                               : "shared rotations under a name for per-head rotations",
              fmt::format("{}_rotation_{}.pt", side,
                          facts.per_head() ? "perhead"
                          : side == 'k'    ? "qqt_r_h_pbr"
                                           : "sst_r_h_pbr"));
  }
}

bool LooksLikeSafetensors(const fs::path& path) {
  char head[9] = {};
  std::ifstream in(path, std::ios::binary);
  in.read(head, sizeof(head));
  return in.gcount() == sizeof(head) && head[8] == '{' && head[7] == 0;
}

}  // namespace

bool PtFacts::mla() const { return file && file->kind == RotationKind::kMlaLayer; }

bool PtFacts::rotations() const {
  return file && !mla() && !file->layers.empty() && file->layers.front().rotation != nullptr;
}

bool PtFacts::per_head() const {
  return rotations() && file->layers.front().rotation->shape.size() == 3;
}

std::vector<int64_t> PtFacts::ids() const {
  std::vector<int64_t> ids;
  if (file) {
    for (const RotationLayer& layer : file->layers) ids.push_back(layer.layer_id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

PtFacts LintPtFile(const fs::path& path, LintSink* sink) {
  PtFacts facts;
  facts.path = path;
  facts.side = SideOfName(path);
  const LintPlace place{path, {}, {}, ""};
  if (LooksLikeSafetensors(path)) {
    sink->Add("name-contradicts-content", place, "a safetensors file", "an archive of torch.save");
    return facts;
  }
  std::optional<PtFile> file;
  try {
    file = PtFile::Open(path);
  } catch (const InputError& error) {
    sink->Add("unreadable", place, WithoutPath(path, error.what()));
    return facts;
  }
  const size_t before = sink->errors_of(path);
  LintContents(*file, sink);
  try {
    facts.file = ReadRotationFile(*file);
  } catch (const InputError& error) {
    if (sink->errors_of(path) > before) return facts;
    const bool known =
        std::any_of(RotationSchemas().begin(), RotationSchemas().end(),
                    [&](const RotationSchema& schema) { return schema.matches(file->root()); });
    const bool numerical = dynamic_cast<const NumericalError*>(&error) != nullptr;
    sink->Add(!known      ? "unknown-content"
              : numerical ? "not-orthogonal"
                          : "malformed",
              place, WithoutPath(path, error.what()));
    return facts;
  }
  if (facts.side == 0 && !facts.mla()) facts.side = ObjectiveSide(facts.file->objective);
  LintName(facts, sink);
  if (IsDataFree(facts.file->objective) || facts.file->kind == RotationKind::kIdentity) {
    sink->Add("data-free", place, fmt::format("objective {}", Quoted(facts.file->objective)));
  }
  return facts;
}

}  // namespace oscar
