// SPDX-License-Identifier: Apache-2.0
#include "apps/nvme/byte_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/words.h"
#include "task/deadline.h"

namespace cairn::apps {

namespace {

constexpr Duration kPauseMin = 20_us;
constexpr Duration kPauseMax = 5_ms;

bool is_default(int fd) { return fd == STDIN_FILENO || fd == STDOUT_FILENO; }

Problem failed(const char* what, const std::string& name, int err) {
  const char* next = err == ENOSPC || err == EDQUOT ? ": make room there" : "";
  return {fmt::format("{} cannot be {} ({}){}", name, what, std::strerror(err), next)};
}

// Whether a read or write would not block now. A regular file always says so.
bool is_ready(int fd, short events) {
  pollfd poll = {.fd = fd, .events = events, .revents = 0};
  return ::poll(&poll, 1, 0) > 0;
}

task::Task<Attempt<void>> wait_until_ready(env::Env& env, int fd, short events) {
  for (Duration pause = kPauseMin; !is_ready(fd, events); pause = std::min(pause * 2, kPauseMax)) {
    const Result<void> slept = co_await task::sleep_for(env, pause, env.stop_token());
    if (!slept) co_return refuse("interrupted");
  }
  co_return Attempt<void>{};
}

}  // namespace

// --- input ---------------------------------------------------------------------------------------

InputFile::InputFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  struct stat status = {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) return;
  const off_t at = std::max<off_t>(::lseek(fd_, 0, SEEK_CUR), 0);
  size_ = static_cast<uint64_t>(std::max<off_t>(status.st_size - at, 0));
}

InputFile::~InputFile() {
  if (!is_default(fd_)) ::close(fd_);
}

Attempt<std::unique_ptr<InputFile>> InputFile::open(const std::string& path) {
  if (path == "-") return std::unique_ptr<InputFile>(new InputFile(STDIN_FILENO, "stdin"));
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::unexpected(failed("read", in_quotes(path), errno));
  std::unique_ptr<InputFile> file(new InputFile(fd, in_quotes(path)));
  struct stat status = {};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    return std::unexpected(failed("read", in_quotes(path), EISDIR));
  }
  return file;
}

task::Task<Attempt<size_t>> InputFile::read(env::Env& env, MutableBytes into) {
  size_t have = 0;
  while (have < into.size()) {
    const Attempt<void> ready = co_await wait_until_ready(env, fd_, POLLIN);
    if (!ready) co_return std::unexpected(ready.error());
    const ssize_t got = ::read(fd_, into.data() + have, into.size() - have);
    if (got == 0) break;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) co_return std::unexpected(failed("read", name_, errno));
    have += static_cast<size_t>(got);
  }
  co_return have;
}

// --- output --------------------------------------------------------------------------------------

Attempt<std::unique_ptr<OutputFile>> OutputFile::open(const std::string& path) {
  if (path == "-") return std::unique_ptr<OutputFile>(new OutputFile(STDOUT_FILENO, "stdout"));
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) return open_beside(path, 0);
  if (S_ISREG(status.st_mode)) {
    char real[PATH_MAX];  // a link stays a link
    if (::realpath(path.c_str(), real) == nullptr) {
      return std::unexpected(failed("written", in_quotes(path), errno));
    }
    return open_beside(real, status.st_mode & 07777);
  }
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return std::unexpected(failed("written", in_quotes(path), errno));
  return std::unique_ptr<OutputFile>(new OutputFile(fd, in_quotes(path)));
}

// `mode` 0: what the user's mask leaves.
Attempt<std::unique_ptr<OutputFile>> OutputFile::open_beside(const std::string& path,
                                                             uint32_t mode) {
  std::string temporary = path + ".part-XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return std::unexpected(failed("written", in_quotes(path), errno));
  std::unique_ptr<OutputFile> file(new OutputFile(fd, in_quotes(path)));
  file->path_ = path;
  file->temporary_ = std::move(temporary);
  file->is_regular_ = true;
  if (mode == 0) {
    const mode_t mask = ::umask(0);
    ::umask(mask);
    mode = 0666 & ~mask;
  }
  if (::fchmod(fd, mode) != 0) return std::unexpected(failed("written", file->name_, errno));
  return file;
}

OutputFile::~OutputFile() {
  if (!is_default(fd_)) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

task::Task<Attempt<void>> OutputFile::write(env::Env& env, Bytes from) {
  while (!from.empty()) {
    size_t count = from.size();
    if (!is_regular_) {
      const Attempt<void> ready = co_await wait_until_ready(env, fd_, POLLOUT);
      if (!ready) co_return std::unexpected(ready.error());
      count = std::min<size_t>(count, PIPE_BUF);  // a pipe that is ready takes so many at once
    }
    const ssize_t done = ::write(fd_, from.data(), count);
    if (done < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (done < 0) co_return std::unexpected(failed("written", name_, errno));
    from = from.subspan(static_cast<size_t>(done));
  }
  co_return Attempt<void>{};
}

Attempt<void> OutputFile::commit() {
  if (temporary_.empty()) return {};
  if (::fsync(fd_) != 0) return std::unexpected(failed("written", name_, errno));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return std::unexpected(failed("written", name_, errno));
  }
  temporary_.clear();
  return {};
}

}  // namespace cairn::apps
