// SPDX-License-Identifier: Apache-2.0
#include "server/events/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/words.h"
#include "config/files.h"

namespace cairn::server {

namespace {

// Neither somebody else's file behind a link, nor a pipe that waits for its other end.
constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

}  // namespace

std::string EventFile::found() {
  const posix::Fd file(::open(path_.c_str(), O_RDONLY | kFlags));
  struct stat status = {};
  if (!file.is_open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  const auto size = static_cast<size_t>(status.st_size);
  const size_t from = size > bytes_max_ ? size - bytes_max_ : 0;
  std::string text(size - from, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::pread(file.get(), text.data() + have, text.size() - have,
                                static_cast<off_t>(from + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  if (from == 0) return text;
  // The first line began before.
  const size_t end = text.find('\n');
  return end == std::string::npos ? "" : text.substr(end + 1);
}

Attempt<void> EventFile::open() {
  if (file_.is_open()) return {};
  file_ = posix::Fd(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | kFlags, 0600));
  struct stat status = {};
  if (!file_.is_open() || ::fstat(file_.get(), &status) != 0) {
    return refuse(fmt::format("{} cannot be written ({}): look who owns it", in_quotes(path_),
                              std::strerror(errno)));
  }
  if (S_ISREG(status.st_mode)) return {};
  file_ = posix::Fd();
  return refuse(fmt::format("{} is no file: move away what is there", in_quotes(path_)));
}

Attempt<void> EventFile::append(std::string_view line) {
  if (const Attempt<void> opened = open(); !opened) return opened;
  const std::string whole = std::string(line) + "\n";
  const ssize_t wrote = ::write(file_.get(), whole.data(), whole.size());
  if (wrote == static_cast<ssize_t>(whole.size())) return {};
  return refuse(fmt::format("{} cannot be written ({}): free some space there", in_quotes(path_),
                            std::strerror(wrote < 0 ? errno : ENOSPC)));
}

Attempt<void> EventFile::replace(std::string_view lines) {
  file_ = posix::Fd();
  return config::replace_file(path_, lines);
}

}  // namespace cairn::server
