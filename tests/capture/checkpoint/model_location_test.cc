// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests how MODEL on the command line is resolved, with Hugging Face caches built here.
#include "capture/checkpoint/model_location.h"

#include <gtest/gtest.h>

#include <map>

#include "capture/checkpoint/hub_cache.h"
#include "linalg/base/error.h"
#include "tests/capture/checkpoint/checkpoint_files.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMain = "0123456789abcdef0123456789abcdef01234567";
constexpr const char* kOther = "89abcdef0123456789abcdef0123456789abcdef";

Environment Variables(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto it = variables.find(name);
    return it == variables.end() ? std::nullopt : std::optional(it->second);
  };
}

// Writes `content` to blobs/ and links it into the snapshot, as the Hugging Face cache does.
void AddFile(const fs::path& repository, const std::string& commit, const std::string& name,
             const std::string& content) {
  const std::string etag = std::string("etag-") + commit.substr(0, 4) + name;
  WriteText(repository / "blobs" / etag, content);
  fs::create_directories(repository / "snapshots" / commit);
  fs::create_symlink("../../blobs/" + etag, repository / "snapshots" / commit / name);
}

struct Cache {
  fs::path root = TestScratch("hub");
  fs::path repository = root / "models--Qwen--Qwen3-8B";
  Environment environment = Variables({{"HF_HUB_CACHE", root.string()}, {"HOME", "/nonexistent"}});

  Cache() {
    for (const std::string commit : {kMain, kOther}) {
      AddFile(repository, commit, "config.json", "{}");
      WriteOneTensor(root / "weights", "a", commit[0]);
      AddFile(repository, commit, "model.safetensors", ReadText(root / "weights"));
    }
    WriteText(repository / "refs/main", std::string(kMain) + "\n");
    WriteText(repository / "refs/refs/pr/1", kOther);
  }
  fs::path snapshot(const std::string& commit) const { return repository / "snapshots" / commit; }
  std::string Refusal(const std::string& model) const {
    return ErrorOf<InputError>([&] { ResolveModel(model, environment); });
  }
};

TEST(ResolveModel, FollowsRefsAndCommits) {
  const Cache cache;
  const ModelLocation main = ResolveModel("Qwen/Qwen3-8B", cache.environment);
  EXPECT_EQ(main.directory, cache.snapshot(kMain));
  EXPECT_EQ(main.id, "Qwen/Qwen3-8B");
  EXPECT_EQ(main.revision, kMain);
  EXPECT_EQ(ResolveModel("Qwen/Qwen3-8B@main", cache.environment).revision, kMain);
  EXPECT_EQ(ResolveModel("hf://Qwen/Qwen3-8B@refs/pr/1", cache.environment).revision, kOther);
  EXPECT_EQ(ResolveModel(std::string("Qwen/Qwen3-8B@") + kOther, cache.environment).directory,
            cache.snapshot(kOther));
}

TEST(ResolveModel, NeverPicksASnapshotThatNoRefNames) {
  const Cache cache;
  fs::remove(cache.repository / "refs/main");
  const std::string refusal = cache.Refusal("Qwen/Qwen3-8B");
  EXPECT_TRUE(Says(refusal, "refs/main"));
  EXPECT_TRUE(Says(refusal, kOther));
  EXPECT_TRUE(refusal.ends_with("run: hf download Qwen/Qwen3-8B")) << refusal;
  EXPECT_NE(cache.Refusal("Qwen/Qwen3-8B@0123456"), "") << "a short commit is no ref";
  EXPECT_TRUE(
      cache.Refusal("Qwen/Qwen3-8B@v2").ends_with("run: hf download Qwen/Qwen3-8B --revision v2"));
}

TEST(ResolveModel, NamesTheDownloadForWhatIsNotThere) {
  const Cache cache;
  EXPECT_TRUE(cache.Refusal("Qwen/Qwen3-4B").ends_with("run: hf download Qwen/Qwen3-4B"));
  EXPECT_TRUE(cache.Refusal("gpt2").ends_with("run: hf download gpt2"));
  fs::remove_all(cache.snapshot(kMain));
  EXPECT_TRUE(Says(cache.Refusal("Qwen/Qwen3-8B"), kMain));
  WriteText(cache.repository / "refs/main", "not a commit");
  EXPECT_TRUE(Says(cache.Refusal("Qwen/Qwen3-8B"), "expected a commit"));
}

