// SPDX-License-Identifier: Apache-2.0
// Whose checkpoints a place holds.
#include "train/nodes/place_owner.h"

#include <gtest/gtest.h>

#include <fstream>

#include "scratch_folder.h"

namespace welkin::train {
namespace {

TEST(PlaceOwner, IsKnownByItsIdOrByItsFolder) {
  const ScratchFolder folder;
  const std::string id = draw_run_id();
  EXPECT_NE(id, draw_run_id());
  EXPECT_EQ(run_id_in(folder.path()), "");
  write_run_id(folder.path(), id);
  EXPECT_EQ(run_id_in(folder.path()), id);
  EXPECT_FALSE(owner_of(folder / "place").has_value());
  const RunName owner{.id = id, .folder = "/logs/run/1GPU/00"};
  sign_place(folder / "place", owner);
  ASSERT_EQ(owner_of(folder / "place"), owner);
  EXPECT_TRUE(is_own(owner, {.id = id, .folder = "/moved/run/1GPU/00"}));
  EXPECT_TRUE(is_own(owner, {.id = "", .folder = owner.folder}));  // the run's folder was lost
  EXPECT_FALSE(is_own(owner, {.id = "", .folder = "/other/run/1GPU/00"}));
  EXPECT_FALSE(is_own(owner, {.id = draw_run_id(), .folder = owner.folder}));  // an earlier run of the folder
}

TEST(PlaceOwner, IsTheOriginalAsLongAsItIsThere) {
  const ScratchFolder folder;
  const RunName original{.id = draw_run_id(), .folder = folder / "original"}, copy{.id = original.id, .folder = folder / "copy"};
  for (const RunName& run : {original, copy}) {
    std::filesystem::create_directory(run.folder);
    write_run_id(run.folder, run.id);
  }
  std::filesystem::create_directory_symlink(original.folder, folder / "link");
  EXPECT_TRUE(is_own(original, original));
  EXPECT_TRUE(is_own(original, {.id = original.id, .folder = folder / "link"}));
  EXPECT_FALSE(is_own(original, copy));
  std::filesystem::remove_all(original.folder);
  EXPECT_TRUE(is_own(original, copy));
}

TEST(PlaceOwner, MayComeFromAPathThatIsNoUtf8) {
  const ScratchFolder folder;
  const std::string id = draw_run_id();
  sign_place(folder / "place", {.id = id, .folder = "/caf\xe9/run"});
  const auto owner = owner_of(folder / "place");
  ASSERT_TRUE(owner.has_value());
  EXPECT_TRUE(is_own(*owner, {.id = id, .folder = "/caf\xe9/run"}));
}

TEST(PlaceOwner, OfAFileThatIsNoneIsUnknown) {
  const ScratchFolder folder;
  for (const char* text : {"", "[", "[1]", R"({"run": 1, "folder": "x"})", R"({"run": "x"})"}) {
    std::ofstream(folder / "run.json") << text;
    EXPECT_FALSE(owner_of(folder.path()).has_value()) << text;
  }
  std::ofstream(folder / "run_id") << "../../else";
  EXPECT_EQ(run_id_in(folder.path()), "");
}

}  // namespace
}  // namespace welkin::train
