// SPDX-License-Identifier: Apache-2.0
#include "bench/world_load.h"

#include <algorithm>
#include <utility>

#include "env/call.h"
#include "env/io.h"
#include "task/deadline.h"

namespace cairn::bench {

namespace {

using env::Env;
using env::Stream;
using task::Task;

constexpr CoreId kClientCore{1};
constexpr Duration kConnectTime = 5_s;

// The client side of a run, a task on the other core: connects and does `Work`.
template <class Work>
struct Client {
  env::Address server;
  Work work;

  Task<Result<void>> operator()(Env& env) {
    task::Deadline deadline(env, env.now() + kConnectTime);
    Result<std::unique_ptr<Stream>> stream =
        co_await env::connect_stream(env, server, {}, deadline.token());
    if (!stream) co_return fail(stream.error());
    Stream& connected = **stream;
    Result<void> done = co_await work.run(env, connected);
    co_return done;
  }
};

// Both sides of a run: listens, starts the client, serves its connection, waits for it.
template <class Work, class Serve>
Task<void> run_both(Env& env, Work work, Serve serve, Result<void>& result) {
  Result<std::unique_ptr<env::Listener>> listener = env.listen(env::Address::loopback(0));
  if (!listener) {
    result = fail(listener.error());
    co_return;
  }
  const Client<Work> client_function{(*listener)->local(), work};
  Task<Result<void>> client = env::call_on(env, kClientCore, client_function);
  task::Deadline deadline(env, env.now() + kConnectTime);
  Result<env::Connection> connection = co_await (*listener)->accept(deadline.token());
  if (connection) {
    const std::unique_ptr<Stream> stream = env.open(std::move(*connection));
    result = co_await serve.run(env, *stream);
  } else {
    result = fail(connection.error());
  }
  const Result<void> client_result = co_await client;
  if (result && !client_result) result = client_result;
}

template <class Work, class Serve>
Result<void> run_world(const WorldFactory& factory, const WorldLoad& options, const Work& work,
                       const Serve& serve) {
  env::WorldOptions world_options;
  world_options.cpus = {options.load.server_cpu, options.load.client_cpu};
  world_options.poll = options.poll;
  Result<std::unique_ptr<env::World>> world = factory(world_options);
  if (!world) return fail(world.error());
  Result<void> result;
  const Result<void> ran =
      (*world)->run([&](Env& env) -> Task<void> { return run_both(env, work, serve, result); });
  return ran ? result : ran;
}

// The client of a stream: writes until the time is over.
struct Writer {
  const Load& load;

  Task<Result<void>> run(Env& env, Stream& stream) {
    Result<Buffer> memory = env.buffers().allocate(load.write_size);
    if (!memory) co_return fail(memory.error());
    std::ranges::fill(memory->bytes(), std::byte{0x5A});
    Turns turns(load);
    while (turns.goes_on(now())) {
      const Result<void> written = co_await stream.write(memory->bytes());
      if (!written) co_return fail(written.error());
    }
    co_return stream.finish();
  }
};

struct Reader {
  const Load& load;
  Meter& meter;

  Task<Result<void>> run(Env& env, Stream& stream) {
    Result<Buffer> memory = env.buffers().allocate(load.read_size);
    if (!memory) co_return fail(memory.error());
    while (true) {
      const Result<size_t> got = co_await stream.read(memory->bytes());
      if (!got) co_return fail(got.error());
      if (*got == 0) co_return Result<void>{};
      meter.add(*got, now());
    }
  }
};

struct Receiver {
  Meter& meter;

  Task<Result<void>> run(Env&, Stream& stream) {
    while (true) {
      const Result<env::Chunk> chunk = co_await stream.receive();
      if (!chunk) co_return fail(chunk.error());
      if (chunk->empty()) co_return Result<void>{};
      meter.add(chunk->bytes().size(), now());
    }
  }
};

// The server of a ping-pong: sends every message back.
struct Echo {
  const Load& load;

  Task<Result<void>> run(Env& env, Stream& stream) {
    Result<Buffer> message = env.buffers().allocate(load.message_size);
    if (!message) co_return fail(message.error());
    const MutableBytes bytes = message->bytes();
    while (true) {
      size_t have = 0;
      while (have < bytes.size()) {
        const Result<size_t> got = co_await stream.read(bytes.subspan(have));
        if (!got) co_return fail(got.error());
        if (*got == 0) co_return Result<void>{};
        have += *got;
      }
      const Result<void> written = co_await stream.write(bytes);
      if (!written) co_return fail(written.error());
    }
  }
};

struct Pinger {
  const Load& load;
  Meter& meter;
  Histogram& latency_ns;

  Task<Result<void>> run(Env& env, Stream& stream) {
    Result<Buffer> message = env.buffers().allocate(load.message_size);
    if (!message) co_return fail(message.error());
    const MutableBytes bytes = message->bytes();
    Turns turns(load);
    Time before = now();
    while (turns.goes_on(before)) {
      const Result<void> written = co_await stream.write(bytes);
      if (!written) co_return fail(written.error());
      const Result<void> read = co_await env::read_exactly(stream, bytes);
      if (!read) co_return fail(read.error());
      const Time after = now();
      if (meter.add(1, after)) latency_ns.record(static_cast<uint64_t>((after - before).ns));
      before = after;
    }
    co_return stream.finish();
  }
};

template <class Serve>
Result<Sample> measure_stream(const WorldFactory& factory, const WorldLoad& options,
                              const Serve& serve, const Meter& meter) {
  const CpuMeter cpu;
  const Result<void> ran = run_world(factory, options, Writer{options.load}, serve);
  if (!ran) return fail(ran.error());
  const double writes = static_cast<double>(meter.total()) / options.load.write_size;
  return Sample{meter.per_second(), cpu.us_per(writes), {}};
}

}  // namespace

Result<Sample> world_stream(const WorldFactory& factory, const WorldLoad& options) {
  Meter meter(options.load);
  return measure_stream(factory, options, Reader{options.load, meter}, meter);
}

Result<Sample> world_stream_receive(const WorldFactory& factory, const WorldLoad& options) {
  Meter meter(options.load);
  return measure_stream(factory, options, Receiver{meter}, meter);
}

Result<Sample> world_pingpong(const WorldFactory& factory, const WorldLoad& options) {
  Meter meter(options.load);
  Sample sample;
  const CpuMeter cpu;
  const Result<void> ran = run_world(
      factory, options, Pinger{options.load, meter, sample.latency_ns}, Echo{options.load});
  if (!ran) return fail(ran.error());
  sample.per_second = meter.per_second();
  sample.cpu_us_per_operation = cpu.us_per(static_cast<double>(meter.total()));
  return sample;
}

}  // namespace cairn::bench