TEST(ResolveModel, IdsWithoutAnOrganisationAndOtherNamesOfSnapshots) {
  const Cache cache;
  fs::rename(cache.repository, cache.root / "models--gpt2");
  const fs::path repository = cache.root / "models--gpt2";
  EXPECT_EQ(ResolveModel("gpt2", cache.environment).id, "gpt2");
  EXPECT_EQ(ResolveModel("gpt2", cache.environment).revision, kMain);
  // Mirrors and scripts may name a snapshot by something other than a commit.
  fs::rename(repository / "snapshots" / kMain, repository / "snapshots/v1.0-mirror");
  WriteText(repository / "refs/main", "v1.0-mirror\n");
  EXPECT_EQ(ResolveModel("gpt2", cache.environment).revision, "v1.0-mirror");
  EXPECT_EQ(ResolveModel("gpt2@v1.0-mirror", cache.environment).revision, "v1.0-mirror");
  EXPECT_EQ(ResolveModel((repository / "snapshots/v1.0-mirror").string(), cache.environment).id,
            "gpt2");
  for (const char* text : {"../../elsewhere", "..", "a/b", ""}) {
    WriteText(repository / "refs/main", text);
    EXPECT_TRUE(Says(cache.Refusal("gpt2"), "expected a commit")) << text;
  }
}

TEST(ResolveModel, AdaptersAndOtherFormatsAreNamed) {
  const Cache cache;
  const fs::path dir = TestScratch("other_formats") / "model";
  for (const auto& [file, way] : {std::pair("consolidated.safetensors", "Mistral's own format"),
                                  {"adapter_config.json", "LoRA adapter"}}) {
    WriteText(dir / file, "x");
    EXPECT_TRUE(Says(cache.Refusal(dir.string()), way));
  }
}

TEST(ResolveModel, IncompleteSnapshotsAreNamed) {
  {
    const Cache cache;
    fs::remove(cache.repository / "blobs" /
               ("etag-" + std::string(kMain, 4) + "model.safetensors"));
    const std::string refusal = cache.Refusal("Qwen/Qwen3-8B");
    EXPECT_TRUE(Says(refusal, "incomplete"));
    EXPECT_TRUE(Says(refusal, "model.safetensors is a link to a file that does not exist"));
    EXPECT_TRUE(Says(refusal, "hf download Qwen/Qwen3-8B"));
  }
  {
    const Cache cache;
    fs::remove(cache.snapshot(kMain) / "config.json");
    EXPECT_TRUE(Says(cache.Refusal("Qwen/Qwen3-8B"), "config.json is missing"));
  }
  {
    const Cache cache;  // the index names a second shard, which was not downloaded
    fs::remove(cache.snapshot(kMain) / "model.safetensors");
    AddFile(cache.repository, kMain, "model.safetensors.index.json",
            R"({"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}})");
    AddFile(cache.repository, kMain, "m-1.safetensors", "x");
    EXPECT_TRUE(Says(cache.Refusal("Qwen/Qwen3-8B"), "m-2.safetensors is missing"));
  }
  {
    const Cache cache;
    fs::remove(cache.snapshot(kMain) / "model.safetensors");
    EXPECT_TRUE(Says(cache.Refusal("Qwen/Qwen3-8B"), "no weights"));
  }
}

TEST(ResolveModel, IdsAndRevisionsCannotLeaveTheCache) {
  const Cache cache;
  WriteText(cache.repository / "secret", kMain);
  for (const std::string model :
       {"../Qwen3-8B", "Qwen/../Qwen3-8B", "Qwen/Qwen3-8B@../secret", "Qwen/Qwen3-8B@/etc/passwd",
        "Qwen/Qwen3-8B@a/../../secret", "Qwen/Qwen3-8B@", "Qwen/Qwen3-8B@a//b", "a/b/c", "a--b/c",
        "-a/b", "a/b.", "", "a b", "/no/such/directory"}) {
    EXPECT_TRUE(Says(cache.Refusal(model), "neither an existing directory")) << model;
  }
  EXPECT_NE(cache.Refusal(std::string("gpt2\0x", 6)), "");
}

