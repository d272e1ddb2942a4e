# SPDX-License-Identifier: Apache-2.0
# Cases: finding the target, connecting, and all it says about itself.

case_discover() {
  quiet nvme discover -t tcp -a "$ADDR" -s "$PORT"
  grep -qx "subnqn:  $NQN" /tmp/case/out || fail "the discovery log does not name $NQN"
  grep -qx "traddr:  $ADDR" /tmp/case/out || fail "the discovery log does not name $ADDR"
  grep -qx "trsvcid: $PORT" /tmp/case/out || fail "the discovery log does not name port $PORT"
  no_complaints
}

case_connect() {
  connect
  state_is live || fail "the controller is not live"
  no_complaints
  quiet nvme disconnect -n "$NQN"
  expect "no controller after disconnect" no_controllers
  no_complaints
}

case_connect_all() {
  quiet nvme connect-all -t tcp -a "$ADDR" -s "$PORT"
  expect "namespaces 1 and 2 there" have_namespaces 1 2
  no_complaints
}

case_connect_to_unknown_name() {
  ! nvme connect -t tcp -a "$ADDR" -s "$PORT" -n "$NQN-unknown" || fail "it was let in"
  dmesg | grep -q 'Connect Invalid Data Parameter, subsysnqn' ||
    fail "the kernel was not told that the subsystem's name is wrong"
  connect
}

case_id_ctrl() {
  connect
  quiet nvme id-ctrl -H "/dev/$(controller)"
  quiet nvme id-ctrl "/dev/$(controller)"
  [ "$(field subnqn)" = "$NQN" ] || fail "SUBNQN is $(field subnqn)"
  [ "$(field cntlid)" = "$(cat "/sys/class/nvme/$(controller)/cntlid")" ] ||
    fail "CNTLID differs between Connect and Identify"
  [ "$(field sqes)" = $((0x66)) ] || fail "SQES is $(field sqes)"
  [ "$(field cqes)" = $((0x44)) ] || fail "CQES is $(field cqes)"
  (($(field ioccsz) >= 4)) || fail "IOCCSZ is $(field ioccsz)"
  [ "$(field iorcsz)" = 1 ] || fail "IORCSZ is $(field iorcsz)"
  [ "$(field icdoff)" = 0 ] || fail "ICDOFF is $(field icdoff)"
  (($(field maxcmd) > 0)) || fail "MAXCMD is 0"
  (($(field kas) > 0)) || fail "KAS is 0"
  (($(field aerl) >= 3)) || fail "AERL is $(field aerl)"
  (($(field ver) >= 0x10300)) || fail "VER is $(field ver)"
  (($(field sgls) & 0x100001)) || fail "SGLS is $(field sgls)"
  for offset in 0 8 0x14 0x1c; do  # CAP, VS, CC, CSTS
    quiet nvme get-property "/dev/$(controller)" --offset=$offset -H
  done
  quiet nvme list -v
  grep -q "$NQN" /tmp/case/out || fail "nvme list does not show $NQN"
  no_complaints
}

case_id_ns() {
  connect
  local nsid count lbads
  quiet nvme list-ns "/dev/$(controller)"
  count=$(wc -l </tmp/case/out)
  [ "$count" = 2 ] || fail "list-ns shows $count namespaces, not 2"
  for nsid in 1 2; do
    quiet nvme id-ns -H "$(device $nsid)"
    quiet nvme id-ns "$(device $nsid)"
    lbads=$(sed -n 's/.*lbads:\([0-9]*\) .*in use.*/\1/p' /tmp/case/out)
    size_is $nsid $(($(field nsze) << lbads)) ||
      fail "NSZE does not match the size of $(device $nsid)"
    (($(field nmic) & 1)) || fail "namespace $nsid is not shared: NMIC $(field nmic)"
    quiet nvme ns-descs "$(device $nsid)"
    field uuid | grep -q '[1-9a-f]' || fail "namespace $nsid has no UUID"
    field nguid | grep -q '[1-9a-f]' || fail "namespace $nsid has no NGUID"
  done
  if [ "$TARGET" = cairn ]; then
    quiet nvme nvm-id-ctrl "/dev/$(controller)"
    quiet nvme cmdset-ind-id-ns "$(device 1)" -n 1  # nvme-cli 2.3 takes 0 for its own device
  fi
  no_complaints
}

