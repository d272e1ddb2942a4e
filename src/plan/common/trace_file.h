// SPDX-License-Identifier: Apache-2.0
// Traces of requests in files, plain or gzip, read as they are needed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/problem.h"
#include "model/flash/workload.h"
#include "trace/reader.h"

namespace cairn::plan {

class TraceFile {
 public:
  // The Problem names the file and what to do.
  static Attempt<TraceFile> open(const std::string& path, const trace::ReaderOptions& options);

  // The next request in order of arrival; nothing after the last. The Problem names file, line and
  // field.
  Attempt<std::optional<trace::Record>> next();

  const char* format_title() const { return reader_.format_title(); }
  // How much of the file was read, 0 to 1; 0 of a pipe.
  double part_read() const;

 private:
  TraceFile(std::string path, trace::Reader reader, std::unique_ptr<uint64_t> taken, uint64_t size)
      : path_(std::move(path)), reader_(std::move(reader)), taken_(std::move(taken)), size_(size) {}

  std::string path_;
  trace::Reader reader_;
  std::unique_ptr<uint64_t> taken_;  // the source below the reader counts it
  uint64_t size_;
};

// As the flash model takes it: whole sectors that hold its bytes.
flash::TimedRequest timed_request(const trace::Record& record, uint64_t cookie);

// All of a trace in MQSim's format, times as they are in it. The Problem names the line and field.
Attempt<std::vector<flash::TimedRequest>> parse_mqsim_trace(std::string_view text);

}  // namespace cairn::plan
