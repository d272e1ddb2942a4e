// SPDX-License-Identifier: Apache-2.0
#include "drive/modelled_medium.h"

#include <algorithm>

#include "model/flash/precondition.h"

namespace cairn::drive {

namespace {

constexpr Duration kHeadStartMax = 50_us;
constexpr Duration kGlance = 1_us;

}  // namespace

Result<std::unique_ptr<ModelledMedium>> ModelledMedium::make(env::Env& env,
                                                             const flash::Parameters& parameters,
                                                             const Past& past) {
  if (flash::check(parameters)) return fail(Errc::kInvalid, "parameters of a modelled drive");
  if (parameters.mqsim) {
    return fail(Errc::kInvalid, "a profile with compat = \"mqsim\" loses requests");
  }
  std::unique_ptr<ModelledMedium> medium(new ModelledMedium(env, parameters));
  const bool fits =
      flash::precondition(medium->model_, {.read_fraction = 0}, past.occupancy, past.written);
  if (!fits) return fail(Errc::kNoSpace, "what a modelled drive shall hold from the start");
  return medium;
}

ModelledMedium::ModelledMedium(env::Env& env, const flash::Parameters& parameters)
    : env_(env),
      core_(env.core()),
      model_(parameters),
      bytes_(model_.domains()[0].logical_sectors * flash::kSectorBytes),
      epoch_(env.now()),
      wake_(*this),
      channels_taken_(parameters.channels) {}

// What the model does by itself, writing back its cache for instance, may be under way.
ModelledMedium::~ModelledMedium() { env_.disarm(wake_); }

std::vector<uint32_t> ModelledMedium::channels_of_pages() const {
  const flash::Parameters& parameters = model_.parameters();
  if (parameters.dynamic_spread) return {};
  std::vector<uint32_t> channels = model_.domains()[0].spread;
  const uint32_t planes_per_channel =
      parameters.chips_per_channel * parameters.dies_per_chip * parameters.planes_per_die;
  for (uint32_t& plane : channels) plane /= planes_per_channel;
  return channels;
}

bool ModelledMedium::take_channels(uint32_t first, uint32_t count) {
  const auto begin = channels_taken_.begin() + first;
  if (std::find(begin, begin + count, true) != begin + count) return false;
  std::fill_n(begin, count, true);
  return true;
}

void ModelledMedium::give_channels_back(uint32_t first, uint32_t count) {
  std::fill_n(channels_taken_.begin() + first, count, false);
}

void ModelledMedium::send(Ticket& ticket, env::Env& home) {
  ticket.medium = this;
  ticket.home = home.core();
  if (ticket.home == core_) return take(ticket);
  ticket.run = &ModelledMedium::arrive;
  home.post(core_, ticket);
}

void ModelledMedium::arrive(env::Message& message, env::Env&) {
  auto& ticket = static_cast<Ticket&>(message);
  ticket.medium->take(ticket);
}

void ModelledMedium::take(Ticket& ticket) {
  if (ticket.late.ns >= 0) record(ticket.late);
  ticket.late = Duration{-1};
  pump();
  auto cookie = static_cast<uint32_t>(taken_.size());
  if (free_.empty()) {
    taken_.push_back(nullptr);
  } else {
    cookie = free_.back();
    free_.pop_back();
  }
  taken_[cookie] = &ticket;
  flash::HostRequest request = ticket.request;
  request.cookie = cookie;
  model_.submit(request, model_now());
  pump();
}

void ModelledMedium::pump() {
  env_.disarm(wake_);
  model_.advance(model_now(), *this);
  if (model_.next_event() == flash::kNever) return;
  const Time next = epoch_ + Duration{model_.next_event()};
  const Duration left = next - env_.now();
  is_waiting_ = left > head_start_ + kGlance;
  env_.arm(wake_, env_.now() + (is_waiting_ ? left - head_start_ : std::min(left, kGlance)));
}

// A core that sleeps until a timer is late by what waking takes here: a tenth of what a read takes,
// or half. So the timer is early by as much, and the rest of the time is watched pass.
void ModelledMedium::wake() {
  const Duration late = env_.now() - wake_.when();
  if (is_waiting_ && late > head_start_) {
    head_start_ = std::min(head_start_ + (late - head_start_) / 2, kHeadStartMax);
  } else if (is_waiting_) {
    head_start_ = head_start_ - (head_start_ - late) / 256;
  }
  pump();
}

void ModelledMedium::completed(const flash::Completion& completion) {
  const auto cookie = static_cast<uint32_t>(completion.cookie);
  Ticket& ticket = *taken_[cookie];
  free_.push_back(cookie);
  ticket.due = epoch_ + Duration{completion.done};
  if (ticket.home != core_) {
    ticket.run = &ModelledMedium::arrive_home;
    return env_.post(ticket.home, ticket);
  }
  record(env_.now() - ticket.due);
  ticket.back(ticket);
}

void ModelledMedium::arrive_home(env::Message& message, env::Env& home) {
  auto& ticket = static_cast<Ticket&>(message);
  ticket.late = std::max(Duration{0}, home.now() - ticket.due);
  ticket.back(ticket);
}

void ModelledMedium::record(Duration late) {
  lateness_.record(static_cast<uint64_t>(std::max<int64_t>(0, late.ns)));
}

}  // namespace cairn::drive
