// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests round trips, equal bytes for equal content, and a disk that fills up at any byte.
#include "capture/dump/hdf5_file.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <csignal>
#include <numeric>

#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

namespace oscar {
namespace {

namespace fs = std::filesystem;

template <typename T>
std::vector<T> Iota(size_t count, T first = 0) {
  std::vector<T> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

template <typename T>
std::span<const T> View(const std::vector<T>& values) {
  return values;
}

TEST(Hdf5, RoundTripsEveryType) {
  const fs::path path = TestScratch("hdf5") / "a.h5";
  Hdf5Writer writer(path);
  writer.Write("/f64", {3, 2}, View(Iota<double>(6, 0.5)));
  writer.Write("/f32", {6}, View(Iota<float>(6, -2.5f)));
  writer.Write("/f16", {2}, View(std::vector<Float16>{{0x3c00}, {0xfbff}}));  // 1 and -65504
  writer.Write("/deep/er/i64", {1, 2, 3}, View(Iota<int64_t>(6, -(int64_t{1} << 60))));
  writer.Write("/deep/i32", {6}, View(Iota<int32_t>(6, -3)));
  writer.Write("deep/u16", {2, 3}, View(Iota<uint16_t>(6, 65530)), {.deflate_level = 6});
  writer.Write("/u8", {6, 1}, View(Iota<uint8_t>(6, 250)));
  writer.Write("/none", {0, 5}, std::span<const double>());
  writer.CreateGroup("/empty/group");
  writer.CreateGroup("/deep");  // exists already
  writer.Commit();

  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.Read<double>("/f64", {3, 2}), Iota<double>(6, 0.5));
  EXPECT_EQ(reader.Read<double>("f64", {-1, 2}), Iota<double>(6, 0.5));
  EXPECT_EQ(reader.Read<float>("/f32", {6}), Iota<float>(6, -2.5f));
  EXPECT_EQ(reader.Read<Float16>("/f16", {2}), (std::vector<Float16>{{0x3c00}, {0xfbff}}));
  EXPECT_EQ(reader.Read<int64_t>("/deep/er/i64", {1, 2, 3}), Iota<int64_t>(6, -(int64_t{1} << 60)));
  EXPECT_EQ(reader.Read<int32_t>("/deep/i32", {6}), Iota<int32_t>(6, -3));
  EXPECT_EQ(reader.Read<uint16_t>("/deep/u16", {2, 3}), Iota<uint16_t>(6, 65530));
  EXPECT_EQ(reader.Read<uint8_t>("/u8", {6, 1}), Iota<uint8_t>(6, 250));
  EXPECT_TRUE(reader.Read<double>("/none", {0, 5}).empty());
  EXPECT_EQ(reader.Children("/"),
            (std::vector<std::string>{"deep", "empty", "f16", "f32", "f64", "none", "u8"}));
  EXPECT_EQ(reader.Children("/deep/"), (std::vector<std::string>{"er", "i32", "u16"}));
  EXPECT_TRUE(reader.Children("/empty/group").empty());
  EXPECT_TRUE(reader.Exists("/deep/er") && reader.IsGroup("/deep/er"));
  EXPECT_TRUE(reader.Exists("/f64") && !reader.IsGroup("/f64"));
  EXPECT_FALSE(reader.Exists("/f65"));
  EXPECT_EQ(reader.dataset("/none").shape, (Hdf5Shape{0, 5}));
  EXPECT_EQ(reader.dataset("/deep/u16").type, Hdf5Type::kUInt16);
}

TEST(Hdf5, ReadRefusesAnotherTypeOrShape) {
  const fs::path path = TestScratch("hdf5") / "a.h5";
  Hdf5Writer writer(path);
  writer.Write("/g/a", {3, 2}, View(Iota<double>(6)));
  writer.Commit();
  const Hdf5Reader reader(path);
  EXPECT_THROW(reader.Read<float>("/g/a", {3, 2}), InputError);
  EXPECT_THROW(reader.Read<double>("/g/a", {2, 3}), InputError);
  EXPECT_THROW(reader.Read<double>("/g/a", {6}), InputError);
  EXPECT_THROW(reader.Read<double>("/g", {6}), InputError);
  EXPECT_THROW(reader.Children("/g/a"), InputError);
  EXPECT_THROW(reader.IntAttribute("/g/a", "none"), InputError);
  const std::string error = ErrorOf<InputError>([&] { reader.Read<float>("/g/a", {-1, 3}); });
  EXPECT_EQ(error, path.string() + ": /g/a: expected float32 [-1, 3], found float64 [3, 2]");
}

TEST(Hdf5, RowSlabsInAnyOrderAndSize) {
  const fs::path path = TestScratch("hdf5") / "a.h5";
  constexpr int64_t kRows = 1000, kColumns = 300;  // about 5 chunks of 512 KiB
  const auto values = Iota<double>(kRows * kColumns);
  Hdf5Writer writer(path);
  writer.Declare("/a", Hdf5Type::kFloat64, {kRows, kColumns});
  for (const auto& [first, last] : {std::pair(700, 1000), std::pair(0, 1), std::pair(1, 700)}) {
    writer.WriteRows("/a", first,
                     View(values).subspan(first * kColumns, (last - first) * kColumns));
  }
  writer.Commit();
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.Read<double>("/a", {kRows, kColumns}), values);
  std::vector<double> rows(3 * kColumns);
  reader.ReadRows<double>("/a", {-1, kColumns}, 217, rows);
  EXPECT_TRUE(std::ranges::equal(rows, View(values).subspan(217 * kColumns, 3 * kColumns)));
  EXPECT_THROW(reader.ReadRows<double>("/a", {-1, kColumns}, 998, rows), InputError);
  EXPECT_THROW(reader.ReadRows<double>("/a", {-1, kColumns}, -1, rows), InputError);
}

TEST(Hdf5, RowsLargerThanAChunk) {
  const fs::path path = TestScratch("hdf5") / "a.h5";
  const auto values = Iota<float>(3 * 400'000);
  Hdf5Writer writer(path);
  writer.Declare("/a", Hdf5Type::kFloat32, {3, 2, 200'000});
  for (int64_t row = 0; row < 3; ++row) {
    writer.WriteRows("/a", row, View(values).subspan(row * 400'000, 400'000));
  }
  writer.Commit();
  EXPECT_EQ(Hdf5Reader(path).Read<float>("/a", {3, 2, 200'000}), values);
}

TEST(Hdf5, Attributes) {
  const fs::path path = TestScratch("hdf5") / "a.h5";
  Hdf5Writer writer(path);
  writer.Write("/g/a", {1}, View(Iota<double>(1)));
  writer.SetAttribute("/", "format", "oscar-dump");
  writer.SetAttribute("/g", "empty", "");
  writer.SetAttribute("/g/a", "dtype", "bf16 é");
  writer.SetAttribute("/g/a", "count", int64_t{-5});
  writer.SetAttribute("/g", "scale", 0.1);
  writer.Commit();
  const Hdf5Reader reader(path);
  EXPECT_EQ(reader.StringAttribute("/", "format"), "oscar-dump");
  EXPECT_EQ(reader.StringAttribute("/g", "empty"), "");
  EXPECT_EQ(reader.StringAttribute("/g/a", "dtype"), "bf16 é");
  EXPECT_EQ(reader.IntAttribute("g/a", "count"), -5);
  EXPECT_EQ(reader.DoubleAttribute("/g", "scale"), 0.1);
  EXPECT_TRUE(reader.HasAttribute("/g", "scale"));
  EXPECT_FALSE(reader.HasAttribute("/g", "count"));
  EXPECT_THROW(reader.IntAttribute("/g", "scale"), InputError);
  EXPECT_THROW(reader.DoubleAttribute("/g/a", "count"), InputError);
  EXPECT_THROW(reader.StringAttribute("/g/a", "count"), InputError);
}

// Writes datasets of several kinds and an attribute. The row slabs leave the last chunk partly
// unused.
void WriteSample(Hdf5Writer& writer, size_t rows) {
  const auto values = Iota<double>(rows * 100);
  writer.Declare("/layer/0/cov", Hdf5Type::kFloat64, {static_cast<int64_t>(rows), 100});
  writer.WriteRows("/layer/0/cov", 0, View(values));
  writer.Write("/layer/0/packed", {static_cast<int64_t>(rows), 100}, View(values),
               {.deflate_level = 4});
  writer.Write("/counts", {5}, View(Iota<int64_t>(5)));
  writer.SetAttribute("/", "format", "sample");
}

TEST(Hdf5, EqualContentGivesEqualBytes) {
  const fs::path dir = TestScratch("hdf5");
  std::string bytes[2];
  for (int i = 0; i < 2; ++i) {
    // Fresh memory has a different pattern each time, and the clock shows another second. Neither
    // may affect the file.
    mallopt(M_PERTURB, i == 0 ? 0x55 : 0x3C);
    Hdf5Writer writer(dir / "same.h5");
    WriteSample(writer, 900);
    writer.Commit();
    bytes[i] = ReadText(dir / "same.h5");
    mallopt(M_PERTURB, 0);
    if (i == 0) {
      const timespec second{1, 10'000'000};
      nanosleep(&second, nullptr);
    }
  }
  ASSERT_FALSE(bytes[0].empty());
  EXPECT_TRUE(bytes[0] == bytes[1]);
}

TEST(Hdf5, TheFileIsSeenOnlyOnCommit) {
  const fs::path dir = TestScratch("hdf5");
  const auto entries = [&] {
    return std::distance(fs::directory_iterator(dir), fs::directory_iterator());
  };
  {
    Hdf5Writer writer(dir / "a.h5");
    WriteSample(writer, 1);
    EXPECT_FALSE(fs::exists(dir / "a.h5"));
  }
  EXPECT_EQ(entries(), 0);
  for (const size_t rows : {1, 2}) {  // the second file replaces the first
    Hdf5Writer writer(dir / "a.h5");
    WriteSample(writer, rows);
    writer.Commit();
    EXPECT_EQ(Hdf5Reader(dir / "a.h5").dataset("/layer/0/cov").shape[0],
              static_cast<int64_t>(rows));
  }
  EXPECT_EQ(entries(), 1);
  EXPECT_THROW(Hdf5Writer(dir / "none/a.h5"), ResourceError);
}

TEST(Hdf5, WrongUseIsABug) {
  const fs::path dir = TestScratch("hdf5");
  const auto values = Iota<double>(4);
  const auto with_writer = [&](auto use) {
    Hdf5Writer writer(dir / "a.h5");
    use(writer);
  };
  EXPECT_DEATH(with_writer([&](Hdf5Writer& w) { w.Write("/a", {3}, View(values)); }), "bug");
  EXPECT_DEATH(with_writer([&](Hdf5Writer& w) { w.Write("/a", {}, View(values)); }), "bug");
  EXPECT_DEATH(with_writer([&](Hdf5Writer& w) { w.WriteRows("/a", 0, View(values)); }), "bug");
  EXPECT_DEATH(with_writer([&](Hdf5Writer& w) {
                 w.Declare("/a", Hdf5Type::kFloat32, {4});
                 w.WriteRows("/a", 0, View(values));
               }),
               "bug");
  EXPECT_DEATH(with_writer([&](Hdf5Writer& w) {
                 w.Declare("/a", Hdf5Type::kFloat64, {5});
                 w.WriteRows("/a", 0, View(values));
                 w.Commit();
               }),
               "bug");
}

// Limits the size of all files of this process, so that writes past the limit fail as on a full
// disk.
TEST(Hdf5, FullDiskAnywhereIsAResourceErrorAndLeavesNothing) {
  const fs::path dir = TestScratch("hdf5");
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  const auto write = [&] {
    Hdf5Writer writer(dir / "a.h5");
    WriteSample(writer, 2000);
    writer.Commit();
  };
  write();
  const uint64_t size = fs::file_size(dir / "a.h5");
  const std::string whole = ReadText(dir / "a.h5");
  size_t refused = 0;
  for (uint64_t room = 0; room < size; room += room < 4096 || room + 4096 > size ? 97 : 50'021) {
    std::string message;
    const rlimit limit{room, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write();
    } catch (const ResourceError& error) {
      message = error.what();
    }
    setrlimit(RLIMIT_FSIZE, &old);
    ASSERT_TRUE(Says(message, (dir / "a.h5").string())) << room;
    ASSERT_TRUE(Says(message, "File too large")) << room;
    ++refused;
    ASSERT_TRUE(ReadText(dir / "a.h5") == whole) << "the old file, byte for byte, at " << room;
    ASSERT_EQ(std::distance(fs::directory_iterator(dir), fs::directory_iterator()), 1);
  }
  EXPECT_GT(refused, 50u);
}

}  // namespace
}  // namespace oscar
