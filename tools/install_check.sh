#!/usr/bin/env bash
# Installs the package, as a user would, into a fresh environment of each Python from 3.11 to 3.13 that is here, and runs a command.
set -euo pipefail
cd "$(dirname "$0")/.."
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
export PROCTOR_HOME="$place/home" PIP_DISABLE_PIP_VERSION_CHECK=1
tried=0

interpreters() {
    local minor
    for minor in 11 12 13; do
        # A version manager's stand-in may exist without working; then what it manages is asked for directly.
        for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
            if "$candidate" -c "import sys, ensurepip; sys.exit(sys.version_info[1] != $minor)" >/dev/null 2>&1; then
                printf '%s\n' "$candidate"
                break
            fi
        done
    done
}

for python in $(interpreters); do
    printf '== %s\n' "$("$python" --version)"
    "$python" -m venv "$place/venv$tried"
    "$place/venv$tried/bin/pip" install --quiet .
    "$place/venv$tried/bin/proctor" --version
    [ "$("$place/venv$tried/bin/proctor" run -- 'echo installed')" = installed ]
    tried=$((tried + 1))
done
printf '== %d interpreters\n' "$tried"
[ "$tried" -gt 0 ]
