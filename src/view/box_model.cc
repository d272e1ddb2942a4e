// SPDX-License-Identifier: Apache-2.0
#include "view/box_model.h"

#include <algorithm>
#include <cstddef>

#include "base/check.h"

namespace cairn::view {

namespace {

constexpr size_t at(Direction direction) { return static_cast<size_t>(direction); }
constexpr size_t at(IoType type) { return static_cast<size_t>(type); }
// Where the bytes of a request go.
constexpr Direction loaded_by(IoType type) {
  return type == IoType::kWrite ? Direction::kIngress : Direction::kEgress;
}
constexpr std::array kBoth = {Direction::kIngress, Direction::kEgress};

}  // namespace

Duration lower_median(std::vector<Duration> values) {
  CHECK(!values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

BoxModel::Sum& BoxModel::Sum::operator+=(const Sum& other) {
  ops += other.ops;
  bytes += other.bytes;
  for (size_t i = 0; i < kSizeClasses; ++i) sizes[i] += other.sizes[i];
  return *this;
}

BoxModel::FlowSum& BoxModel::FlowSum::operator+=(const FlowSum& other) {
  for (size_t type = 0; type < types.size(); ++type) {
    types[type] += other.types[type];
    delay_ns[type] += other.delay_ns[type];
  }
  for (size_t i = 0; i < kRttBuckets; ++i) rtts[i] += other.rtts[i];
  return *this;
}

BoxModel::BoxModel(BoxId id, BoxSpec spec)
    : id_(id),
      spec_(std::move(spec)),
      components_((spec_.ports * 3) + (spec_.drives.size() * 2)),
      pipe_delays_(spec_.ports) {
  CHECK(check_box(spec_).has_value());
  for (const DriveSpec& drive : spec_.drives) estimates_.emplace_back(drive.profile);
}

bool BoxModel::has(ComponentId id) const {
  const bool is_of_drive = id.kind == Kind::kIoPipe || id.kind == Kind::kDrive;
  return id.box == id_ && id.kind <= Kind::kDrive &&
         id.index < (is_of_drive ? spec_.drives.size() : spec_.ports);
}

size_t BoxModel::index_of(ComponentId id) const {
  CHECK(has(id));
  const auto kind = static_cast<size_t>(id.kind);
  if (id.kind <= Kind::kIoPort) return (kind * spec_.ports) + id.index;
  return (3UL * spec_.ports) + ((kind - 3) * spec_.drives.size()) + id.index;
}

uint64_t BoxModel::capacity_of(ComponentId id) const {
  const bool is_of_drive = id.kind == Kind::kIoPipe || id.kind == Kind::kDrive;
  return is_of_drive ? spec_.drives[id.index].profile.bytes_per_s : spec_.port_bytes_per_s;
}

Duration BoxModel::without_transfer(const IoVector& vector) const {
  const uint64_t rate = spec_.drives[vector.drive].profile.bytes_per_s;
  const auto transfer = static_cast<int64_t>(uint64_t{vector.bytes} * 1'000'000'000 / rate);
  return {std::max<int64_t>(vector.rtt.ns - transfer, 0)};
}

BoxModel::Flow* BoxModel::flow_of(const Origin& origin, uint16_t drive) {
  const FlowKey key{.client = origin.key, .session = origin.session.id, .drive = drive};
  const auto found = flows_.find(key);
  if (found != flows_.end()) return &found->second;
  size_t& count = flow_counts_[origin.key];
  if (flows_.size() >= kFlowsMax || count >= kFlowsPerClient) return nullptr;
  ++count;
  Flow& flow = flows_[key];
  flow.client = origin.client;
  flow.volume = origin.session.volume;
  flow.port = origin.session.port;
  return &flow;
}

BoxModel::Verdict BoxModel::add(const Origin& origin, const IoVector& vector, Time stamp,
                                Time now) {
  const uint16_t port = origin.session.port;
  if (port >= spec_.ports || vector.drive >= spec_.drives.size() || vector.rtt.ns <= 0 ||
      vector.rtt > kRttMax || vector.bytes > kIoBytesMax) {
    return Verdict::kRefused;
  }
  if (!Sliding<Sum>::is_in_time(stamp, now)) return Verdict::kLate;
  // No port carries more than it can, whatever a client says; a quarter is left for completions
  // that come together.
  Sliding<Bytes>& carried = carried_[{origin.key, port}];
  if (carried.newest(now).bytes > spec_.port_bytes_per_s / 4) return Verdict::kRefused;
  Flow* flow = flow_of(origin, vector.drive);
  if (flow == nullptr) return Verdict::kRefused;
  carried.add(stamp, now, {.bytes = vector.bytes});

  const size_t type = at(vector.type);
  FlowSum of_flow;
  of_flow.types[type] = {.ops = 1, .bytes = vector.bytes, .sizes = {}};
  of_flow.types[type].sizes[size_class(vector.bytes)] = 1;
  of_flow.delay_ns[type] = without_transfer(vector).ns;
  of_flow.rtts[rtt_bucket(vector.rtt)] = 1;
  flow->sums.add(stamp, now, of_flow);

  for (const ComponentId id : path_of(id_, port, vector.drive)) {
    Component& component = components_[index_of(id)];
    ++component.recency;
    for (const Direction direction : kBoth) {
      Sum sum = of_flow.types[type];
      if (direction != loaded_by(vector.type)) sum.bytes = 0;
      component.sums[at(direction)].add(stamp, now, sum);
    }
  }
  return Verdict::kCounted;
}

void BoxModel::advance(Time now) {
  // After a long sleep what was before is over: averages begin anew instead of aging for ages.
  if (now - next_fold_ > 10 * kWindow) {
    for (Component& component : components_) {
      for (const Direction direction : kBoth) {
        component.bytes[at(direction)].clear();
        component.ops[at(direction)].clear();
      }
    }
    next_fold_ = now + kWindow;
  }
  while (next_fold_ <= now) {
    for (Component& component : components_) {
      for (const Direction direction : kBoth) {
        const Sum sum = component.sums[at(direction)].current(next_fold_);
        component.bytes[at(direction)].add(per_second(sum.bytes));
        component.ops[at(direction)].add(per_second(sum.ops));
      }
    }
    next_fold_ = next_fold_ + kWindow;
  }
  if (now < next_epoch_) return;
  next_epoch_ = now + kEpoch;
  estimate(now);
  forget_flows(now);
}

std::vector<BoxModel::Mean> BoxModel::means(Time now) const {
  std::vector<Mean> all;
  all.reserve(flows_.size());
  for (const auto& [key, flow] : flows_) {
    const FlowSum sum = flow.sums.current(now);
    Mean mean{.client = key.client, .port = flow.port, .drive = key.drive, .delays = {}};
    for (size_t type = 0; type < 2; ++type) {
      if (sum.types[type].ops == 0) continue;
      mean.bytes_per_s[type] = per_second(sum.types[type].bytes);
      mean.delays[type] = Duration{sum.delay_ns[type]} / static_cast<int64_t>(sum.types[type].ops);
    }
    all.push_back(mean);
  }
  return all;
}

// What a full NetPipe makes wait is common to all drives behind it, so it is taken away first; of
// the paths to a drive the quickest then tells most about the drive.
void BoxModel::estimate(Time now) {
  const std::vector<Mean> all = means(now);
  estimate_pipes(all, now);
  std::vector<DriveEstimate::Sample> samples(estimates_.size());
  std::array<std::map<std::pair<uint16_t, ClientKey>, Duration>, 2> quickest;
  for (const Mean& mean : all) {
    samples[mean.drive].read_bytes_per_s += mean.bytes_per_s[at(IoType::kRead)];
    samples[mean.drive].write_bytes_per_s += mean.bytes_per_s[at(IoType::kWrite)];
    for (const IoType type : {IoType::kRead, IoType::kWrite}) {
      if (!mean.delays[at(type)]) continue;
      const Duration of_pipe = pipe_delays_[mean.port][at(loaded_by(type))];
      const Duration of_drive = std::max(*mean.delays[at(type)] - of_pipe, Duration{});
      const auto [place, is_new] =
          quickest[at(type)].try_emplace({mean.drive, mean.client}, of_drive);
      if (!is_new) place->second = std::min(place->second, of_drive);
    }
  }
  for (const IoType type : {IoType::kRead, IoType::kWrite}) {
    std::map<uint16_t, std::vector<Duration>> by_drive;
    for (const auto& [key, delay] : quickest[at(type)]) by_drive[key.first].push_back(delay);
    for (auto& [drive, delays] : by_drive) {
      DriveEstimate::Sample& sample = samples[drive];
      (type == IoType::kRead ? sample.read_delay : sample.write_delay) =
          lower_median(std::move(delays));
    }
  }
  for (size_t i = 0; i < estimates_.size(); ++i) estimates_[i].update(samples[i]);
}

bool BoxModel::is_at_limit(ComponentId id, Direction direction, Time now) const {
  const Component& component = components_[index_of(id)];
  const uint64_t used = per_second(component.sums[at(direction)].current(now).bytes);
  return used >= capacity_of(id) / 10 * 9;
}

// A NetPipe with room makes nobody wait. In a full one each request waited at least as long as the
// quickest of its client did.
void BoxModel::estimate_pipes(const std::vector<Mean>& means, Time now) {
  for (uint16_t port = 0; port < spec_.ports; ++port) {
    for (const IoType type : {IoType::kRead, IoType::kWrite}) {
      const Direction direction = loaded_by(type);
      pipe_delays_[port][at(direction)] = {};
      const ComponentId pipe{.box = id_, .kind = Kind::kNetPipe, .index = port};
      if (!is_at_limit(pipe, direction, now)) continue;
      std::map<ClientKey, Duration> of_clients;
      for (const Mean& mean : means) {
        if (mean.port != port || !mean.delays[at(type)]) continue;
        const Duration delay = *mean.delays[at(type)];
        const auto [place, is_new] = of_clients.try_emplace(mean.client, delay);
        if (!is_new) place->second = std::min(place->second, delay);
      }
      std::vector<Duration> delays;
      for (const auto& [client, delay] : of_clients) delays.push_back(delay);
      if (!delays.empty()) pipe_delays_[port][at(direction)] = lower_median(std::move(delays));
    }
  }
}

void BoxModel::forget_flows(Time now) {
  std::erase_if(flows_, [&](const auto& each) {
    if (!each.second.sums.is_over(now)) return false;
    const auto count = flow_counts_.find(each.first.client);
    if (--count->second == 0) flow_counts_.erase(count);
    return true;
  });
  std::erase_if(carried_, [&](const auto& each) { return each.second.is_over(now); });
}

Traffic BoxModel::traffic(const Sum& sum) {
  return {
      .bytes_per_s = per_second(sum.bytes), .ops_per_s = per_second(sum.ops), .sizes = sum.sizes};
}

ComponentView BoxModel::component(ComponentId id, Time now) const {
  const Component& of = components_[index_of(id)];
  ComponentView view{.id = id, .recency = of.recency, .capacity = capacity_of(id)};
  for (const Direction direction : kBoth) {
    view.traffic[at(direction)] = {.now = traffic(of.sums[at(direction)].current(now)),
                                   .average_bytes_per_s = of.bytes[at(direction)].value(),
                                   .average_ops_per_s = of.ops[at(direction)].value()};
  }
  if (id.kind == Kind::kNetPipe) {
    view.delay = std::max(pipe_delays_[id.index][0], pipe_delays_[id.index][1]);
  }
  if (id.kind == Kind::kDrive) {
    view.drive = estimates_[id.index].view();
    view.delay = std::max(view.drive->read_delay, view.drive->write_delay);
  }
  return view;
}

void BoxModel::append_components(Time now, std::vector<ComponentView>& to) const {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    const bool is_of_drive = kind >= static_cast<size_t>(Kind::kIoPipe);
    const size_t count = is_of_drive ? spec_.drives.size() : spec_.ports;
    for (size_t i = 0; i < count; ++i) {
      to.push_back(component({id_, static_cast<Kind>(kind), static_cast<uint16_t>(i)}, now));
    }
  }
}

void BoxModel::append_flows(Time now, std::vector<FlowView>& to) const {
  for (const auto& [key, flow] : flows_) {
    const FlowSum sum = flow.sums.current(now);
    const uint64_t ops = sum.types[0].ops + sum.types[1].ops;
    if (ops == 0) continue;
    FlowView view{.client = flow.client,
                  .volume = flow.volume,
                  .session = key.session,
                  .box = id_,
                  .port = flow.port,
                  .drive = key.drive,
                  .reads = traffic(sum.types[at(IoType::kRead)]),
                  .writes = traffic(sum.types[at(IoType::kWrite)]),
                  .delay = Duration{sum.delay_ns[0] + sum.delay_ns[1]} / static_cast<int64_t>(ops),
                  .rtts = {}};
    for (size_t i = 0; i < kRttBuckets; ++i) {
      if (sum.rtts[i] > 0) {
        view.rtts.push_back({.bucket = static_cast<uint8_t>(i), .count = sum.rtts[i]});
      }
    }
    to.push_back(std::move(view));
  }
}

void BoxModel::append_uses(Time now, std::vector<DriveUse>& to) const {
  const auto first = static_cast<std::ptrdiff_t>(to.size());
  for (const auto& [key, flow] : flows_) {
    const FlowSum sum = flow.sums.current(now);
    const Sum& reads = sum.types[at(IoType::kRead)];
    const Sum& writes = sum.types[at(IoType::kWrite)];
    if (reads.ops + writes.ops == 0) continue;
    const ComponentId drive{id_, Kind::kDrive, key.drive};
    // A volume may have several flows, for a while: its last client's too.
    auto use = std::find_if(to.begin() + first, to.end(), [&](const DriveUse& each) {
      return each.volume == flow.volume && each.drive == drive;
    });
    if (use == to.end()) use = to.insert(use, {.volume = flow.volume, .drive = drive});
    use->read_bytes_per_s += per_second(reads.bytes);
    use->write_bytes_per_s += per_second(writes.bytes);
  }
}

bool BoxModel::uses(ClientKey client, ComponentId id) const {
  return std::ranges::any_of(flows_, [&](const auto& each) {
    if (each.first.client != client) return false;
    const auto path = path_of(id_, each.second.port, each.first.drive);
    return std::ranges::find(path, id) != path.end();
  });
}

}  // namespace cairn::view
