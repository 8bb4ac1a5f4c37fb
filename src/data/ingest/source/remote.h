// SPDX-License-Identifier: Apache-2.0
// libwelkin_ingest.so in processes of its own: `welkin-check-files ingest LIBRARY` serves the functions of component_abi.h
// over its pipes, a process for each open file. A damaged file on which ecCodes or netCDF-C crashes ends that process
// alone, and is an error here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/check/child_process.h"
#include "data/ingest/source/component_abi.h"

namespace welkin::data::ingest {

class Component;

// The side of the child: answers until `input` ends. Returns the exit code. `allow_seconds` is called before each call with the
// seconds of CPU that it may take. A program that serves nothing else limits itself to them, so that an endless loop in the
// library ends it.
int serve_component(const Component& component, int input, int output, const std::function<void(int64_t)>& allow_seconds);

// The side of the reader. Thread-safe; its sources are closed before it goes.
class RemoteComponent {
 public:
  // Null where the helper cannot be run or does not load the library: a reader that loads it itself says why.
  static std::unique_ptr<RemoteComponent> start(const std::filesystem::path& helper, const std::filesystem::path& library);

  const std::string& versions() const { return versions_; }
  // Works as the function of component_abi.h; the handle is for the functions of `api` alone.
  int open(const char* path, int format, welkin_ingest_source** out, char* error, int64_t capacity);
  static const welkin_ingest_api& api();

  // Takes back the process of a file where nothing failed in it.
  void take_back(std::unique_ptr<ChildProcess> child);

 private:
  RemoteComponent(std::filesystem::path helper, std::filesystem::path library)
      : helper_(std::move(helper)), library_(std::move(library)) {}
  std::unique_ptr<ChildProcess> start_child();  // null: it does not run

  std::filesystem::path helper_, library_;
  std::string versions_;
  std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<ChildProcess>> idle_;
};

}  // namespace welkin::data::ingest
