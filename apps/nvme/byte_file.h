// SPDX-License-Identifier: Apache-2.0
// Files, pipes and terminals as the far end of a transfer. Waiting for a slow pipe lets the core go
// on, so that the connection to the target stays alive meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/problem.h"
#include "env/env.h"
#include "task/task.h"

namespace cairn::apps {

// Where bytes come from. Used by one task at a time, as OutputFile.
class InputFile {
 public:
  // "-" is stdin.
  static Attempt<std::unique_ptr<InputFile>> open(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  // Bytes that are left, of a regular file; a pipe's end shows only when it comes.
  std::optional<uint64_t> size() const { return size_; }
  const std::string& name() const { return name_; }
  // Fills `into`; fewer bytes came at the end of the input only.
  task::Task<Attempt<size_t>> read(env::Env& env, MutableBytes into);

 private:
  InputFile(int fd, std::string name);
  int fd_;
  std::string name_;
  std::optional<uint64_t> size_;
};

// Where bytes go. A regular file appears under its name with commit(), whole, or not at all: until
// then it has another name in the same folder, and what was there before stays.
class OutputFile {
 public:
  // "-" is stdout.
  static Attempt<std::unique_ptr<OutputFile>> open(const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& name() const { return name_; }
  // It appears with commit() only.
  bool is_regular() const { return is_regular_; }
  task::Task<Attempt<void>> write(env::Env& env, Bytes from);
  Attempt<void> commit();

 private:
  OutputFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}
  static Attempt<std::unique_ptr<OutputFile>> open_beside(const std::string& path, uint32_t mode);

  int fd_;
  std::string name_;
  std::string path_;       // of a regular file
  std::string temporary_;  // its name until commit(); empty: nothing to rename
  bool is_regular_ = false;
};

}  // namespace cairn::apps
