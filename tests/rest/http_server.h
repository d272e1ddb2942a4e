// SPDX-License-Identifier: Apache-2.0
// HttpServer: objects behind HTTP in a test, by a server that can be told to behave badly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "env/address.h"
#include "env/env.h"
#include "task/gate.h"
#include "task/task.h"

namespace cairn::rest {

struct ServerHabits {
  bool conditions = true;         // honours If-Match and If-None-Match
  bool delete_conditions = true;  // on DELETE too
  bool content_etags = false;     // equal bytes have equal ETags
  bool ranges = true;             // else it sends the whole object
  bool etags_on_put = true;
  bool chunked = false;     // bodies of answers come in chunks
  bool lengthless = false;  // bodies of answers end with the connection
  bool says_continue = false;
};

// What happens to one request.
struct Trouble {
  uint16_t status = 0;        // is all the answer, and nothing is done
  Duration delay{};           // before anything is done
  std::optional<size_t> cut;  // the answer ends after so many bytes, and the connection
  int64_t wrong_length = 0;   // added to the length that the head tells
  std::string instead;        // is sent in place of the answer
};

struct ServedRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;
};

// Lives as long as the test: its objects outlast its process.
class HttpServer {
 public:
  struct Object {
    std::string bytes;
    uint64_t version = 0;
  };

  explicit HttpServer(ServerHabits habits = {}) : habits(habits) {}
  // The body of its process: serves until the world ends.
  task::Task<void> run(env::Env& env, env::Address at);

  ServerHabits habits;
  std::map<std::string, Object> objects;  // by target
  // Asked for each request, in the order in which they arrive.
  std::function<Trouble(const ServedRequest&)> trouble;
  uint64_t requests = 0;
  uint64_t connections = 0;
  // Requests so far of a method.
  std::map<std::string, uint64_t> count;
  // As another writer would.
  void replace(const std::string& target, std::string bytes);

 private:
  struct Answer {
    uint16_t status = 0;
    std::string fields;
    std::string body;
  };
  task::Task<void> serve(env::Env& env, std::unique_ptr<env::Stream> stream);
  Answer answer(const ServedRequest& request);
  Answer get(const ServedRequest& request, const Object& object) const;
  std::string etag(const Object& object) const;
  bool condition_holds(const ServedRequest& request) const;
  std::string text_of(const ServedRequest& request, const Answer& answer, const Trouble& now) const;

  uint64_t next_version_ = 1;
};

}  // namespace cairn::rest
