#!/usr/bin/env bash
# Makes .venv with the pinned development tools and the package, editable. Needs Python 3.11 or newer; everything else it brings itself.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'setup: %s\n' "$*" >&2; }

# A command of that name may exist and still not run (version managers leave such), so each is tried.
usable() { command -v "$1" >/dev/null 2>&1 && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3.13 python3.12 python3.11 python3 /usr/bin/python3; do
        if usable "$candidate"; then
            printf '%s\n' "$candidate"
            return
        fi
    done
    say "no Python 3.11 or newer was found. Install one (Debian, Ubuntu: apt-get install python3 python3-venv), or name it: make setup PYTHON=/path/to/python3"
    exit 1
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian and Ubuntu keep ensurepip in a package of its own.
need_venv() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    local package
    package="$("$1" -c 'import sys; print(f"python3.{sys.version_info.minor}-venv")')"
    say "this Python cannot make virtual environments; installing $package"
    if ! { as_root apt-get update -q && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y "$package"; } </dev/null >&2; then
        say "that needs root. Ask for: apt-get install $package"
        exit 1
    fi
}

if ! usable .venv/bin/python; then
    python="$(find_python)"
    need_venv "$python"
    say "making .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi
say "installing the pinned tools and the package"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
.venv/bin/python -m pip install --quiet -r tools/requirements-dev.txt
.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
touch .venv/.ready
say "done: $(.venv/bin/proctor --version) on $(.venv/bin/python --version)"
