// SPDX-License-Identifier: Apache-2.0
// A program that opens files one after the other, run as a child by posix_spawn: nothing survives a fork once torch is loaded. It
// says on its standard output where it is, a byte each: kFileBegun, kFileProgress now and then, kFileFinished. A file within
// which it dies, or is silent for too long, is damaged; the child prints nothing else and judges nothing. Torch-free.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace welkin::data {

inline constexpr char kFileBegun = '+', kFileProgress = '.', kFileFinished = '=';

// The program that looks at files: `program arguments... FILE...`.
struct CheckHelper {
  std::filesystem::path program;
  std::vector<std::string> arguments{};
  std::chrono::milliseconds patience{8'000};  // without a byte from the child
  std::function<void()> on_absent{};          // before a file is read without it, since its program cannot be run
};

// True if its program can be run.
bool can_run(const CheckHelper& helper);

// For each file the failure of its child ("ended with signal 11 (Segmentation fault)", "made no progress in 8 s"). Empty: none,
// or the child could not be run or was ended by others. Many files are divided between children that run at the same time.
std::vector<std::string> check_in_children(const CheckHelper& helper, std::span<const std::string> files);

}  // namespace welkin::data
