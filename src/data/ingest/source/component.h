// SPDX-License-Identifier: Apache-2.0
// libwelkin_ingest.so as seen from libwelkin.so: opened on first use. Everything that it returns is checked before use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/check/check_child.h"
#include "data/ingest/source/component_abi.h"
#include "data/ingest/source/format.h"

namespace welkin::data::ingest {

struct SourceTables {
  std::vector<welkin_ingest_variable> variables;
  std::vector<welkin_ingest_plane> planes;
  struct Grid {
    std::vector<double> latitude, longitude;  // degrees, in the file's order
  };
  std::vector<Grid> grids;
};

class Component;
class RemoteComponent;  // remote.h

// One open file. Not for use by two threads at a time.
class Source {
 public:
  ~Source();
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Every header of the file. Throws DataError.
  SourceTables scan();
  // Physical values, row-major in the file's order, NaN where there is none. Throws DataError.
  void read_plane(int64_t address, std::span<float> values);

 private:
  friend class Component;
  Source(const welkin_ingest_api& api, welkin_ingest_source* handle, std::filesystem::path path)
      : api_(api), handle_(handle), path_(std::move(path)) {}
  [[noreturn]] void fail(const char* doing, const char* reason) const;

  const welkin_ingest_api& api_;
  welkin_ingest_source* handle_;
  std::filesystem::path path_;
};

// The library stays loaded for the life of the process: netCDF-C and HDF5 do not take well to being unloaded.
class Component {
 public:
  // `path` empty: libwelkin_ingest.so in the folder of libwelkin.so. Throws DataError with the remedy when it is not there.
  // `helper`: the program welkin-check-files, in whose processes the library then runs. Without one it runs in this process;
  // on_absent is called where its program is not there.
  explicit Component(const std::filesystem::path& path = {}, const CheckHelper& helper = {});
  // Takes functions that are loaded already; keeps the reference.
  explicit Component(const welkin_ingest_api& api);
  ~Component();

  std::unique_ptr<Source> open(const std::filesystem::path& path, Format format) const;
  std::string versions() const;
  const welkin_ingest_api& api() const { return *api_; }

 private:
  const welkin_ingest_api* api_ = nullptr;
  std::unique_ptr<RemoteComponent> remote_;  // null: the library is loaded here
};

// The folder of the shared object (or the program) that holds this code.
std::filesystem::path library_folder();

}  // namespace welkin::data::ingest
