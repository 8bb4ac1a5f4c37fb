// SPDX-License-Identifier: Apache-2.0
// The search for torch, on made-up packages: which place wins, and what each failure tells the user.
#include "launch/torch_location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class TorchLocation : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  // A folder that looks like the package of that version.
  fs::path make_package(const fs::path& package, const std::string& version = "2.11.0+cu130") const {
    fs::create_directories(package / "lib");
    std::ofstream(package / "lib" / "libtorch_cpu.so") << "";
    std::ofstream(package / "version.py") << "from typing import Optional\n__version__ = '" << version << "'\ndebug = False\n";
    return package;
  }
  fs::path make_venv(const std::string& name, const std::string& version = "2.11.0") const {
    return make_package(root_ / name / "lib" / "python3.11" / "site-packages" / "torch", version);
  }

  fs::path root_;
};

std::string error_of(const TorchSearch& search) {
  try {
    find_torch(search);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(TorchLocation, AcceptsPackageLibFolderSitePackagesAndVenv) {
  const fs::path package = make_venv("venv");
  EXPECT_EQ(torch_package_in(package), package);
  EXPECT_EQ(torch_package_in(package / "lib"), package);
  EXPECT_EQ(torch_package_in(package.parent_path()), package);
  EXPECT_EQ(torch_package_in(root_ / "venv"), package);
  EXPECT_EQ(torch_package_in(root_), std::nullopt);
  EXPECT_EQ(torch_package_in(""), std::nullopt);
}

TEST_F(TorchLocation, FlagBeatsVariableBeatsActiveEnvironmentBeatsNearbyOne) {
  TorchSearch search{.flag = make_package(root_ / "flag"), .environment = make_package(root_ / "variable"), .python = ""};
  const fs::path active = make_venv("active");
  const fs::path nearby = make_venv("nearby");
  search.virtual_env = root_ / "active";
  search.nearby_venv = root_ / "nearby";
  EXPECT_EQ(find_torch(search), root_ / "flag");
  search.flag.reset();
  EXPECT_EQ(find_torch(search), root_ / "variable");
  search.environment.reset();
  EXPECT_EQ(find_torch(search), active);
  search.virtual_env.reset();
  EXPECT_EQ(find_torch(search), nearby);
}

TEST_F(TorchLocation, NamedFolderWithoutTorchIsAnErrorEvenWhenAnotherHasIt) {
  make_venv("nearby");
  const TorchSearch search{.flag = root_ / "empty", .nearby_venv = root_ / "nearby", .python = ""};
  EXPECT_THAT(error_of(search), HasSubstr("no torch in the folder named by --torch: folder=" + (root_ / "empty").string()));
}

TEST_F(TorchLocation, ActiveEnvironmentWithoutTorchIsPassedOver) {
  const fs::path nearby = make_venv("nearby");
  EXPECT_EQ(find_torch({.virtual_env = root_ / "active", .nearby_venv = root_ / "nearby", .python = ""}), nearby);
}

TEST_F(TorchLocation, OtherVersionsAreRefused) {
  EXPECT_THAT(error_of({.flag = make_package(root_ / "old", "2.10.0+cu128")}), HasSubstr("found=2.10.0+cu128, wanted=2.11.0"));
  EXPECT_THAT(error_of({.flag = make_package(root_ / "later", "2.11.01")}), HasSubstr("wrong version"));
  EXPECT_THAT(error_of({.flag = make_package(root_ / "none", "")}), HasSubstr("wrong version"));
}

TEST_F(TorchLocation, AsksPythonWhereItsTorchIs) {
  const fs::path package = make_venv("venv");
  const fs::path python = root_ / "python3";
  std::ofstream(python) << "#!/bin/sh\necho " << (package / "__init__.py").string() << "\n";
  fs::permissions(python, fs::perms::owner_all);
  EXPECT_EQ(find_torch({.python = python.string()}), package);
}

TEST_F(TorchLocation, FailureNamesWhatWasSearchedAndTheRemedy) {
  const std::string text = error_of({.virtual_env = root_ / "active", .python = (root_ / "no-such-python").string()});
  EXPECT_THAT(text, HasSubstr("[launcher] torch 2.11.0 was not found: searched=" + (root_ / "active").string()));
  EXPECT_THAT(text, HasSubstr("no-such-python"));
  EXPECT_THAT(text, HasSubstr("pip install torch==2.11.0"));
}

}  // namespace
}  // namespace welkin::launch
