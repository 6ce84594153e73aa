#!/bin/bash
# First process of a machine: a tree of processes with a network, a mount and a process-id namespace
# of its own. When this process ends, the kernel ends all the others, containers included, and drops
# every mount, so that is all there is to teardown, and it also works after a crash.
#
#   machine.sh STATE NAME
#
# STATE/NAME/mounts   folders that get a tmpfs, one a line
# STATE/NAME/units/*  the daemons: programs to start, and to start again when they end
# STATE/NAME/go       appears when the network is there and the daemons may start
# STATE/NAME/pids/*   process ids of the daemons, as seen in here
# STATE/NAME/held/*   a daemon of this name is not started while the file is there
# STATE/logs/NAME.*   what the daemons print
set -u
state=$1
name=$2
dir=$state/$name
cd "$dir" || exit 1
mkdir -p pids held
rm -f pids/*

# Containers get their control groups below one of this machine, so that all of them can be found and
# removed (cgroup v1; with v2 they stay at the top). For that it is the root of a cgroup namespace,
# which is made of the groups that a process is in; afterwards this process goes back to where it was.
groups=haptic/$(basename "$state")/$name
if [ ! -e /sys/fs/cgroup/cgroup.controllers ] && [ -z "${CGROUPS_BEFORE-}" ]; then
  CGROUPS_BEFORE=$(cat /proc/self/cgroup)
  export CGROUPS_BEFORE
  for controller in /sys/fs/cgroup/*/; do
    [ ! -L "${controller%/}" ] || continue
    parent=$controller
    for part in ${groups//\// }; do
      mkdir -p "$parent$part"
      for setting in cpuset.cpus cpuset.mems; do # a new group has none, and then takes no process
        [ ! -e "$parent$setting" ] || cat "$parent$setting" >"$parent$part/$setting"
      done
      parent=$parent$part/
    done
    echo 0 >"$parent/cgroup.procs"
  done
  exec unshare --cgroup bash "$0" "$state" "$name"
fi
if [ -n "${CGROUPS_BEFORE-}" ]; then
  while IFS=: read -r _ controller path; do
    controller=${controller#name=}
    echo 0 >"/sys/fs/cgroup/${controller:-unified}$path/cgroup.procs"
  done <<<"$CGROUPS_BEFORE"
  unset CGROUPS_BEFORE
  for controller in /sys/fs/cgroup/*/; do
    [ -L "${controller%/}" ] || mount --bind "$controller$groups" "$controller"
  done
fi

while read -r folder; do
  mkdir -p "$folder"
  mount -t tmpfs -o mode=755 tmpfs "$folder"
done <mounts

until [ -e go ]; do sleep 0.05; done

keep() {
  while :; do
    if [ -e "held/$1" ]; then
      sleep 0.2
      continue
    fi
    "./units/$1" </dev/null >>"$state/logs/$name.$1" 2>&1 &
    echo $! >"pids/$1"
    wait $!
    echo "--- ended with status $?" >>"$state/logs/$name.$1"
    rm -f "pids/$1"
    sleep 1
  done
}

for unit in units/*; do
  [ ! -x "$unit" ] || keep "${unit#units/}" &
done

# Processes whose parents are gone belong to this one now.
while :; do wait -n 2>/dev/null || sleep 1; done
