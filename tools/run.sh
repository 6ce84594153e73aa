#!/bin/sh
# Sets up what a command needs, then becomes that command (so that signals reach it directly).
#
#   sh tools/run.sh NEED COMMAND [ARGUMENT...]
#
# NEED is one of: packages, haproxy (one HAProxy, exported as $HAPROXY), haproxy-maybe (the same,
# but the command starts without one too), haproxy-all (every version that the tests run against).
set -eu
need=$1
shift
root=$(cd "$(dirname "$0")/.." && pwd)

if ! command -v node >/dev/null 2>&1; then
  echo "haptic: no node on PATH. Install any Node.js from 18 on with npm; the version that the" >&2
  echo "        project itself runs on is fetched by npm." >&2
  exit 1
fi

# Progress goes to stderr; stdout is the path of the HAProxy to use, or empty.
if ! HAPROXY=$(node "$root/tools/setup.js" "$need"); then
  # What reads the verdict of the tests gets one in any case.
  if [ "$need" = haproxy-all ]; then echo "0 passed, 1 failed"; fi
  exit 1
fi
if [ -n "$HAPROXY" ]; then export HAPROXY; else unset HAPROXY; fi

PATH=$root/node_modules/.bin:$PATH
export PATH
exec "$@"
