#!/usr/bin/env bash
# Runs the suite many times: a test that is right nine times in ten is wrong. Usage: tools/repeat.sh TIMES
set -euo pipefail
cd "$(dirname "$0")/.."

for round in $(seq "$1"); do
    printf '== round %d of %d\n' "$round" "$1"
    make test
done

printf '== once more with every core busy\n'
burners=()
trap 'kill "${burners[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$(nproc)"); do
    (while :; do :; done) &
    burners+=("$!")
done
make test
