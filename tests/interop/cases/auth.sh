# SPDX-License-Identifier: Apache-2.0
# Cases: DH-HMAC-CHAP with a box that demands it. It has a subsystem $NQN-HASH-GROUP for each choice
# of means, and for the host KEY_HOST_ID the keys HOST_KEY and BOX_KEY; OTHER_KEY is nobody's.

as_host() { # COMMAND...
  "$@" "--hostnqn=nqn.2014-08.org.nvmexpress:uuid:$KEY_HOST_ID" "--hostid=$KEY_HOST_ID"
}

# authenticated HASH GROUP OPTIONS...: connects and reads; the kernel says which means it used.
authenticated() {
  local hash=$1 group=$2 NQN=$NQN-$1-$2
  shift 2
  dmesg -c >/dev/null
  as_host connect --nr-io-queues=2 "$@"
  pattern 64 data
  put data "$(device 1)" 0
  same_as data 0 "$(device 1)" 0 64 || fail "what was written is not read back"
  dmesg | grep -q "authenticated with hash hmac($hash) dhgroup $group" ||
    fail "the kernel did not authenticate with $hash and $group"
  no_complaints
  quiet nvme disconnect -n "$NQN"
  expect "no controller after disconnect" no_controllers
}

# stays_out OPTIONS...
stays_out() {
  ! as_host nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN-sha256-null" --reconnect-delay=1 \
    --ctrl-loss-tmo=0 "$@" >/tmp/case/out 2>&1 || fail "connected with $*"
  expect "no controller with $*" no_controllers
}

only_with_keys() { [ "$TARGET" = cairn ] || cannot "only the box has subsystems with keys"; }

case_authentication() {
  only_with_keys
  authenticated sha256 null "--dhchap-secret=$HOST_KEY"
  authenticated sha384 ffdhe2048 "--dhchap-secret=$HOST_KEY"
  authenticated sha512 ffdhe3072 "--dhchap-secret=$HOST_KEY"
}

case_mutual_authentication() {
  only_with_keys
  local means=("--dhchap-secret=$HOST_KEY" "--dhchap-ctrl-secret=$BOX_KEY")
  authenticated sha256 null "${means[@]}"
  authenticated sha384 ffdhe2048 "${means[@]}"
  authenticated sha512 ffdhe3072 "${means[@]}"
}

case_authentication_refused() {
  only_with_keys
  stays_out
  stays_out "--dhchap-secret=$OTHER_KEY"
  stays_out "--dhchap-secret=$HOST_KEY" "--dhchap-ctrl-secret=$OTHER_KEY"
  authenticated sha256 null "--dhchap-secret=$HOST_KEY"
}

again() { (($(dmesg | grep -c 'authenticated with hash') > 1)); }

# The kernel authenticates every queue again while I/O goes on.
case_authentication_again() {
  only_with_keys
  local NQN=$NQN-sha256-ffdhe2048
  as_host connect "--dhchap-secret=$HOST_KEY"
  begin_load 1
  echo "$HOST_KEY" >"/sys/class/nvme/$(controller)/dhchap_secret"
  expect "authenticated again" again
  expect_progress 1
  end_load
  state_is live || fail "the controller is not live"
  no_complaints
}
