// SPDX-License-Identifier: Apache-2.0
// Files that hold one key, of DH-HMAC-CHAP or of TLS, and are nobody's business but their owner's.
#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"
#include "crypto/secret.h"
#include "door/nbd/keys.h"
#include "fabric/host/options.h"
#include "nvme/auth/auth_secret.h"
#include "nvme/auth/tls_key.h"
#include "rpc/client_keys.h"
#include "service/common/files.h"
#include "tls/certificate.h"

namespace cairn::server {

// The secret in a file that only its owner may read, this user or root. The Problem names the file
// and what to do, and shows none of what is in it.
Attempt<nvme::AuthSecret> read_key_file(const std::string& path);
Attempt<nvme::TlsKey> read_tls_key_file(const std::string& path);
// The keys of NBD clients, as psktool writes them.
Attempt<door::nbd::NbdKeys> read_psk_file(const std::string& path);
// Who may use a rack's metadata; `parse` is that of rack/client_keys.h, which libcairn lacks.
Attempt<rpc::ClientKeys> read_client_keys(const std::string& path,
                                          Result<rpc::ClientKeys> (*parse)(std::string_view));

// The password of a key-value door, for its server and its clients.
using Password = crypto::SecretBytes<256>;
Attempt<Password> read_password_file(const std::string& path);

// What a service of a stack gets of a file it names; for keys of drives.
Attempt<drive::FileContent> read_service_file(const std::string& path);

// What a server shows: files of PEM, of which the key is its owner's alone. `clients` may be empty.
struct CertificateFiles {
  std::string chain;
  std::string key;
  std::string clients;
};
Attempt<tls::Certificate> read_certificate(const CertificateFiles& files);

// The same of a client: who signs servers' certificates, and what it shows, which may be nothing.
struct ClientCertificateFiles {
  std::string ca;
  std::string chain;
  std::string key;
};
Attempt<tls::ClientCertificate> read_client_certificate(const ClientCertificateFiles& files);

// Makes a new file of mode 0600 with this text, durable when done. A file that exists stays as it
// is.
Attempt<void> write_key_file(const std::string& path, std::string_view text);

// Reads the key files that the options name, if any, into their credentials.
Attempt<void> load_credentials(fabric::HostOptions& options);

}  // namespace cairn::server
