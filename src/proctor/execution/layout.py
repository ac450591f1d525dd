"""Names of the files in a run folder (DESIGN section 4), in one place for the keeper that writes them and the hosts that read them."""

from __future__ import annotations

__all__ = ["CONTROL", "HOSTS", "INDEX", "JOURNAL", "KEEPER_LOG", "LOCK", "OUTPUT", "RUNS", "SESSIONS", "SPEC", "STREAMS", "TOKEN"]

RUNS = "runs"
SESSIONS = "sessions"
HOSTS = "hosts"
INDEX = "proctor.db"
LOCK = "lock"
TOKEN = "token"  # noqa: S105 - the name of a file
SPEC = "spec.json"
JOURNAL = "journal.jsonl"
OUTPUT = "output"
STREAMS = "streams.idx"
CONTROL = "control"
KEEPER_LOG = "keeper.log"
