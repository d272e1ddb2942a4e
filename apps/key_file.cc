// SPDX-License-Identifier: Apache-2.0
#include "apps/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "apps/words.h"
#include "crypto/secret.h"
#include "posix/fd.h"

namespace cairn::apps {

namespace {

// A secret of 64 bytes has 104 characters; what is longer is another file.
constexpr size_t kKeyFileMax = 512;

Problem cannot(const char* what, const std::string& path, int err) {
  return {fmt::format("the key file {} cannot be {} ({}): check its path, owner and mode",
                      in_quotes(path), what, std::strerror(err))};
}

Attempt<void> check_owner(int fd, const std::string& path) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return std::unexpected(cannot("read", path, errno));
  if (!S_ISREG(status.st_mode)) {
    return refuse(
        fmt::format("{} is no file: name a file with a key, which 'cairn nvme gen-key "
                    "--output FILE' makes",
                    in_quotes(path)));
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return refuse(
        fmt::format("the key file {} belongs to another user, who could change it: make "
                    "it this user's with chown",
                    in_quotes(path)));
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return refuse(
        fmt::format("the key file {} has mode {:04o}, and others may get at the key: "
                    "chmod 600 {}, and if they may have read it, make another key",
                    in_quotes(path), status.st_mode & 07777, path));
  }
  return {};
}

}  // namespace

Attempt<nvme::AuthSecret> read_key_file(const std::string& path) {
  const posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) return std::unexpected(cannot("read", path, errno));
  if (const Attempt<void> checked = check_owner(file.get(), path); !checked) {
    return std::unexpected(checked.error());
  }
  crypto::SecretBytes<kKeyFileMax> bytes(kKeyFileMax);
  const ssize_t size = ::pread(file.get(), bytes.mutable_bytes().data(), kKeyFileMax, 0);
  if (size < 0) return std::unexpected(cannot("read", path, errno));
  std::string_view text = as_text(bytes.bytes().first(static_cast<size_t>(size)));
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  Result<nvme::AuthSecret> secret = nvme::AuthSecret::parse(text);
  if (!secret) {
    return refuse(fmt::format("the key file {} holds no key: {}; 'cairn nvme gen-key' makes one",
                              in_quotes(path), secret.error().what()));
  }
  return std::move(*secret);
}

Attempt<void> write_key_file(const std::string& path, std::string_view text) {
  const posix::Fd file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0 && errno == EEXIST) {
    return refuse(fmt::format(
        "{} exists: a key is not overwritten; remove it, or name another file", in_quotes(path)));
  }
  if (file.get() < 0) return std::unexpected(cannot("made", path, errno));
  const ssize_t size = ::write(file.get(), text.data(), text.size());
  if (size == static_cast<ssize_t>(text.size()) && ::fsync(file.get()) == 0) return {};
  const int err = size < 0 || size == static_cast<ssize_t>(text.size()) ? errno : ENOSPC;
  ::unlink(path.c_str());
  return std::unexpected(cannot("written", path, err));
}

Attempt<void> load_credentials(fabric::HostOptions& options) {
  if (options.key_file.empty()) return {};
  Attempt<nvme::AuthSecret> host = read_key_file(options.key_file);
  if (!host) return std::unexpected(host.error());
  nvme::AuthKeys keys{.host = std::move(*host), .controller = {}};
  if (!options.controller_key_file.empty()) {
    Attempt<nvme::AuthSecret> controller = read_key_file(options.controller_key_file);
    if (!controller) return std::unexpected(controller.error());
    keys.controller = std::move(*controller);
  }
  options.credentials = std::make_shared<const fabric::HostCredentials>(std::move(keys));
  return {};
}

}  // namespace cairn::apps
