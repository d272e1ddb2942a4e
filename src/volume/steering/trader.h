// SPDX-License-Identifier: Apache-2.0
// Trader: joins the market of the arbiter that leads, learns from it where drives stand in the view
// and how they are doing, and asks it for slices.
//
// One call at a time. A market that is away or another one than before is looked for until it is
// found; slices know by themselves what to do meanwhile.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "env/env.h"
#include "rpc/client.h"
#include "share/trade_messages.h"
#include "share/trade_wire_format.h"
#include "task/cancel.h"
#include "task/gate.h"
#include "task/sync.h"
#include "task/task.h"
#include "volume/steering/route.h"

namespace cairn::volume {

class Steering;

class Trader {
 public:
  Trader(env::Env& env, Steering& steering, std::string client);
  // Once. The market is told, if it answers.
  task::Task<void> close();

  // Another drive.
  void met(Route& route);
  // There may be something to ask.
  void hurry() { wake_.set(); }
  bool is_joined() const { return market_ != 0; }

 private:
  task::Task<void> run();
  task::Task<Result<void>> join();
  task::Task<Result<void>> exchange();
  template <class Reply, class Request>
  task::Task<Result<Reply>> ask(share::TradeCall call, Request request);
  Time due_at() const;
  void place(Route& route);
  // Sessions of the view by which the drives are reached.
  void open_sessions();
  std::vector<share::SliceRequest> requests(Time now);
  void take(const share::TradeReply& reply);
  void note_silence();

  env::Env& env_;
  Steering& steering_;
  const std::string client_name_;
  rpc::Client client_;
  uint64_t market_ = 0;  // none: it has to join
  uint64_t ticket_ = 0;
  Time joined_{};
  Time asked_{};
  std::map<std::string, share::DrivePlace> places_;
  std::map<std::pair<std::string, uint16_t>, view::SessionId> sessions_;  // by box and port
  task::Event wake_;
  task::CancelSource stop_;
  task::Gate gate_;
};

}  // namespace cairn::volume
