// SPDX-License-Identifier: Apache-2.0
// Whole small files: configuration given by a user, facts given by the kernel, state we keep.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/problem.h"
#include "world/posix/fd.h"

namespace cairn::config {

// The whole of a regular file (or pipe) of at most `size_max` bytes. The Problem says in one
// sentence what is wrong with the path and what to do.
Attempt<std::string> read_file(const std::string& path, size_t size_max);

// A file that appears wholly or not at all whatever happens: written beside its place as PATH.new,
// made durable, renamed by finish(). The Problems say why it could not be, and what to do.
class FreshFile {
 public:
  static Attempt<FreshFile> create(const std::string& path);
  Attempt<void> append(std::string_view text);
  Attempt<void> finish();

 private:
  FreshFile(std::string path, posix::Fd file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  posix::Fd file_;
};

// Makes `text` the contents of a file, as a FreshFile.
Attempt<void> replace_file(const std::string& path, std::string_view text);

// The first line of a file of the kernel's, without its end; nothing when it cannot be read.
std::optional<std::string> first_line(const std::string& path);

}  // namespace cairn::config
