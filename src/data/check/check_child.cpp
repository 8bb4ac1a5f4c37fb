// SPDX-License-Identifier: Apache-2.0
#include "data/check/check_child.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <thread>

#include "core/process/host.h"
#include "core/text.h"
#include "data/check/child_process.h"

namespace welkin::data {
namespace {

// A child starts in 2 ms and takes one for a small file.
constexpr size_t kFewestFilesPerChild = 8;
constexpr int kMostChildren = 8;
// A command line takes 128 KiB at least, whatever the limits.
constexpr size_t kMostPathBytes = 64 << 10;

struct ChildRun {
  size_t finished = 0;
  bool within = false;  // of a file that was begun
  std::string death;
};

// False when the child has been silent for too long.
bool follow(const ChildProcess& child, std::chrono::milliseconds patience, ChildRun& run) {
  for (;;) {
    pollfd news{.fd = child.output(), .events = POLLIN, .revents = 0};
    const int ready = poll(&news, 1, static_cast<int>(patience.count()));
    if (ready == 0) return false;
    if (ready < 0 && errno == EINTR) continue;
    std::array<char, 256> bytes{};
    const ssize_t count = read(child.output(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
    for (const char byte : std::span(bytes).first(static_cast<size_t>(count))) {
      if (byte == kFileBegun) run.within = true;
      if (byte == kFileFinished) run.within = false, ++run.finished;
    }
  }
}

ChildRun run_child(const CheckHelper& helper, std::span<const std::string> files) {
  ChildRun run;
  std::vector<std::string> words = helper.arguments;
  words.insert(words.end(), files.begin(), files.end());
  ChildProcess child(helper.program, words);
  if (!child.runs()) return run;
  if (follow(child, helper.patience, run)) {
    run.death = child.wait();
  } else {
    run.death = cat("made no progress in ", static_cast<double>(helper.patience.count()) / 1000, " s");
  }
  return run;
}

// Number of files whose paths fit into one command line.
size_t files_at_once(std::span<const std::string> files) {
  size_t bytes = 0, count = 0;
  while (count < files.size() && (count == 0 || bytes + files[count].size() < kMostPathBytes)) bytes += files[count++].size();
  return count;
}

void check_one_after_other(const CheckHelper& helper, std::span<const std::string> files, std::span<std::string> deaths) {
  while (!files.empty()) {
    const size_t given = files_at_once(files);
    const ChildRun run = run_child(helper, files.first(given));
    // A file may harm the child's memory and so end it in a later file. That one is checked again, first in a new child.
    const bool is_first = run.within && run.finished == 0;
    if (is_first) deaths[0] = run.death;
    const size_t done = std::min(given, run.finished + (is_first ? 1 : 0));
    if (done == 0) return;  // it cannot be run
    files = files.subspan(done);
    deaths = deaths.subspan(done);
  }
}

}  // namespace

bool can_run(const CheckHelper& helper) { return access(helper.program.c_str(), X_OK) == 0; }

std::vector<std::string> check_in_children(const CheckHelper& helper, std::span<const std::string> files) {
  std::vector<std::string> deaths(files.size());
  const auto most = static_cast<size_t>(std::min(kMostChildren, usable_cores()));
  const size_t children = std::clamp<size_t>(files.size() / kFewestFilesPerChild, 1, most);
  const size_t share = (files.size() + children - 1) / children;
  std::vector<std::jthread> threads;
  for (size_t first = share; first < files.size(); first += share) {
    const size_t count = std::min(share, files.size() - first);
    threads.emplace_back([&, first, count] {
      check_one_after_other(helper, files.subspan(first, count), std::span(deaths).subspan(first, count));
    });
  }
  const size_t count = std::min(share, files.size());
  check_one_after_other(helper, files.first(count), std::span(deaths).first(count));
  threads.clear();
  return deaths;
}

}  // namespace welkin::data
