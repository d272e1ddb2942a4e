// SPDX-License-Identifier: Apache-2.0
// Session: one connection, from its first request to its last reply.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "door/resp/command.h"
#include "door/resp/door_state.h"
#include "door/resp/request_decoder.h"
#include "env/stream.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::door::resp {

// Requests that came together run together as long as no key of one is changed by another; replies
// leave in the order of requests. While replies cannot leave, nothing more is read.
class Session {
 public:
  // `on_authenticated` is called once, when the client may do what needs a password.
  Session(DoorState& door, ClientState& client, env::Stream& stream,
          std::function<void()> on_authenticated);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // The client's whole life. Ends by itself, or soon after client.end is requested.
  task::Task<void> run();
  // Takes no more requests; those that have arrived are answered.
  void drain() { receiving_.request(); }

 private:
  // A request and its reply on their way. Its address stays.
  struct Running {
    RequestArgs request;
    Reply reply;
    std::optional<Call> call;
    task::Task<void> task;
  };

  task::Task<Result<env::Chunk>> receive();
  task::Task<void> serve(std::string_view bytes);
  // What the words ask for; null: they are refused, or queued, and the reply says so.
  const Command* admit(Args args, Reply& reply);
  // Why a command is refused, without a code but for NOAUTH; empty: it is not.
  std::string refusal(const Command& command, Args args) const;
  void queue(const Command& command, Args args, Reply& reply);
  void start(const Command& command);
  // Whether the command has to wait for those that are running.
  bool depends(const Command& command, Args args) const;
  task::Task<void> finish_first();
  task::Task<void> finish_all();
  void emit(Reply& reply);
  task::Task<void> flush();
  // Says why the bytes make no sense, and has the client hear it.
  task::Task<void> end_badly(std::string problem);
  // Notes what memory this client has; too much of all together costs the largest its connection.
  void account();
  void note_authentication();

  DoorState& door_;
  ClientState& client_;
  env::Stream& stream_;
  std::function<void()> on_authenticated_;
  task::CancelSource receiving_;
  RequestDecoder decoder_;
  std::unique_ptr<Running> next_;
  std::deque<std::unique_ptr<Running>> running_;  // in the order of requests
  std::string out_;                               // replies that leave next
  std::string sending_;                           // lent to the stream
};

}  // namespace cairn::door::resp