case_log_pages() {
  connect
  local control optional
  control=/dev/$(controller)
  quiet nvme id-ctrl "$control"
  optional=$(field cmic)/$(field oncs)
  quiet nvme error-log "$control" -e 4
  quiet nvme smart-log -H "$control"
  quiet nvme fw-log "$control"
  quiet nvme changed-ns-list-log "$control"
  quiet nvme effects-log -H "$control"
  if ((${optional%/*} & 8)); then
    quiet nvme ana-log "$control"
    grep -q 'state.*optimized' /tmp/case/out || fail "no ANA group is optimized"
  elif [ "$TARGET" = cairn ]; then
    fail "CMIC has no ANA"
  fi
  if ((${optional#*/} & 0x20)); then
    quiet nvme resv-notif-log "$control"
  elif [ "$TARGET" = cairn ]; then
    fail "ONCS has no reservations"
  fi
  no_complaints
}

# The kernel's target takes LPO for none of its pages although LPA promises it.
case_log_pages_in_pieces() {
  connect
  local control piece
  control=/dev/$(controller)
  [ "$TARGET" = cairn ] || target_lacks "log pages in pieces"
  nvme get-log "$control" --log-id=5 --log-len=4096 --raw-binary >whole
  for piece in 0 512 1024 2560; do
    nvme get-log "$control" --log-id=5 --log-len=512 --lpo=$piece --raw-binary >part
    cmp part <(tail -c +$((piece + 1)) whole | head -c 512) ||
      fail "512 bytes at $piece of the effects log differ from the whole"
  done
}

case_smart_counts() {
  connect
  local before
  quiet nvme smart-log "/dev/$(controller)"
  before=$(field host_write_commands)
  verified_io count "$(device 1)" --size=1M --bs=4k --rw=write
  quiet nvme smart-log "/dev/$(controller)"
  (($(field host_write_commands) >= before + 256)) ||
    fail "256 writes raised host_write_commands from $before to $(field host_write_commands)"
}

case_features() {
  connect
  local feature
  for feature in 0x06 0x07 0x0b 0x0f; do
    quiet nvme get-feature "/dev/$(controller)" -f $feature -H
  done
  [ "$TARGET" = cairn ] || return 0
  for feature in 0x01 0x02 0x04 0x05 0x0a; do
    quiet nvme get-feature "/dev/$(controller)" -f $feature -H
  done
}

# What cannot be done is refused with the right status, and the connection lives on.
case_errors() {
  connect
  local dev past
  dev=$(device 2)
  past=$(blocks "$dev" $(($(blockdev --getsz "$dev") / 2)))
  past="-s $past -c $(zero_based "$dev" 4) -z 4096"
  if [ "$TARGET" = cairn ]; then
    refused 'LBA Out of Range' nvme read "$dev" $past -d read
  else
    ! nvme read "$dev" $past -d read || fail "a read past the end succeeded"
  fi
  refused 'Invalid Command Opcode' nvme io-passthru "$dev" --opcode=0xc0 -n 2
  refused 'Invalid Command Opcode' nvme admin-passthru "/dev/$(controller)" --opcode=0xc0
  # The kernel's target calls it a field, the specification a page.
  refused 'Invalid \(Field\|Log Page\)' \
    nvme get-log "/dev/$(controller)" --log-id=0xbf --log-len=512
  quiet nvme error-log "/dev/$(controller)" -e 4
  verified_io after "$dev" --size=1M --bs=4k
  state_is live || fail "the controller is not live any more"
}
