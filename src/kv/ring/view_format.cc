// SPDX-License-Identifier: Apache-2.0
#include "kv/ring/view_format.h"

#include <algorithm>
#include <optional>

#include "base/crc32c.h"
#include "base/message_coder.h"
#include "env/address.h"

namespace cairn::kv::ring {

namespace {

constexpr size_t kHeadSize = 16;
constexpr uint8_t kVersion = 2;
enum class RecordKind : uint8_t { kView = 1, kNode = 2 };

// A replica as it lies in a view.
struct WireReplica {
  uint16_t member = 0;
  Replica::State state = Replica::State::kRunning;
};
struct WireRange {
  uint64_t end = 0;
  Epoch epoch;
  std::vector<WireReplica> chain;
};
struct WireView {
  Epoch epoch;
  uint32_t replicas = 0;
  std::vector<Member> members;
  std::vector<WireRange> ranges;
};

template <class Coder>
struct Layout {
  Coder& coder;
  void operator()(Member::State& v) {
    choice(coder, v, Member::State::kHere, Member::State::kLeaving);
  }
  void operator()(Replica::State& v) {
    choice(coder, v, Replica::State::kRunning, Replica::State::kLeaving);
  }
  void operator()(Member& v) {
    fields(coder, v.id, v.incarnation, v.address, v.name, v.resp, v.location.machine,
           v.location.rack, v.drives, v.state);
  }
  void operator()(WireReplica& v) { fields(coder, v.member, v.state); }
  void operator()(WireRange& v) { fields(coder, v.end, v.epoch, v.chain); }
  void operator()(WireView& v) { fields(coder, v.epoch, v.replicas, v.members, v.ranges); }
  void operator()(std::pair<uint64_t, Epoch>& v) { fields(coder, v.first, v.second); }
  void operator()(NodeRecord& v) { fields(coder, v.member, v.seen, v.copied); }
};

std::string wrap(RecordKind kind, const std::string& body) {
  FieldWriter head;
  head.out = "CKVR";
  head.number(static_cast<uint8_t>(kind));
  head.number(kVersion);
  head.number(uint16_t{0});
  head.number(static_cast<uint32_t>(body.size()));
  head.number(crc32c(as_bytes(body), crc32c(as_bytes(head.out))));
  return head.out + body;
}

std::unexpected<Error> senseless() { return fail(Errc::kCorrupt, "a ring record makes no sense"); }

Result<Bytes> unwrap(RecordKind kind, Bytes bytes) {
  if (bytes.size() < kHeadSize || as_text(bytes.first(4)) != "CKVR") return senseless();
  const Bytes body = bytes.subspan(kHeadSize);
  if (load<uint32_t>(bytes.subspan(8)) != body.size() ||
      load<uint32_t>(bytes.subspan(12)) != crc32c(body, crc32c(bytes.first(12)))) {
    return senseless();
  }
  if (load<uint8_t>(bytes.subspan(5)) != kVersion) {
    return fail(Errc::kUnsupported, "a ring record is of another version");
  }
  if (load<uint8_t>(bytes.subspan(4)) != static_cast<uint8_t>(kind) ||
      load<uint16_t>(bytes.subspan(6)) != 0) {
    return senseless();
  }
  return body;
}

bool is_address(const std::string& text) {
  const Result<env::Address> at = env::Address::parse(text);
  return text.size() <= kNameMax && at && at->text() == text;
}

bool is_sound(const Member& member) {
  return member.id.value() != 0 && member.drives >= 1 && member.drives <= kDrivesMax &&
         member.name.size() <= kNameMax && member.location.machine.size() <= kNameMax &&
         member.location.rack.size() <= kNameMax && is_address(member.address) &&
         (member.resp.empty() || is_address(member.resp));
}

bool is_sound(const RingRange& range, Epoch newest) {
  if (range.chain.empty() || range.epoch > newest || range.chain.size() > kReplicasMax + 2) {
    return false;
  }
  for (size_t i = 0; i < range.chain.size(); ++i) {
    const Replica& each = range.chain[i];
    if (range.position(each.member) != i) return false;
    if (each.state == Replica::State::kJoining && i + 1 != range.chain.size()) return false;
  }
  return range.running() > 0;
}

bool is_sound(const View& view) {
  if (view.epoch.value() == 0 || view.replicas < 1 || view.replicas > kReplicasMax ||
      view.members.size() > kMembersMax || view.ranges.empty() || view.ranges.size() > kRangesMax) {
    return false;
  }
  for (size_t i = 0; i < view.members.size(); ++i) {
    if (!is_sound(view.members[i])) return false;
    if (i > 0 && view.members[i].id <= view.members[i - 1].id) return false;
  }
  for (size_t i = 0; i < view.ranges.size(); ++i) {
    if (!is_sound(view.ranges[i], view.epoch)) return false;
    if (i > 0 && view.ranges[i].end <= view.ranges[i - 1].end) return false;
  }
  return true;
}

}  // namespace

std::string encode(const View& view) {
  WireView wire{
      .epoch = view.epoch, .replicas = view.replicas, .members = view.members, .ranges = {}};
  for (const RingRange& range : view.ranges) {
    WireRange& into = wire.ranges.emplace_back(WireRange{range.end, range.epoch, {}});
    for (const Replica& each : range.chain) {
      const auto found = std::ranges::lower_bound(view.members, each.member, {}, &Member::id);
      into.chain.push_back({static_cast<uint16_t>(found - view.members.begin()), each.state});
    }
  }
  return wrap(RecordKind::kView, encode_message<Layout>(std::move(wire)));
}

std::string encode(const NodeRecord& node) {
  return wrap(RecordKind::kNode, encode_message<Layout>(node));
}

Result<View> decode_view(Bytes bytes) {
  const Result<Bytes> body = unwrap(RecordKind::kView, bytes);
  if (!body) return fail(body.error());
  std::optional<WireView> wire = decode_message<Layout, WireView>(*body);
  if (!wire) return senseless();
  View view{.epoch = wire->epoch,
            .replicas = wire->replicas,
            .members = std::move(wire->members),
            .ranges = {}};
  for (const WireRange& range : wire->ranges) {
    RingRange& into = view.ranges.emplace_back(RingRange{range.end, range.epoch, {}});
    for (const WireReplica& each : range.chain) {
      if (each.member >= view.members.size()) return senseless();
      into.chain.push_back({view.members[each.member].id, each.state});
    }
  }
  if (!is_sound(view)) return senseless();
  return view;
}

Result<NodeRecord> decode_node(Bytes bytes) {
  const Result<Bytes> body = unwrap(RecordKind::kNode, bytes);
  if (!body) return fail(body.error());
  std::optional<NodeRecord> node = decode_message<Layout, NodeRecord>(*body);
  if (!node || !is_sound(node->member) || node->copied.size() > kRangesMax) return senseless();
  return std::move(*node);
}

}  // namespace cairn::kv::ring
