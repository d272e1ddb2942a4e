// SPDX-License-Identifier: Apache-2.0
#include "config/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/units.h"
#include "base/words.h"

namespace cairn::config {

namespace {

Problem cannot_open(const std::string& path, int err) {
  switch (err) {
    case ENOENT:
      return {
          fmt::format("there is no file {}: check the path, relative ones start in the "
                      "current folder",
                      in_quotes(path))};
    case EACCES:
    case EPERM:
      return {
          fmt::format("{} may not be read by this user: change its mode or owner, or run as "
                      "its owner",
                      in_quotes(path))};
    case EISDIR:
      return {fmt::format("{} is a folder: name the file in it", in_quotes(path))};
    default:
      return {fmt::format("{} cannot be read ({}): check the path and the disk it is on",
                          in_quotes(path), std::strerror(err))};
  }
}

}  // namespace

Attempt<std::string> read_file(const std::string& path, size_t size_max) {
  const posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.get() < 0) return std::unexpected(cannot_open(path, errno));
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return std::unexpected(cannot_open(path, errno));
  if (S_ISDIR(status.st_mode)) return std::unexpected(cannot_open(path, EISDIR));

  // One byte more than allowed tells a file that fits from one that does not; sizes of pipes and
  // of the kernel's files are not known before.
  std::string text;
  while (text.size() <= size_max) {
    const size_t have = text.size();
    const size_t room = std::min<size_t>(size_max + 1 - have, 64 << 10);
    text.resize(have + room);
    const ssize_t got = ::read(file.get(), text.data() + have, room);
    const int err = errno;
    text.resize(have + (got > 0 ? static_cast<size_t>(got) : 0));
    if (got < 0 && err == EINTR) continue;
    if (got < 0) return std::unexpected(cannot_open(path, err));
    if (got == 0) return text;
  }
  return refuse(
      fmt::format("{} is larger than {}, more than Cairn reads: name another file, or "
                  "take out what it does not need",
                  in_quotes(path), text_bytes(size_max)));
}

namespace {

Problem cannot_write(const std::string& path, int err) {
  const char* next = "check the path and who owns it";
  if (err == ENOSPC || err == EDQUOT) next = "free some space there";
  if (err == EROFS) next = "name a folder on a disk that can be written";
  return {fmt::format("{} cannot be written ({}): {}", in_quotes(path), std::strerror(err), next)};
}

}  // namespace

Attempt<FreshFile> FreshFile::create(const std::string& path) {
  const std::string fresh = path + ".new";
  posix::Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600));
  if (!file.is_open()) return std::unexpected(cannot_write(fresh, errno));
  return FreshFile(path, std::move(file));
}

Attempt<void> FreshFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file_.get(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return std::unexpected(cannot_write(path_ + ".new", errno));
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  return {};
}

Attempt<void> FreshFile::finish() {
  const std::string fresh = path_ + ".new";
  if (::fsync(file_.get()) != 0) return std::unexpected(cannot_write(fresh, errno));
  if (::rename(fresh.c_str(), path_.c_str()) != 0) {
    return std::unexpected(cannot_write(path_, errno));
  }
  // The new name is durable with the folder that has it.
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  const posix::Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.get() < 0 || ::fsync(opened.get()) != 0) {
    return std::unexpected(cannot_write(folder, errno));
  }
  return {};
}

Attempt<void> replace_file(const std::string& path, std::string_view text) {
  Attempt<FreshFile> file = FreshFile::create(path);
  if (!file) return std::unexpected(file.error());
  if (const Attempt<void> written = file->append(text); !written) return written;
  return file->finish();
}

std::optional<std::string> first_line(const std::string& path) {
  const Attempt<std::string> text = read_file(path, 1 << 20);
  if (!text) return std::nullopt;
  return text->substr(0, text->find('\n'));
}

}  // namespace cairn::config
