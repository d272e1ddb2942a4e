# SPDX-License-Identifier: Apache-2.0
# Cases: the ways to connect, and what breaks under I/O that is verified all the while.

digests() { # OPTIONS...
  connect "$@"
  verified_io small "$(device 1)" --bs=4k --size=1M
  verified_io large "$(device 1)" --bs=256k --size=4M
  pattern 64 data
  put data "$(device 2)" 0
  same_as data 0 "$(device 2)" 0 64 || fail "what was written is not read back"
  no_complaints
}

case_header_digest() { digests --hdr-digest; }
case_data_digest() { digests --data-digest; }
case_both_digests() { digests --hdr-digest --data-digest; }

queues_are() { # COUNT, with the admin queue
  local count
  count=$(cat "/sys/class/nvme/$(controller)/queue_count")
  [ "$count" = "$1" ] || fail "there are $count queues, not $1"
}

case_single_queue() {
  connect --nr-io-queues=1
  queues_are 2
  verified_io single "$(device 1)" --bs=16k --size=4M --iodepth=64
  no_complaints
}

case_short_queues() {
  connect --queue-size=16
  verified_io short "$(device 1)" --bs=16k --size=4M --iodepth=64
  no_complaints
}

# One job per processor, and with it per queue; then reads that poll.
case_several_queues() {
  connect --nr-io-queues=2 --nr-write-queues=2 --nr-poll-queues=1
  queues_are 6
  verified_io several "$(device 1)" --bs=16k --size=2M --numjobs=2 --offset_increment=16M
  verified_io polled "$(device 1)" --bs=4k --size=512k --ioengine=pvsync2 --hipri
  no_complaints
}

# Two controllers of one host are two paths; the I/O goes on when one leaves. (nvme-cli 2.3 refuses
# its own --duplicate-connect, so the kernel is asked.)
case_two_controllers() {
  connect
  echo "transport=tcp,traddr=$ADDR,trsvcid=$PORT,nqn=$NQN,duplicate_connect" >/dev/nvme-fabrics ||
    fail "the second controller cannot connect"
  local first second
  read -r first second < <(controllers | xargs)
  [ -n "$second" ] || fail "the second controller is not there"
  begin_load 1
  quiet nvme disconnect -d "$first"
  expect "the first controller gone" test ! -e "/sys/class/nvme/$first"
  expect_progress 1
  end_load
}

# Four keep-alive commands on an idle connection, by the kernel's own count, and it still lives.
case_short_keep_alive() {
  connect --keep-alive-tmo=2
  local trace=/sys/kernel/tracing
  echo >$trace/trace
  echo 'opcode == 0x18' >$trace/events/nvme/nvme_setup_cmd/filter
  echo 1 >$trace/events/nvme/nvme_setup_cmd/enable
  four_sent() { (($(grep -c nvme_setup_cmd "$trace/trace") >= 4)); }
  expect "four keep-alive commands" four_sent
  state_is live || fail "the controller is not live"
  no_complaints
}

case_controller_reset() {
  connect
  local round
  begin_load 1
  for round in 1 2 3; do
    nvme reset "/dev/$(controller)" || fail "reset $round ended with $?"
    expect "live after reset $round" state_is live
    expect_progress 1
  done
  end_load
}

case_link_flaps() {
  connect
  local round
  begin_load 1
  for round in 1 2 3; do
    ask link off
    ask link on
    expect_progress 1
  done
  end_load
  state_is live || fail "the controller is not live"
}

# Down for as long as it takes the host to give the connection up, so that both sides start afresh.
case_link_down() {
  connect --keep-alive-tmo=2
  begin_load 1
  ask link off
  expect "the host to notice" state_is_not live
  ask link on
  expect "live again" state_is live
  expect_progress 1
  end_load
}

# What was acknowledged before the target died is there after it.
case_target_killed() {
  connect
  begin_load 1
  ask target kill || fail "cannot kill the target"
  expect "the host to notice" state_is_not live
  ask target start || fail "cannot start the target again"
  expect "live again" state_is live
  expect_progress 1
  end_load
}

case_target_restarted() {
  connect
  begin_load 1
  ask target restart || fail "cannot restart the target"
  expect "live again" state_is live
  expect_progress 1
  end_load
}
