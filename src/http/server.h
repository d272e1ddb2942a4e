// SPDX-License-Identifier: Apache-2.0
// Server: read-only pages over HTTP/1.1, with GET and HEAD and nothing else.
//
// Clients may be slow, hostile or dead: connections, heads, waits and requests of one connection
// are bounded, and when all places are taken the client that has been idle longest is disconnected.
// So a client that holds connections open does not lock others out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/list.h"
#include "base/units.h"
#include "env/env.h"
#include "http/request.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::http {

struct ServerLimits {
  size_t connections_max = 32;
  uint32_t requests_max = 1000;   // of one connection, which ends then
  Duration head_timeout = 5_s;    // from the first byte of a request to the last of its head
  Duration idle_timeout = 75_s;   // until the first byte; Prometheus comes every 15 to 60 s
  Duration write_timeout = 10_s;  // for the client to read an answer
  Duration linger_timeout = 1_s;  // for a client that was refused to read why
};

// What a page is made for.
struct Asked {
  std::string query;
  std::string host;           // that the client meant, with its port
  std::string authorization;  // what it shows; empty: nothing
  env::Address peer;
  env::Address local;  // where it came to
};

struct Page {
  Status status = Status::kOk;
  std::string_view type = "text/plain; charset=utf-8";  // lives as long as the server
  std::string body;
};

// On one core. Closed before it is destroyed, and before what its pages speak of.
class Server {
 public:
  using Make = std::function<task::Task<Page>(Asked asked)>;

  explicit Server(env::Env& env, const ServerLimits& limits = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // A page at a path such as "/metrics". Before it listens.
  void add(std::string path, Make make) { pages_[std::move(path)] = std::move(make); }
  // Begins to accept. Gives the address with the port that was chosen. Errors as Env::listen.
  Result<env::Address> listen(const env::Address& at);
  // Stops accepting and ends every connection; waits for pages that are being made.
  task::Task<void> close();

  size_t connections() const { return connections_; }
  uint64_t refused() const { return refused_; }  // connections without a place
  // How many requests were answered so.
  const std::map<Status, uint64_t>& answered() const { return answered_; }

 private:
  struct Client;
  task::Task<void> serve(env::Connection connection, env::Address local);
  task::Task<void> serve_requests(Client& client);
  // Whether another request may follow.
  task::Task<bool> serve_one(Client& client);
  task::Task<Page> make_page(Client& client, RequestHead request);
  task::Task<Result<void>> answer(Client& client, Page page, bool keep_alive, bool is_head);
  task::Task<void> refuse(Client& client, Status status);
  bool has_place(env::Stream& stream);

  env::Env& env_;
  const ServerLimits limits_;
  std::map<std::string, Make, std::less<>> pages_;
  std::vector<std::unique_ptr<env::Listener>> listeners_;
  List<Client> silent_;  // clients that nothing is being done for, the longest first
  size_t connections_ = 0;
  uint64_t refused_ = 0;
  std::map<Status, uint64_t> answered_;
  task::CancelSource stop_;
  task::Gate accepting_;
  task::Gate gate_;  // of connections
};

}  // namespace cairn::http
