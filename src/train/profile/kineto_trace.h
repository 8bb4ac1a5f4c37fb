// SPDX-License-Identifier: Apache-2.0
// Torch's own profiler: every operator of every thread with our spans among them, as a Chrome trace. Only this file names
// torch's interface for it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "observe/timeline/span.h"
#include "train/profile/operator_table.h"

namespace welkin::train {

// Recording from construction on; one at a time in a process. With a GPU its kernels and copies are recorded too.
class KinetoTrace {
 public:
  explicit KinetoTrace(bool with_gpu);
  ~KinetoTrace();  // discards what is not saved
  KinetoTrace(const KinetoTrace&) = delete;
  KinetoTrace& operator=(const KinetoTrace&) = delete;

  // Ends the recording, writes it and returns the operators' calls. DataError when the file cannot be written.
  std::vector<OperatorCall> save(const std::filesystem::path& path);

 private:
  bool with_gpu_;
  bool is_recording_ = true;
};

// Passes our spans to the profiler as annotations. It takes the spans of the thread that makes the sink and that starts and
// ends the recording. A span of another thread could outlive the recording and write to its memory.
class KinetoSink : public observe::SpanSink {
 public:
  void begin(std::string_view name) noexcept override;
  void end(std::string_view name, observe::SpanClock::time_point began) noexcept override;

 private:
  const std::thread::id thread_ = std::this_thread::get_id();
};

// The file name that TensorBoard's PyTorch plug-in expects in a log folder: <host>_<process>.<milliseconds>.pt.trace.json.
std::string trace_file_name(const std::string& host, int64_t process, int64_t milliseconds);

}  // namespace welkin::train
