// SPDX-License-Identifier: Apache-2.0
// ffmpeg reads the frames from a temporary folder beside the output file.
#include "observe/image/animation.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "core/text.h"

namespace welkin::observe::image {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<const char*, AnimationFormat>, 3> kFormats{
    {{"apng", AnimationFormat::Apng}, {"gif", AnimationFormat::Gif}, {"mp4", AnimationFormat::Mp4}}};
constexpr const char* kProgram = "ffmpeg";

bool ffmpeg_is_there() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / kProgram).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// A folder of frames; the destructor removes it with its contents.
class FrameFolder {
 public:
  FrameFolder(const fs::path& beside, std::span<const std::string> frames) {
    std::string name = cat(beside.string(), ".frames-XXXXXX");
    if (::mkdtemp(name.data()) == nullptr)
      throw DataError("animation", cat("a folder for its frames cannot be made: path=", name),
                      "Check the folder and its free space");
    folder_ = name;
    for (size_t i = 0; i < frames.size(); ++i) write_file_atomically(folder_ / cat(i, ".png"), frames[i]);
  }
  ~FrameFolder() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  FrameFolder(const FrameFolder&) = delete;
  FrameFolder& operator=(const FrameFolder&) = delete;

  fs::path frames() const { return folder_ / "%d.png"; }
  fs::path log() const { return folder_ / "log"; }

 private:
  fs::path folder_;
};

// Returns the program's exit code, -1 if it did not exit normally. Its output goes into the log.
int run_program(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, kProgram, &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  if (failed != 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

std::vector<std::string> ffmpeg_words(AnimationFormat format, const fs::path& frames, double seconds, const fs::path& output) {
  std::vector<std::string> words{kProgram, "-v", "error", "-y", "-framerate", cat(1 / seconds), "-i", frames.string()};
  const std::vector<std::string> of_format =
      format == AnimationFormat::Gif
          ? std::vector<std::string>{"-vf",   "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=none",
                                     "-loop", "0",
                                     "-f",    "gif"}
          // Settings that every player supports: an even number of pixels, 4:2:0, at least 25 frames per second.
          : std::vector<std::string>{
                "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2:color=white,fps=25", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f",
                "mp4"};
  words.insert(words.end(), of_format.begin(), of_format.end());
  words.push_back(output.string());
  return words;
}

}  // namespace

AnimationFormat parse_animation_format(std::string_view name) {
  for (const auto& [known, format] : kFormats) {
    if (name != known) continue;
    if (format != AnimationFormat::Apng && !ffmpeg_is_there())
      throw ConfigError("animation", cat("the program ffmpeg is not installed: format=", name),
                        "Install ffmpeg, or ask for apng, which browsers show");
    return format;
  }
  throw ConfigError("animation", cat("there is no such format: format=", name), "Choose apng, gif or mp4");
}

std::string extension_of(AnimationFormat format) { return cat(".", kFormats[static_cast<size_t>(format)].first); }

void write_animation(const fs::path& path, AnimationFormat format, std::span<const std::string> frames, double seconds) {
  if (format == AnimationFormat::Apng) return write_file_atomically(path, encode_apng(frames, seconds));
  const FrameFolder folder(path, frames);
  write_path_atomically(path, [&](const fs::path& temporary) {
    constexpr uint64_t kLongestLog = 1 << 16;
    if (const int code = run_program(ffmpeg_words(format, folder.frames(), seconds, temporary), folder.log()); code != 0) {
      throw DataError("animation",
                      cat("ffmpeg cannot make the file: path=", path.string(), ", code=", code,
                          ", says=", fs::exists(folder.log()) ? read_file(folder.log(), kLongestLog) : ""),
                      "Ask for apng, which needs no program");
    }
  });
}

}  // namespace welkin::observe::image
