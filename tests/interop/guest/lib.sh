# SPDX-License-Identifier: Apache-2.0
# What every script in a guest may use; a script starts with `. /lib.sh`.

# wait_for SECONDS COMMAND...: runs COMMAND until it succeeds; fails when the time is over.
wait_for() {
  local end now
  now_ms && end=$((now + $1 * 1000))
  shift
  until "$@" >/dev/null 2>&1; do
    now_ms && ((now < end)) || return 1
    pause_briefly
  done
}

# In an emulated processor a new process costs more than all that these two do.
now_ms() { # sets `now`
  read -r now _ </proc/uptime
  now=$((10#${now/./} * 10))
}
exec 5<> <(:)
pause_briefly() { read -r -t 0.05 -u 5 _ || true; }

# ask WORDS...: has the machine that started the guest do something (cut the link, kill the target)
# and returns when it is done; prints why when it failed.
ask() {
  local status reason
  echo "@@ASK $*" >&3
  read -r status reason <&4
  [ -z "$reason" ] || echo "$reason"
  return "$status"
}

# serve: runs the lines sent by linux_guest.py or guest-ctl until `stop`. Each runs in a subshell.
serve() {
  local id command
  exec 3>&1 4<&0  # where `ask` asks and gets its answers, whatever a command redirects
  echo "@@READY"
  while read -r id command; do
    [ "$id" != stop ] || break
    [ -n "$command" ] || continue
    (eval "$command") </dev/null 2>&1
    echo "@@DONE $id $?"
  done
}
