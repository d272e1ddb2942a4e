// SPDX-License-Identifier: Apache-2.0
// TraceFile: lines on their way to a file, behind requests that do not wait for it. Internal to
// trace.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/error.h"
#include "env/disk.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "trace/cairn_format.h"

namespace cairn::drive {

class TraceFile {
 public:
  struct Counts {
    uint64_t lines = 0;
    uint64_t dropped = 0;  // the file was too slow, or failed
    uint64_t errors = 0;   // of the file
  };

  TraceFile(env::Env& env, std::string path) : env_(env), path_(std::move(path)) {}

  // A new file. kExists: all names are taken; or why it cannot be made, or written.
  task::Task<Result<void>> begin();
  // Does nothing while there is no file.
  void add(const trace::CairnLine& line);
  // Writes what was added and cuts the file behind it; then there is no file. Also right when there
  // is none.
  task::Task<Result<void>> end();
  task::Task<void> close();

  bool is_open() const { return is_open_; }
  // Of the last file that was begun.
  const std::string& name() const { return name_; }
  const Counts& counts() const { return counts_; }

 private:
  static constexpr size_t kChunk = 16384;
  static constexpr uint32_t kBlock = 512;
  enum class Position : uint8_t { kMiddle, kLast };  // the file ends behind the last lines

  Result<void> create();
  bool write_filled(Position position);
  task::Task<void> write(Bytes lines, Position position);

  env::Env& env_;
  const std::string path_;
  std::string name_;
  std::unique_ptr<env::Disk> disk_;
  std::array<Buffer, 2> chunks_;
  size_t filling_ = 0;  // the chunk that lines go to; the other one is being written, or free
  size_t used_ = 0;     // bytes of it
  uint64_t offset_ = 0;
  bool is_open_ = false;
  bool is_writing_ = false;
  Result<void> failed_;
  task::Event written_;
  Counts counts_;
  task::Gate gate_;
};

}  // namespace cairn::drive
