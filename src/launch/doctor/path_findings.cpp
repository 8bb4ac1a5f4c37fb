// SPDX-License-Identifier: Apache-2.0
#include "launch/doctor/path_findings.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "core/error.h"
#include "core/file_descriptor.h"
#include "core/process/host.h"
#include "core/stopwatch.h"
#include "core/text.h"

namespace welkin::launch {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBlockBytes = uint64_t{4} << 20;
constexpr int kSmallFiles = 200;
constexpr double kSlowBytes = 200e6, kSlowFiles = 500;  // in a second

// A folder that is removed with its content.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent) : path_(parent / cat(".welkin-doctor-", getpid())) {
    fs::create_directory(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

double write_seconds(const fs::path& path, uint64_t bytes) {
  std::string block(kBlockBytes, '\0');
  for (size_t i = 0; i < block.size(); ++i) block[i] = static_cast<char>(i * 2654435761u >> 13);  // nothing that compresses well
  const Stopwatch watch;
  const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_EXCL);
  for (uint64_t done = 0; done < bytes; done += kBlockBytes) write_fully(file, path, block);
  sync_file(file, path);
  return watch.seconds();
}

// Reads from the disk, as far as the system drops the file from its page cache.
double read_seconds(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY);
  posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  std::string block(kBlockBytes, '\0');
  const Stopwatch watch;
  while (read(file.get(), block.data(), block.size()) > 0) {
  }
  return watch.seconds();
}

double files_a_second(const fs::path& folder) {
  const Stopwatch watch;
  for (int i = 0; i < kSmallFiles; ++i) {
    const fs::path path = folder / std::to_string(i);
    write_fully(open_file(path, O_WRONLY | O_CREAT | O_EXCL), path, "welkin");
  }
  for (int i = 0; i < kSmallFiles; ++i) fs::remove(folder / std::to_string(i));
  return kSmallFiles / watch.seconds();
}

std::string rate_text(double rate) { return cat(format_bytes(static_cast<uint64_t>(rate)), "/s"); }

}  // namespace

Findings path_findings(const fs::path& folder, uint64_t bytes) {
  const std::string topic = cat("path ", folder.string());
  try {
    const fs::space_info space = fs::space(folder);
    if (space.available < 2 * bytes) {
      return {{topic, Verdict::Bad, cat(format_bytes(space.available), " free: too full to be measured"),
               "Free some of it, or give another path"}};
    }
    const ScratchFolder scratch(folder);
    const fs::path file = scratch.path() / "bytes";
    const double amount = static_cast<double>((bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes);
    const double written = amount / write_seconds(file, bytes), fetched = amount / read_seconds(file),
                 files = files_a_second(scratch.path());
    Findings findings;
    findings.push_back(judged(
        topic, cat("writes ", rate_text(written), ", reads ", rate_text(fetched), ", ", format_bytes(space.available), " free"),
        written < kSlowBytes || fetched < kSlowBytes, Verdict::Doubtful,
        "Let --stage copy the training files to the node's own disk, and save checkpoints in the background"));
    findings.push_back(judged(topic, cat(static_cast<int64_t>(files), " small files a second"), files < kSlowFiles,
                              Verdict::Doubtful, "Keep many samples in one file there: welkin data convert"));
    return findings;
  } catch (const Error& error) {
    return {{topic, Verdict::Bad, error.what(), "As it says"}};
  } catch (const fs::filesystem_error& error) {
    return {{topic, Verdict::Bad, error.code().message(), "Give a folder that is there and may be written to"}};
  }
}

}  // namespace welkin::launch
