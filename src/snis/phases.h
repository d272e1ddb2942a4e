// SPDX-License-Identifier: Apache-2.0
// The two phases of an iteration: every request through storage, and every request through the
// network, at times that are known before.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "snis/models.h"

namespace cairn::snis {

// Calls job(0) to job(count - 1), each once, in any order, maybe at the same time.
using Share = std::function<void(size_t count, const std::function<void(size_t)>& job)>;
void one_by_one(size_t count, const std::function<void(size_t)>& job);

// The storage phase, wherever it runs.
class Storage {
 public:
  virtual ~Storage() = default;
  // Departures by request; kNever of a request that never arrives, or that its drive lost.
  virtual std::vector<Nanos> run(std::span<const Nanos> arrivals) = 0;
};

// Here: a fresh drive for every target. The targets share nothing, so the order in which they are
// simulated changes nothing.
class LocalStorage final : public Storage {
 public:
  // All outlive it.
  LocalStorage(const Models& models, std::span<const trace::Record> requests,
               Share share = one_by_one);

  std::vector<Nanos> run(std::span<const Nanos> arrivals) override;
  // One target's part of it: departures of its requests are written, others left alone.
  void run_target(uint32_t target, std::span<const Nanos> arrivals,
                  std::vector<Nanos>& departures) const;

 private:
  const Models& models_;
  std::span<const trace::Record> requests_;
  Share share_;
  std::vector<std::vector<RequestNumber>> by_target_;
};

struct Carried {
  std::vector<Picos> departures;  // by request
  NetworkFacts facts;
};
// `told` is given the part of the flows that are done, now and then; may be empty.
Carried run_network(const Models& models, std::span<const trace::Record> requests,
                    std::span<const Picos> arrivals, const std::function<void(double)>& told = {});

}  // namespace cairn::snis
