// SPDX-License-Identifier: Apache-2.0
#include "server/open/key_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/units.h"
#include "base/words.h"
#include "config/files.h"
#include "world/posix/fd.h"

namespace cairn::server {

namespace {

// A secret of 64 bytes has 104 characters; what is longer is another file.
constexpr size_t kKeyFileMax = 512;
// Hundreds of clients.
constexpr size_t kPskFileMax = 64_KiB;
// rack::kClientsMax of them, with names of any length.
constexpr size_t kClientsFileMax = 128_KiB;

Problem cannot(const char* what, const std::string& path, int err) {
  return {fmt::format("the key file {} cannot be {} ({}): check its path, owner and mode",
                      in_quotes(path), what, std::strerror(err))};
}

// What a kind of key is made with.
constexpr const char* kNewAuthKey = "cairn key new auth --output FILE";
constexpr const char* kNewTlsKey = "cairn key new tls --output FILE";
constexpr const char* kClientKey = "echo \"writer NAME $(cairn key new tls)\" >> FILE";
constexpr const char* kNewDriveKey = "cairn key new drive --output FILE";
constexpr const char* kPassword = "openssl rand -base64 24 > FILE";
constexpr const char* kPskTool = "psktool -u NAME -p FILE";
constexpr const char* kOpenSslRequest = "openssl req -newkey rsa:2048 -nodes -keyout KEY -out CSR";
constexpr const char* kOpenSsl = "openssl req -x509 -newkey rsa:2048 -nodes -keyout KEY -out CERT";

Attempt<void> check_owner(int fd, const std::string& path, const char* maker) {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return std::unexpected(cannot("read", path, errno));
  if (!S_ISREG(status.st_mode)) {
    return refuse(fmt::format("{} is no file: name a file with a key, which '{}' makes",
                              in_quotes(path), maker));
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

Result<std::string> take_private_key(std::string_view text) {
  if (text.find("PRIVATE KEY-----") != text.npos) return std::string(text);
  return fail(Errc::kInvalid, "it has no line BEGIN PRIVATE KEY");
}

std::string with_line(const Error& error) {
  return error.detail() == 0 ? error.what() : fmt::format("{} {}", error.what(), error.detail());
}

Result<drive::FileContent> whole_content(std::string_view text) {
  if (text.empty()) return fail(Errc::kInvalid, "it is empty");
  if (text.size() >= drive::kServiceFileMax) return fail(Errc::kInvalid, "it is too long");
  return drive::FileContent(as_bytes(text));
}

Result<Password> whole_password(std::string_view text) {
  if (text.empty()) return fail(Errc::kInvalid, "it is empty");
  if (text.size() > 256) return fail(Errc::kInvalid, "a password has at most 256 bytes");
  return Password(as_bytes(text));
}

// What the file holds, as `parse` understands it.
template <class Key, size_t Max = kKeyFileMax>
Attempt<Key> read_key(const std::string& path, const char* maker,
                      Result<Key> (*parse)(std::string_view)) {
  const posix::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (file.get() < 0) return std::unexpected(cannot("read", path, errno));
  if (const Attempt<void> checked = check_owner(file.get(), path, maker); !checked) {
    return std::unexpected(checked.error());
  }
  crypto::SecretBytes<Max> bytes(Max);
  const ssize_t size = ::pread(file.get(), bytes.mutable_bytes().data(), Max, 0);
  if (size < 0) return std::unexpected(cannot("read", path, errno));
  if (static_cast<size_t>(size) == Max) {
    return refuse(fmt::format("{} is too long for a file of keys: name one that '{}' makes",
                              in_quotes(path), maker));
  }
  std::string_view text = as_text(bytes.bytes().first(static_cast<size_t>(size)));
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  Result<Key> key = parse(text);
  if (!key) {
    return refuse(fmt::format("the key file {} holds no key: {}; '{}' makes one", in_quotes(path),
                              with_line(key.error()), maker));
  }
  return std::move(*key);
}

}  // namespace

Attempt<nvme::AuthSecret> read_key_file(const std::string& path) {
  return read_key(path, kNewAuthKey, &nvme::AuthSecret::parse);
}

Attempt<nvme::TlsKey> read_tls_key_file(const std::string& path) {
  return read_key(path, kNewTlsKey, &nvme::TlsKey::parse);
}

Attempt<door::nbd::NbdKeys> read_psk_file(const std::string& path) {
  return read_key<door::nbd::NbdKeys, kPskFileMax>(path, kPskTool, &door::nbd::NbdKeys::parse);
}

Attempt<rpc::ClientKeys> read_client_keys(const std::string& path,
                                          Result<rpc::ClientKeys> (*parse)(std::string_view)) {
  return read_key<rpc::ClientKeys, kClientsFileMax>(path, kClientKey, parse);
}

Attempt<Password> read_password_file(const std::string& path) {
  return read_key(path, kPassword, &whole_password);
}

Attempt<drive::FileContent> read_service_file(const std::string& path) {
  return read_key(path, kNewDriveKey, &whole_content);
}

Attempt<tls::Certificate> read_certificate(const CertificateFiles& files) {
  tls::Certificate certificate;
  for (const auto& [path, text] : {std::pair{&files.chain, &certificate.chain},
                                   std::pair{&files.clients, &certificate.clients}}) {
    if (path->empty()) continue;
    Attempt<std::string> read = config::read_file(*path, kPskFileMax);
    if (!read) return std::unexpected(read.error());
    *text = std::move(*read);
  }
  Attempt<std::string> key =
      read_key<std::string, kPskFileMax>(files.key, kOpenSsl, &take_private_key);
  if (!key) return std::unexpected(key.error());
  certificate.key = std::move(*key);
  if (const Result<void> checked = tls::check(certificate); !checked) {
    const std::string clients = files.clients.empty() ? "" : " or " + in_quotes(files.clients);
    return refuse(fmt::format("{}, {}{} cannot be used for TLS: {}; '{}' makes a pair",
                              in_quotes(files.chain), in_quotes(files.key), clients,
                              checked.error().what(), kOpenSsl));
  }
  return certificate;
}

Attempt<tls::ClientCertificate> read_client_certificate(const ClientCertificateFiles& files) {
  tls::ClientCertificate certificate;
  for (const auto& [path, text] :
       {std::pair{&files.ca, &certificate.ca}, std::pair{&files.chain, &certificate.chain}}) {
    if (path->empty()) continue;
    Attempt<std::string> read = config::read_file(*path, kPskFileMax);
    if (!read) return std::unexpected(read.error());
    *text = std::move(*read);
  }
  if (!files.key.empty()) {
    Attempt<std::string> key =
        read_key<std::string, kPskFileMax>(files.key, kOpenSslRequest, &take_private_key);
    if (!key) return std::unexpected(key.error());
    certificate.key = std::move(*key);
  }
  if (const Result<void> checked = tls::check(certificate); !checked) {
    const std::string own = files.chain.empty() ? ""
                                                : fmt::format(", {} or {}", in_quotes(files.chain),
                                                              in_quotes(files.key));
    return refuse(
        fmt::format("{}{} cannot be used for TLS: {}: name files of PEM that belong "
                    "together",
                    in_quotes(files.ca), own, checked.error().what()));
  }
  return certificate;
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
  if (options.tls) {
    Attempt<nvme::TlsKey> key = read_tls_key_file(options.tls_key_file);
    if (!key) return std::unexpected(key.error());
    options.tls_key = std::make_shared<const nvme::TlsKey>(std::move(*key));
  }
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

}  // namespace cairn::server
