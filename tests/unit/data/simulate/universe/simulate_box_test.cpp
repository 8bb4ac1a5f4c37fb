// SPDX-License-Identifier: Apache-2.0
// The files of simulated boxes: layout, twins, bounds, bytes independent of threads and memory, and errors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "data/formats/hdf5/hdf5_file.h"
#include "data/formats/npy_file.h"
#include "data/simulate/universe/nbody.h"
#include "number_close.h"

namespace welkin::data::simulate {
namespace {

using welkin::tests::rounds_to;

class SimulateBox : public testing::Test {
 protected:
  SimulateBox() {
    root_ = std::filesystem::temp_directory_path() / ("welkin_simulate_box_" + std::to_string(::getpid()));
    std::filesystem::remove_all(root_);
  }
  ~SimulateBox() override { std::filesystem::remove_all(root_); }

  NbodyOptions small(const std::string& folder) const {
    NbodyOptions options;
    options.out = root_ / folder;
    options.edge = 24;
    options.edge_valid = 16;
    options.steps = 6;
    return options;
  }
  static bool simulate(const NbodyOptions& options, int threads = 2) {
    ThreadPool pool({.num_threads = threads});
    return simulate_nbody(options, pool, [](std::string_view, int64_t, int64_t) {});
  }
  std::vector<float> values(const std::string& folder, const std::string& name, int64_t channels, int64_t edge,
                            const std::string& stem = "downsamp_2048crop_train") const {
    std::vector<float> all(static_cast<size_t>(channels * edge * edge * edge));
    Hdf5File::open(root_ / folder / (stem + ".h5")).read(name, {0, 0, 0, 0}, {channels, edge, edge, edge}, std::span<float>(all));
    return all;
  }
  std::string bytes(const std::string& folder, const std::string& name) const {
    return read_file(root_ / folder / name, 1 << 28);
  }

  std::filesystem::path root_;
};

TEST_F(SimulateBox, WritesTheFilesThatTheTutorialsName) {
  ASSERT_TRUE(simulate(small("a")));
  for (const char* stem : {"downsamp_2048crop_train", "downsamp_1024crop_valid"}) {
    const int64_t edge = stem[9] == '2' ? 24 : 16;
    const Hdf5File file = Hdf5File::open(root_ / "a" / (std::string(stem) + ".h5"));
    EXPECT_EQ(file.dataset("Nbody").shape, (Extents{4, edge, edge, edge}));
    EXPECT_EQ(file.dataset("Hydro").shape, (Extents{5, edge, edge, edge}));
    EXPECT_EQ(file.strings("Hydro", "channels").at(0), "gas_density");
    EXPECT_EQ(file.strings("/", "simulation").at(0), "nbody");
    EXPECT_EQ(NpyFile(root_ / "a" / (std::string(stem) + "_data.npy")).header().shape,
              (std::vector<int64_t>{edge, edge, edge, 4}));
    const std::vector<double> label = NpyFile(root_ / "a" / (std::string(stem) + "_label.npy")).read_doubles(1 << 22);
    const std::vector<float> hydro = values("a", "Hydro", 5, edge, stem);
    const int64_t cells = edge * edge * edge;
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t i = 0; i < cells; ++i)
        ASSERT_EQ(static_cast<float>(label[static_cast<size_t>(i * 5 + c)]), hydro[static_cast<size_t>(c * cells + i)]);
    }
  }
  EXPECT_TRUE(std::filesystem::exists(root_ / "a" / "simulation.json"));
  EXPECT_FALSE(simulate(small("a")));  // there already
}

TEST_F(SimulateBox, FieldsAreScaledAndTheGasKeepsTheMass) {
  ASSERT_TRUE(simulate(small("a")));
  const std::vector<float> nbody = values("a", "Nbody", 4, 24), hydro = values("a", "Hydro", 5, 24);
  for (const auto* field : {&nbody, &hydro}) {
    for (const float v : *field) ASSERT_LE(std::abs(v), 1.0f);
  }
  const size_t cells = 24 * 24 * 24;
  double mass = 0.0, drift[3] = {0, 0, 0}, least = 1.0, most = -1.0;
  for (size_t i = 0; i < cells; ++i) {
    mass += std::exp(14.0 * hydro[i]);
    for (size_t axis = 0; axis < 3; ++axis) drift[axis] += std::exp(14.0 * hydro[i]) * hydro[(axis + 2) * cells + i];
    least = std::min(least, static_cast<double>(hydro[cells + i]));
    most = std::max(most, static_cast<double>(hydro[cells + i]));
  }
  // exp(14 x) of a float32 x in [-1, 1]: its rounding counts 14 fold.
  EXPECT_TRUE(rounds_to(mass / static_cast<double>(cells), 1.0, 14, kFp32, 64));
  for (const double momentum : drift) EXPECT_TRUE(rounds_to(momentum / static_cast<double>(cells), 0.0, 14, kFp32, 64));
  EXPECT_GT(most - least, 0.5);  // cool voids and heated clusters: more than 1.5 decades of temperature
}

