// SPDX-License-Identifier: Apache-2.0
// Our event files as the `tensorboard` package reads them: scalars, the PNG image, and a resumed run that voids what came after
// its step.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/file.h"
#include "observe/events/event_writer.h"
#include "observe/image/panels.h"

namespace welkin::observe {
namespace {

namespace fs = std::filesystem;

class EventFiles : public testing::Test {
 protected:
  EventFiles() {
    std::string pattern = (fs::temp_directory_path() / "welkin_events_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    make_folders(folder_ / "logs");
  }
  ~EventFiles() override { fs::remove_all(folder_); }

  // What read_events.py prints; null where tensorboard is not installed.
  nlohmann::json read_with_tensorboard() const {
    const char* python = std::getenv("WELKIN_TEST_PYTHON");
    const char* source = std::getenv("WELKIN_SOURCE_DIR");  // set by CTest
    const fs::path script = fs::path(source != nullptr ? source : ".") / "tests/read_events.py";
    const std::string command = std::string(python != nullptr ? python : "python3") + " '" + script.string() + "' '" +
                                (folder_ / "logs").string() + "' > '" + (folder_ / "read.json").string() + "'";
    const int status = std::system(command.c_str());
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return nullptr;
    EXPECT_EQ(status, 0) << command;
    return nlohmann::json::parse(read_file(folder_ / "read.json", 1 << 20));
  }

  fs::path folder_;
};

TEST_F(EventFiles, AreReadByTensorBoard) {
  const std::vector<float> field{0, 1, 2, 3, 4, 5, 6, 7};
  {
    EventWriter writer(folder_ / "logs");
    writer.scalar("Loss/train", 1.5f, 0);
    writer.scalar("Learning Rate", 1.95106e-4f, 1024);
    writer.scalar("Loss/train", 0.25f, 1024);
    writer.scalar("Loss/train", 99.0f, 2048);  // lost work: the run stopped and resumes from step 1024
    const image::Panel target{.title = "ERA5 target", .values = field, .rows = 2, .columns = 4};
    const image::Panel prediction{.title = "ViT prediction", .values = field, .rows = 2, .columns = 4};
    writer.image("Visualization, t2m", image::draw_panels({.panels = {target, prediction}}), 1024);
    writer.flush();
  }
  {
    EventWriter writer(folder_ / "logs", {.purge_from_step = 1025});
    writer.scalar("Loss/train", 0.125f, 2048);
    writer.flush();
  }
  const nlohmann::json read = read_with_tensorboard();
  if (read.is_null()) GTEST_SKIP() << "the tensorboard package is not installed for WELKIN_TEST_PYTHON";
  EXPECT_EQ(read.at("scalars").at("Loss/train"), (nlohmann::json{{0, 1.5}, {1024, 0.25}, {2048, 0.125}}));
  EXPECT_EQ(read.at("scalars").at("Learning Rate"), (nlohmann::json{{1024, static_cast<double>(1.95106e-4f)}}));
  EXPECT_EQ(read.at("images").at("Visualization, t2m"), (nlohmann::json{{1024, 1200, 600, "PNG"}}));
  EXPECT_EQ(read.at("file_version"), 2);
}

}  // namespace
}  // namespace welkin::observe
