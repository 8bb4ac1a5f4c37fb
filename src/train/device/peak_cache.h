// SPDX-License-Identifier: Apache-2.0
// The rate of matmuls that MFU refers to, kept in a file of the user, so that runs on one processor refer to one peak. A peak
// that is measured at each start varies with the machine's other load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace welkin::train {

// The conditions under which a peak was measured.
struct PeakConditions {
  std::string processor;        // model, as the system names it
  std::string instruction_set;  // of the kernels
  std::string gemm;             // the provider and form of matmuls
  std::string dtype;            // "fp32", "bf16", "fp16"
  int64_t threads = 0;

  bool operator==(const PeakConditions&) const = default;
};

struct KeptPeak {
  PeakConditions conditions;
  double gflops = 0;  // GFLOP/s of one process
  std::string date;   // of the measurement: 2026-11-24
};

class PeakCache {
 public:
  // Nothing is read or made before the first use. A file that cannot be used counts as empty.
  explicit PeakCache(std::filesystem::path file) : file_(std::move(file)) {}

  const std::filesystem::path& file() const { return file_; }
  std::optional<KeptPeak> find(const PeakConditions& conditions) const;
  // Replaces the peak of the same conditions. Throws DataError if the file cannot be written.
  void keep(const KeptPeak& peak) const;

 private:
  std::vector<KeptPeak> peaks() const;

  std::filesystem::path file_;
};

// XDG's cache folder: $XDG_CACHE_HOME/welkin/peaks.json, else below ~/.cache; empty if neither is known.
std::filesystem::path peak_file(const char* xdg_cache_home, const char* home);

// "AMD EPYC family 23 model 1": a cloud's processors of several generations share one "model name". Empty if the text of
// /proc/cpuinfo does not say.
std::string described_processor(std::istream& cpuinfo);
// The name of this machine's processor, or another name that the system gives.
std::string processor_name();
// Today's date by the local clock: 2026-11-24.
std::string date_today();

}  // namespace welkin::train