TEST(ResolveModel, ADirectoryGoesBeforeAnId) {
  const Cache cache;
  const fs::path dir = TestScratch("directory") / "Qwen/Qwen3-8B";
  WriteText(dir / "config.json", "{}");
  WriteOneTensor(dir / "model.safetensors", "a", 'a');
  const fs::path old = fs::current_path();
  fs::current_path(dir.parent_path().parent_path());
  const ModelLocation found = ResolveModel("Qwen/Qwen3-8B", cache.environment);
  fs::current_path(old);
  EXPECT_EQ(found.directory, "Qwen/Qwen3-8B");
  EXPECT_EQ(found.id, "Qwen3-8B");
  EXPECT_EQ(found.revision, "");
  EXPECT_EQ(ResolveModel(dir.string() + "/", cache.environment).id, "Qwen3-8B");
}

TEST(ResolveModel, DirectoriesMustBeWhole) {
  const Cache cache;
  const fs::path dir = TestScratch("directory") / "model";
  WriteText(dir / "config.json", "{}");
  EXPECT_TRUE(Says(cache.Refusal(dir.string()), "no weights"));
  WriteOneTensor(dir / "model.safetensors", "a", 'a');
  EXPECT_EQ(cache.Refusal(dir.string()), "");
  EXPECT_TRUE(Says(cache.Refusal((dir / "config.json").string()), "is a file"));
  fs::create_symlink("nowhere", dir / "tokenizer.json");
  EXPECT_TRUE(Says(cache.Refusal(dir.string()), "tokenizer.json is a link"));
}

TEST(ResolveModel, ASnapshotGivenAsDirectoryKeepsItsIdentity) {
  const Cache cache;
  const ModelLocation found = ResolveModel(cache.snapshot(kOther).string(), cache.environment);
  EXPECT_EQ(found.id, "Qwen/Qwen3-8B");
  EXPECT_EQ(found.revision, kOther);
}

TEST(HubCacheRoot, VariablesInTheirOrder) {
  std::map<std::string, std::string> set = {{"HF_HUB_CACHE", "/a"},
                                            {"HUGGINGFACE_HUB_CACHE", "/b"},
                                            {"HF_HOME", "/c"},
                                            {"XDG_CACHE_HOME", "/d"},
                                            {"HOME", "/e"}};
  const auto expect_then_drop = [&](const char* root, const char* variable) {
    EXPECT_EQ(HubCacheRoot(Variables(set)), root);
    set[variable] = "";  // empty counts as unset
    EXPECT_NE(HubCacheRoot(Variables(set)), root);
    set.erase(variable);
  };
  expect_then_drop("/a", "HF_HUB_CACHE");
  expect_then_drop("/b", "HUGGINGFACE_HUB_CACHE");
  expect_then_drop("/c/hub", "HF_HOME");
  expect_then_drop("/d/huggingface/hub", "XDG_CACHE_HOME");
  EXPECT_EQ(HubCacheRoot(Variables(set)), "/e/.cache/huggingface/hub");
  EXPECT_THROW(HubCacheRoot(Variables({})), InputError);
}

TEST(HubCacheRoot, ExpandsHomeAndVariables) {
  const auto root = [](const std::string& value) {
    return HubCacheRoot(
               Variables({{"HF_HUB_CACHE", value}, {"HOME", "/home/u"}, {"DATA", "/data"}}))
        .string();
  };
  EXPECT_EQ(root("~/hub"), "/home/u/hub");
  EXPECT_EQ(root("~"), "/home/u");
  EXPECT_EQ(root("$DATA/hub"), "/data/hub");
  EXPECT_EQ(root("${DATA}x/${HOME}"), "/datax//home/u");
  EXPECT_EQ(root("/a/$NONE/${NONE}/$/${/~"), "/a/$NONE/${NONE}/$/${/~");
  EXPECT_EQ(root("~other/x"), "~other/x");
}

}  // namespace
}  // namespace oscar
