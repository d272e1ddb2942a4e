// SPDX-License-Identifier: Apache-2.0
// The modelled SSD behind drives on several cores: one model, on one core, by that core's clock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/histogram.h"
#include "env/env.h"
#include "model/flash/model.h"

namespace cairn::drive {

// Lives on the core that made it; drives on others send it tickets. Outlives them.
class ModelledMedium final : private flash::CompletionSink {
 public:
  // One request on its way to the model and back. Belongs to a drive, and is the medium's from
  // send() until `back` is called, on the core that sent it.
  struct Ticket : env::Message {
    using Back = void (*)(Ticket&);
    explicit Ticket(Back function) : Message(nullptr), back(function) {}
    flash::HostRequest request;
    Back back;

   private:
    friend ModelledMedium;
    ModelledMedium* medium = nullptr;
    CoreId home{};
    Time due;           // when the model said it was done
    Duration late{-1};  // of its last journey, until the medium is told with the next
  };

  // What was written before the drive was switched on. The model lets it lie on flash as random
  // writes would have left it, with a cold data cache and a new drive's wear.
  struct Past {
    double occupancy = 0;       // part of the pages, at most flash::kOccupancyMax
    std::vector<bool> written;  // pages that are among them, by number
  };

  // kInvalid when the parameters make no drive, or one that loses requests (compat = "mqsim");
  // kNoSpace when the past does not fit beside what the drive needs for itself.
  static Result<std::unique_ptr<ModelledMedium>> make(env::Env& env,
                                                      const flash::Parameters& parameters,
                                                      const Past& past);
  static Result<std::unique_ptr<ModelledMedium>> make(env::Env& env,
                                                      const flash::Parameters& parameters) {
    return make(env, parameters, Past{});
  }
  ~ModelledMedium();

  uint64_t bytes() const { return bytes_; }
  bool has_volatile_cache() const { return model_.has_volatile_cache(); }
  // Which channel page n is on: [n % size]. Empty: on whichever is least busy when it is written.
  std::vector<uint32_t> channels_of_pages() const;
  uint32_t channel_count() const { return model_.parameters().channels; }
  uint32_t page_bytes() const { return model_.parameters().page_bytes; }
  CoreId core() const { return core_; }
  // On the core of `home`.
  void send(Ticket& ticket, env::Env& home);

  // On the medium's own core.
  //
  // Channels that one of those who share the drive has to itself. False: another has one of them.
  bool take_channels(uint32_t first, uint32_t count);
  void give_channels_back(uint32_t first, uint32_t count);
  const flash::FlashModel& model() const { return model_; }
  // Since the drive was switched on.
  flash::Nanos model_now() const { return (env_.now() - epoch_).ns; }
  // How much later than the model said requests went on at their core, in nanoseconds.
  const Histogram& lateness() const { return lateness_; }

 private:
  struct Wake : task::Timer {
    explicit Wake(ModelledMedium& owner) : Timer(&Wake::fired), medium(owner) {}
    static void fired(task::Timer& timer) { static_cast<Wake&>(timer).medium.wake(); }
    ModelledMedium& medium;
  };

  ModelledMedium(env::Env& env, const flash::Parameters& parameters);
  static void arrive(env::Message& message, env::Env& there);
  static void arrive_home(env::Message& message, env::Env& home);
  void take(Ticket& ticket);
  void completed(const flash::Completion& completion) override;
  void pump();
  void wake();
  void record(Duration late);

  env::Env& env_;
  const CoreId core_;
  flash::FlashModel model_;
  const uint64_t bytes_;
  const Time epoch_;
  Wake wake_;
  Duration head_start_{0};      // of the timer, before the model's next event
  bool is_waiting_ = false;     // for the timer; else only glancing at the clock
  std::vector<Ticket*> taken_;  // by cookie
  std::vector<uint32_t> free_;
  std::vector<bool> channels_taken_;
  Histogram lateness_;
};

}  // namespace cairn::drive
