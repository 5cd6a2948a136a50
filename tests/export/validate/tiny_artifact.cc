// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/export/validate/tiny_artifact.h"

#include <cstring>
#include <memory>
#include <span>

#include "calib/job/layer_file.h"
#include "calib/run/calibrate.h"
#include "calib/run/provenance.h"
#include "capture/files/atomic_file.h"
#include "capture/files/digest_json.h"
#include "capture/text/data/data_source.h"
#include "capture/text/data/packing.h"
#include "export/artifact/artifact_format.h"
#include "export/artifact/artifact_writer.h"
#include "tests/export/artifact/sample_artifact.h"
#include "tests/support/test_data.h"

namespace fs = std::filesystem;

namespace oscar {

TinyModel::TinyModel() : TinyModel(TestData("tiny-qwen3/config.json").parent_path()) {}

TinyModel::TinyModel(fs::path changed)
    : directory(std::move(changed)),
      spec(ReadModelSpec(directory)),
      checkpoint(Checkpoint::Open(directory)) {}

std::vector<std::vector<int32_t>> TinyTexts(int which, int64_t sequences, int64_t length) {
  const TinyModel model;
  const Tokenizer tokenizer = Tokenizer::Load(model.directory / "tokenizer.json");
  DataOptions options;
  options.token_budget = sequences * length;
  options.max_sequence = length;
  options.builtin = which == 0 ? BuiltinText::kCalibration : BuiltinText::kEvaluation;
  options.pack = FindSeparator(model.directory, &tokenizer);
  std::vector<std::vector<int32_t>> texts;
  for (const Document& document : LoadData(options, &tokenizer, model.spec.vocab_size).documents)
    texts.push_back(document.ids);
  return texts;
}

fs::path TinyArtifactOf(const TinyModel& model, const std::string& name) {
  const fs::path scratch = TestScratch(name);
  CalibrationInput input;
  input.source = std::make_shared<ModelSource>(model.checkpoint, model.spec, TinyTexts(0, 4, 1024),
                                               at::kCPU, at::kFloat, CalibrationLoopOptions());
  input.options.clip.mode = ClipMode::kFixed;
  input.options.held_out = 0;
  JobDirectory job(scratch / "job", {}, false);
  RunCalibration(input, job, {});
  WriteArtifact(scratch / "artifact", SampleInfo(), {model.spec.layers.size(), [&](size_t index) {
                                                       return ReadLayerFile(job.LayerPath(index));
                                                     }});
  return scratch / "artifact";
}

const fs::path& TinyArtifact() {
  static const fs::path path = TinyArtifactOf(TinyModel(), "tiny_artifact");
  return path;
}

fs::path SpoiledArtifact(const std::string& name,
                         const std::function<void(RotationTensors&)>& change) {
  const fs::path path = TestScratch("spoiled_" + name) / "artifact";
  fs::copy(TinyArtifact(), path);
  RotationTensors tensors;
  std::vector<SafetensorsWriter::Declaration> declarations;
  {
    const SafetensorsFile file = SafetensorsFile::Open(path / kRotationsFile);
    for (const auto& [tensor, info] : file.tensors()) {
      const TensorView view = file.tensor(tensor);
      std::vector<float>& values = tensors[tensor];
      values.resize(view.data.size() / sizeof(float));
      std::memcpy(values.data(), view.data.data(), view.data.size());
      declarations.push_back({tensor, view.dtype, view.shape});
    }
  }
  change(tensors);
  fs::remove(path / kRotationsFile);
  SafetensorsWriter writer(path / kRotationsFile, declarations, {});
  for (const auto& declaration : declarations)
    writer.Write(declaration.name, std::as_bytes(std::span(tensors.at(declaration.name))));
  writer.Commit();
  Json manifest = ReadJsonFile((path / kManifestFile).string());
  manifest["files"][kRotationsFile] = DigestToJson(DigestFile(path / kRotationsFile));
  WriteFileAtomically(path / kManifestFile, CanonicalJson(manifest));
  return path;
}

}  // namespace oscar
