// SPDX-License-Identifier: Apache-2.0
// Flow: whom a caller may send its next request, by what nodes said of their free tokens (LEED,
// Algorithm 1).
//
// A request goes where tokens for it are; without them only to a node that has no other of its kind
// from this caller. So nobody waits for a word that is not on its way, and a node that is slow, or
// says that it has nothing, is asked less by itself. What a node says is believed up to
// kBelievedMax: one that boasts gets no more than any other that is idle, and is passed over while
// it does not answer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "env/env.h"
#include "kv/chain/peers.h"
#include "kv/ring/view.h"
#include "task/cancel.h"
#include "task/sync.h"
#include "task/task.h"

namespace cairn::kv::chain {

inline constexpr uint32_t kBelievedMax = 8 * kCallsPerHop;
inline constexpr Duration kProbeAfter = 50_ms;  // who was silent for so long is asked again

// One core. Outlives its passages.
class Flow {
 public:
  // Without tokens it sends everything at once, to any of the nodes.
  Flow(env::Env& env, bool uses_tokens) : env_(env), uses_tokens_(uses_tokens) {}

  // Reads and writes are counted apart: a read does not wait for a chain that is broken.
  enum class Kind : uint8_t { kRead, kWrite };

  // A request under way, from take() until the node has answered, or has not.
  class Passage {
   public:
    Passage(Passage&& other) noexcept
        : flow_(std::exchange(other.flow_, nullptr)), member_(other.member_), kind_(other.kind_) {}
    Passage& operator=(Passage&&) = delete;
    ~Passage() {
      if (flow_ != nullptr) flow_->end(member_, kind_, std::nullopt);
    }
    ring::MemberId member() const { return member_; }
    // It did what it was asked, and said so. Without that it has failed.
    void answered(uint32_t tokens) { std::exchange(flow_, nullptr)->end(member_, kind_, tokens); }

   private:
    friend class Flow;
    Passage(Flow& flow, ring::MemberId member, Kind kind)
        : flow_(&flow), member_(member), kind_(kind) {}
    Flow* flow_;
    ring::MemberId member_;
    Kind kind_;
  };

  struct Wanted {
    Kind kind = Kind::kRead;
    uint32_t cost = 0;
    std::vector<ring::MemberId> nodes;        // any of them will do; at least one
    std::optional<ring::MemberId> preferred;  // of those, if it may be asked: the one here
  };
  // Waits until one of the nodes may be asked. By the token.
  task::Task<Result<Passage>> take(Wanted wanted, task::CancelToken token);

  // What a node is believed to have left. 0: nothing is known of it.
  uint32_t tokens(ring::MemberId member) const;
  size_t waiting() const { return waiting_.size(); }

 private:
  struct Node {
    uint32_t tokens = 0;
    std::array<uint32_t, 2> under_way{};  // by kind
    uint32_t failures = 0;                // in a row
    std::optional<Time> heard;            // the end of the last one
  };
  struct Waiting {
    const Wanted& wanted;
    std::optional<ring::MemberId> granted;
    task::Event moved;
  };
  bool may_be_asked(ring::MemberId member, const Wanted& wanted);
  bool is_to_be_probed(const Node& node, Kind kind) const;
  std::optional<ring::MemberId> choose(const Wanted& wanted, std::span<const ring::MemberId> from);
  ring::MemberId draw(std::span<const ring::MemberId> from);
  void begin(ring::MemberId member, const Wanted& wanted);
  void end(ring::MemberId member, Kind kind, std::optional<uint32_t> tokens);
  // Lets those go on that may, in the order in which they came.
  void serve();

  env::Env& env_;
  const bool uses_tokens_;
  std::map<ring::MemberId, Node> nodes_;
  std::list<Waiting> waiting_;
};

}  // namespace cairn::kv::chain
