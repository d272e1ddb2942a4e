// SPDX-License-Identifier: Apache-2.0
#include "meta/etcd_process.h"

#include <fcntl.h>       // lint: allow(a child's output)
#include <netinet/in.h>  // lint: allow(free ports for a plain program)
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>  // lint: allow(free ports for a plain program)
#include <sys/wait.h>
#include <unistd.h>  // lint: allow(a child)

#include <array>
#include <cstdlib>
#include <fstream>  // lint: allow(certificates of a plain program)
#include <iterator>
#include <string>
#include <vector>

#include "base/check.h"
#include "meta/etcd/certificate_security.h"

namespace cairn::meta_tests {

namespace {

constexpr const char* kProgram = "/usr/bin/etcd";

// Two that were free a moment ago: both are held until both are known.
std::array<uint16_t, 2> free_ports() {
  std::array<int, 2> sockets{};
  std::array<uint16_t, 2> ports{};
  for (size_t i = 0; i < 2; ++i) {
    sockets[i] = ::socket(AF_INET, SOCK_STREAM, 0);  // lint: allow(plain program)
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(at);
    auto* generic = reinterpret_cast<sockaddr*>(&at);
    CHECK(::bind(sockets[i], generic, length) == 0);  // lint: allow(plain program)
    CHECK(::getsockname(sockets[i], generic, &length) == 0);
    ports[i] = ntohs(at.sin_port);
  }
  for (const int socket : sockets) ::close(socket);  // lint: allow(plain program)
  return ports;
}

// A CA, and signed by it what etcd and its client show. etcd's gateway is a client of etcd's own.
constexpr const char* kMakeCertificates = R"(
set -e; exec >openssl.log 2>&1
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $new -days 2 -subj /CN=ca -keyout ca.key -out ca.pem
printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >etcd.ext
printf 'extendedKeyUsage=clientAuth\n' >client.ext
for name in etcd client; do
  openssl req $new -subj /CN=$name -keyout $name.key -out $name.csr
  openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
    -extfile $name.ext -out $name.pem
done
)";

std::string contents(const std::string& path) {
  std::ifstream file(path);  // lint: allow(certificates of a plain program)
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

bool EtcdProcess::is_installed() { return ::access(kProgram, X_OK) == 0; }

EtcdProcess::EtcdProcess(Tls tls) : tls_(tls) {
  if (tls == Tls::kYes) {
    const std::string make = "cd '" + folder_.path() + "'" + kMakeCertificates;
    CHECK(std::system(make.c_str()) == 0, "openssl makes certificates");
  }
  const std::array<uint16_t, 2> ports = free_ports();
  port_ = ports[0];
  peer_port_ = ports[1];
  start();
}

EtcdProcess::~EtcdProcess() {
  if (process_ > 0) kill();
}

void EtcdProcess::start() {
  const bool is_secure = tls_ == Tls::kYes;
  const std::string at =
      (is_secure ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port_);
  const std::string peer = "http://127.0.0.1:" + std::to_string(peer_port_);
  // A short election makes for short leases, and for a quick start.
  std::vector<std::string> args = {kProgram,
                                   "--data-dir=" + folder_.file("data"),
                                   "--listen-client-urls=" + at,
                                   "--advertise-client-urls=" + at,
                                   "--listen-peer-urls=" + peer,
                                   "--initial-advertise-peer-urls=" + peer,
                                   "--initial-cluster=default=" + peer,
                                   "--heartbeat-interval=20",
                                   "--election-timeout=200"};
  if (is_secure) {
    args.insert(args.end(), {"--client-cert-auth", "--trusted-ca-file=" + folder_.file("ca.pem"),
                             "--cert-file=" + folder_.file("etcd.pem"),
                             "--key-file=" + folder_.file("etcd.key")});
  }
  std::vector<char*> argv;
  argv.reserve(args.size() + 1);
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const std::string log = folder_.file("log");
  process_ = ::fork();
  CHECK(process_ >= 0);
  if (process_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it does not outlive a test that dies
  const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);  // lint: allow(log)
  ::dup2(output, 1);
  ::dup2(output, 2);
  ::execv(kProgram, argv.data());
  ::_exit(127);
}

meta::etcd::LinesOptions EtcdProcess::client_options(Shows shows) const {
  meta::etcd::LinesOptions options{.servers = {address()}, .timeout = 60_s};
  if (tls_ == Tls::kNo) return options;
  tls::ClientCertificate certificate{.ca = contents(folder_.file("ca.pem"))};
  if (shows == Shows::kCertificate) {
    certificate.chain = contents(folder_.file("client.pem"));
    certificate.key = contents(folder_.file("client.key"));
  }
  CHECK(tls::check(certificate).has_value());
  options.security = std::make_shared<const meta::etcd::CertificateSecurity>(certificate, "");
  return options;
}

void EtcdProcess::kill() {
  ::kill(process_, SIGKILL);
  CHECK(::waitpid(process_, nullptr, 0) == process_);
  process_ = -1;
}

}  // namespace cairn::meta_tests
