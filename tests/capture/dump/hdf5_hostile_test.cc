// SPDX-FileCopyrightText: 2026 The oscar authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests files built with HDF5's C API that HDF5 itself can read but our reader must refuse, and
// damaged copies of our own files.
#include <gtest/gtest.h>
#include <hdf5.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>

#include "capture/dump/hdf5_file.h"
#include "capture/files/sandbox.h"
#include "linalg/base/error.h"
#include "tests/support/said.h"
#include "tests/support/test_data.h"

#ifdef __SANITIZE_ADDRESS__
// HDF5 1.10.8 leaks about 400 bytes for each damaged file that it refuses to open (November 2026).
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
#endif

namespace oscar {
namespace {

namespace fs = std::filesystem;

// Creates a file, fills it with `build`, and closes it with all objects that are still open.
fs::path Build(const std::function<void(hid_t)>& build) {
  const fs::path path = TestScratch("hostile") / "h.h5";
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  EXPECT_GE(file, 0);
  build(file);
  EXPECT_GE(H5Fclose(file), 0);
  H5Pclose(access);
  return path;
}

// Writes a dataset of `count` doubles with the given creation properties.
hid_t Doubles(hid_t file, const char* name, hsize_t count, hid_t creation = H5P_DEFAULT,
              hid_t type = H5T_IEEE_F64LE) {
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  EXPECT_GE(dataset, 0);
  const std::vector<double> values(count, 1.5);
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  return dataset;
}

std::string Refusal(const fs::path& path) {
  return ErrorOf<InputError>([&] { const Hdf5Reader reader(path); });
}

void ExpectHostileRefused(const char* reason, const std::function<void(hid_t)>& build) {
  const std::string refusal = Refusal(Build(build));
  EXPECT_TRUE(Says(refusal, reason));
}

TEST(HostileHdf5, AcceptsAPlainForeignFile) {
  const fs::path path = Build([](hid_t file) {
    Doubles(file, "a", 10);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_layout(creation, H5D_COMPACT);
    Doubles(file, "compact", 10, creation);
  });
  EXPECT_EQ(Hdf5Reader(path).Read<double>("/a", {10}), std::vector<double>(10, 1.5));
  EXPECT_EQ(Hdf5Reader(path).Read<double>("/compact", {10}), std::vector<double>(10, 1.5));
}

TEST(HostileHdf5, LinksThatAreNotHard) {
  ExpectHostileRefused("/s: is a soft link", [](hid_t file) {
    Doubles(file, "a", 10);
    H5Lcreate_soft("/a", file, "s", H5P_DEFAULT, H5P_DEFAULT);
  });
  ExpectHostileRefused("a soft link", [](hid_t file) {
    H5Lcreate_soft("/nowhere", file, "s", H5P_DEFAULT, H5P_DEFAULT);
  });
  ExpectHostileRefused("an external link", [](hid_t file) {
    H5Lcreate_external("/etc/passwd", "/", file, "e", H5P_DEFAULT, H5P_DEFAULT);
  });
  ExpectHostileRefused("form a cycle", [](hid_t file) {
    const hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_hard(file, "/", group, "up", H5P_DEFAULT, H5P_DEFAULT);
  });
  ExpectHostileRefused("neither a group nor a dataset", [](hid_t file) {
    H5Tcommit2(file, "t", H5Tcopy(H5T_NATIVE_INT), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST(HostileHdf5, StorageElsewhere) {
  const fs::path secret = TestScratch("hostile-secret") / "secret";
  std::ofstream(secret) << std::string(80, 's');
  ExpectHostileRefused("external file", [&](hid_t file) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, secret.c_str(), 0, 80);
    Doubles(file, "a", 10, creation);
  });
  ExpectHostileRefused("not a file in the same directory", [](hid_t file) {
    Doubles(file, "a", 10);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t count = 10;
    const hid_t space = H5Screate_simple(1, &count, nullptr);
    H5Pset_virtual(creation, space, "/etc/hostname", "/a", space);
    H5Dcreate2(file, "v", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  });
}

TEST(HostileHdf5, TypesThatAreNotOurs) {
  const auto dataset_of = [](hid_t type) {
    return [type](hid_t file) {
      const hsize_t count = 4;
      H5Dcreate2(file, "a", type, H5Screate_simple(1, &count, nullptr), H5P_DEFAULT, H5P_DEFAULT,
                 H5P_DEFAULT);
    };
  };
  const char* const reason = "element type is not one of";
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, H5T_VARIABLE);
  const hid_t compound = H5Tcreate(H5T_COMPOUND, 8);
  H5Tinsert(compound, "x", 0, H5T_IEEE_F64LE);
  for (const hid_t type : {H5T_IEEE_F64BE, H5T_STD_I8LE, H5T_STD_U32LE, H5T_STD_REF_OBJ, text,
                           compound, H5Tvlen_create(H5T_IEEE_F64LE)}) {
    ExpectHostileRefused(reason, dataset_of(type));
  }
  ExpectHostileRefused("variable length", [text](hid_t file) {
    H5Acreate2(file, "a", text, H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT);
  });
  ExpectHostileRefused("neither numbers nor strings", [](hid_t file) {
    H5Acreate2(file, "a", H5T_STD_REF_OBJ, H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT);
  });
}

TEST(HostileHdf5, FiltersThatAreNotOurs) {
  ExpectHostileRefused("filter 6;", [](hid_t file) {  // the scale-offset filter
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 10;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_scaleoffset(creation, H5Z_SO_FLOAT_DSCALE, 3);
    Doubles(file, "a", 10, creation);
  });
  ExpectHostileRefused("filter 32001;", [](hid_t file) {  // a plugin (Blosc); optional, so writable
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk = 10;
    H5Pset_chunk(creation, 1, &chunk);
    H5Pset_filter(creation, 32001, H5Z_FLAG_OPTIONAL, 0, nullptr);
    const hid_t space = H5Screate_simple(1, &chunk, nullptr);
    H5Dcreate2(file, "a", H5T_IEEE_F64LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  });
}

TEST(HostileHdf5, ShapesTheFileCannotHold) {
  const auto huge = [](hsize_t dim, bool chunked, bool deflate) {
    return [=](hid_t file) {
      const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
      const hsize_t chunk = 1024;
      if (chunked) H5Pset_chunk(creation, 1, &chunk);
      if (deflate) H5Pset_deflate(creation, 9);
      const hid_t space = H5Screate_simple(1, &dim, nullptr);
      H5Dcreate2(file, "a", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    };
  };
  ExpectHostileRefused("the file has", huge(hsize_t{1} << 40, true, false));
  ExpectHostileRefused("the file has", huge(hsize_t{1} << 62, true, true));
  ExpectHostileRefused("the file has", huge(hsize_t{1} << 62, false, false));
  ExpectHostileRefused("are stored; the data was never written", huge(1024, true, false));
  ExpectHostileRefused("are stored; the data was never written", huge(1024, false, false));
  ExpectHostileRefused("overflows", [](hid_t file) {
    const hsize_t dims[] = {hsize_t{1} << 31, hsize_t{1} << 31, 8};
    const hsize_t chunk[] = {1, 1, 1};
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, 3, chunk);
    H5Dcreate2(file, "a", H5T_IEEE_F64LE, H5Screate_simple(3, dims, nullptr), H5P_DEFAULT, creation,
               H5P_DEFAULT);
  });
  ExpectHostileRefused("0 dimensions", [](hid_t file) {
    H5Dcreate2(file, "a", H5T_IEEE_F64LE, H5Screate(H5S_SCALAR), H5P_DEFAULT, H5P_DEFAULT,
               H5P_DEFAULT);
  });
}

void WriteAll(const fs::path& path, const std::string& content) {
  fs::remove(path);  // avoids ext4's flush of truncated files
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

struct Values {
  std::vector<double> plain, packed;
  std::string text;
  bool operator==(const Values&) const = default;
};

// Reads everything in the sample file.
Values ReadSample(const fs::path& path) {
  const Hdf5Reader reader(path);
  return {reader.Read<double>("/layer/0/plain", {20, 3}),
          reader.Read<double>("/layer/0/packed", {50}), reader.StringAttribute("/", "format")};
}

fs::path Sample() {
  const fs::path path = TestScratch("damaged") / "a.h5";
  const std::vector<double> plain(60, 1.25), packed(50, 3.5);
  Hdf5Writer writer(path);
  writer.Write("/layer/0/plain", {20, 3}, std::span<const double>(plain));
  writer.Write("/layer/0/packed", {50}, std::span<const double>(packed), {.deflate_level = 1});
  writer.SetAttribute("/", "format", "sample");
  writer.Commit();
  return path;
}

TEST(DamagedHdf5, NoPrefixIsAccepted) {
  const fs::path path = Sample();
  const std::string whole = ReadText(path);
  for (size_t length = 0; length < whole.size(); ++length) {
    WriteAll(path, whole.substr(0, length));
    ASSERT_THROW(ReadSample(path), InputError) << length;
  }
  WriteAll(path, whole + "x");
  EXPECT_THROW(ReadSample(path), InputError);
}

// Checksums cover data (fletcher32) and metadata (file format 1.10). Bytes that the reader does not
// use may flip, but it must never return a wrong value.
TEST(DamagedHdf5, NoBitFlipGivesAWrongValue) {
  const fs::path path = Sample();
  const std::string whole = ReadText(path);
  const Values expected = ReadSample(path);
  size_t refused = 0;
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t byte, char value) {
    file.seekp(static_cast<std::streamoff>(byte)).put(value).flush();
  };
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    put(bit / 8, static_cast<char>(whole[bit / 8] ^ (1 << bit % 8)));
    try {
      ASSERT_TRUE(ReadSample(path) == expected) << "bit " << bit;
    } catch (const InputError&) {
      ++refused;
    }
    put(bit / 8, whole[bit / 8]);
  }
  EXPECT_GT(refused, 480u * 8) << "at least the data of /layer/0/plain";
}

TEST(DamagedHdf5, WhatIsNotHdf5) {
  const fs::path dir = TestScratch("damaged");
  WriteAll(dir / "text", "hello");
  WriteAll(dir / "user_block", std::string(512, ' ') + ReadText(Build([](hid_t) {})));
  EXPECT_THROW(Hdf5Reader(dir / "text"), InputError);
  EXPECT_THROW(Hdf5Reader(dir / "user_block"), InputError);
  EXPECT_THROW(Hdf5Reader(dir / "none"), InputError);
  EXPECT_THROW(Hdf5Reader{dir}, InputError);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(Hdf5Reader(dir / "pipe"), InputError);
}

// The library itself crashes on these files. In the sandbox's separate process that is an error.
TEST(Hdf5Hostile, WhatKillsTheLibraryIsRefusedByTheSandbox) {
  OSCAR_PACK_OR_SKIP(pack, "hostile_inputs");
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(pack)) {
    if (entry.path().extension() != ".h5") continue;
    ++files;
    const auto look = [&] {
      const Hdf5Reader file(entry.path());
      throw InputError("the library survives it");  // as newer versions do
    };
    EXPECT_THROW(LookInSandbox(look, entry.path().string()), InputError) << entry.path();
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace oscar