TEST_F(SimulateBox, NeitherThreadsNorMemoryChangeAByte) {
  NbodyOptions little = small("little");
  little.max_memory_gib = 0.003;
  ASSERT_TRUE(simulate(small("one"), 1));
  ASSERT_TRUE(simulate(small("four"), 4));
  ASSERT_TRUE(simulate(little, 2));
  for (const char* name :
       {"downsamp_2048crop_train_data.npy", "downsamp_2048crop_train_label.npy", "downsamp_1024crop_valid_data.npy"}) {
    EXPECT_EQ(bytes("one", name), bytes("four", name)) << name;
    EXPECT_EQ(bytes("one", name), bytes("little", name)) << name;
  }
  EXPECT_EQ(values("one", "Hydro", 5, 24), values("four", "Hydro", 5, 24));
  NbodyOptions other = small("other");
  other.seed = 2;
  ASSERT_TRUE(simulate(other));
  EXPECT_NE(bytes("one", "downsamp_2048crop_train_data.npy"), bytes("other", "downsamp_2048crop_train_data.npy"));
}

TEST_F(SimulateBox, TheSameSeedHasTheSameLargeStructureAtAnotherResolution) {
  NbodyOptions coarse = small("coarse"), fine = small("fine");
  coarse.redshift = fine.redshift = 4.0;
  fine.edge = 48;
  fine.cell_mpc_h = coarse.cell_mpc_h / 2.0;
  ASSERT_TRUE(simulate(coarse));
  ASSERT_TRUE(simulate(fine));
  const std::vector<float> a = values("coarse", "Nbody", 4, 24), b = values("fine", "Nbody", 4, 48);
  // Velocities are of large scale: compare with the mean of the eight fine cells.
  double ab = 0.0, aa = 0.0, bb = 0.0;
  for (size_t z = 0; z < 24; ++z) {
    for (size_t y = 0; y < 24; ++y) {
      for (size_t x = 0; x < 24; ++x) {
        const double v = a[((24 + z) * 24 + y) * 24 + x];
        double w = 0.0;
        for (size_t c = 0; c < 8; ++c)
          w += 0.125 * b[((48 + 2 * z + (c >> 2)) * 48 + 2 * y + ((c >> 1) & 1)) * 48 + 2 * x + (c & 1)];
        ab += v * w, aa += v * v, bb += w * w;
      }
    }
  }
  EXPECT_GT(ab / std::sqrt(aa * bb), 0.9);
}

TEST_F(SimulateBox, SaysWhatIsWrong) {
  NbodyOptions odd = small("odd");
  odd.edge = 25;
  odd.steps = 0;
  try {
    simulate(odd);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(),
                testing::HasSubstr("[simulate nbody] edge=25 (even, 8 to 4096); steps=0 (1 to 10000). Change these flags"));
  }
  NbodyOptions cramped = small("cramped");
  cramped.max_memory_gib = 1e-5;
  try {
    simulate(cramped);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("Raise --max_memory_gib or lower --edge"));
  }
  ASSERT_TRUE(simulate(small("taken")));
  NbodyOptions other = small("taken");
  other.seed = 9;
  try {
    simulate(other);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("the folder holds the result of another simulation"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--overwrite"));
  }
  other.overwrite = true;
  EXPECT_TRUE(simulate(other));
}

TEST_F(SimulateBox, AnInterruptedRunLeavesNoFileThatLooksFinished) {
  ThreadPool pool({.num_threads = 1});
  const auto stop = [](std::string_view what, int64_t step, int64_t) {
    if (what == "valid box" && step == 3) throw DataError("test", "stopped", "Go on");
  };
  EXPECT_THROW(simulate_nbody(small("cut"), pool, stop), DataError);
  for (const auto& entry : std::filesystem::directory_iterator(root_ / "cut")) {
    EXPECT_THAT(entry.path().filename().string(), testing::StartsWith("downsamp_2048crop_train"));  // whole; no simulation.json
  }
}

TEST_F(SimulateBox, AFolderThatCannotBeMadeIsADataError) {
  NbodyOptions options = small("none");
  options.out = "/dev/null/boxes";
  try {
    simulate(options);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/dev/null"));
  }
}

// Files that may not grow stand for a full disk: the same refusal of write(2), with EFBIG in place of ENOSPC.
TEST_F(SimulateBox, AFullDiskIsADataErrorAndLeavesNothing) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small_files{.rlim_cur = 60000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small_files), 0);
  EXPECT_THROW(simulate(small("full")), DataError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "full"));
}

}  // namespace
}  // namespace welkin::data::simulate
