// SPDX-License-Identifier: Apache-2.0
// How a host asks a box for space: a vendor-specific admin command of NVMe.
//
// Opcode C1h carries a SpaceRequest (rack/record_format.h) to the controller. Success has the nsid
// in dword 0. So who may ask is who may connect: lists of hosts, authentication and TLS of the
// subsystem hold here as for every other command.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "env/env.h"
#include "fabric/host/options.h"
#include "nvme/controller/answer.h"
#include "nvme/format/opcode_format.h"
#include "rack/tenant.h"
#include "task/cancel.h"
#include "task/task.h"

namespace cairn::rack {

inline constexpr auto kSpaceOpcode = nvme::AdminOpcode::kVendorSend;

// What the box answers, and what the host understands: error_of_answer(answer_of(x)) has x's code,
// where that is one of Lender::ask.
nvme::Answer answer_of(const Result<uint32_t>& outcome);
Result<uint32_t> outcome_of(nvme::Status status, uint32_t dword0);

// Boxes asked over NVMe/TCP, with a connection for each question; it has no I/O queues, so that it
// does not count as a use of the owner's drives.
class NvmePeers final : public Peers {
 public:
  // `host`: who asks, with its keys.
  NvmePeers(env::Env& env, fabric::HostOptions host) : env_(env), host_(std::move(host)) {}

  task::Task<Result<uint32_t>> ask(Endpoint place, SpaceRequest request,
                                   task::CancelToken token) override;

 private:
  env::Env& env_;
  fabric::HostOptions host_;
};

}  // namespace cairn::rack
