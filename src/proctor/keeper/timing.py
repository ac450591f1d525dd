"""The keeper's limits, each with its reason; times are seconds of the monotonic clock."""

from __future__ import annotations

__all__ = [
    "DOOR_AFTER_S",
    "DRAIN_LIMIT_S",
    "DRAIN_ROUNDS",
    "HANDED_TAIL_BYTES",
    "HOST_END_S",
    "LAST_WORDS_S",
    "OUTPUT_NOTICE_S",
    "OWNER_GONE_GRACE_S",
    "QUIET_S",
    "SEAL_LIMIT_S",
    "SEAL_RETRY_S",
    "SESSION_CHECK_S",
    "SESSION_UNHELD_S",
]

DOOR_AFTER_S = 0.01  # when the control socket appears; a host that looks for it earlier tries again (`runtime.link`)
QUIET_S = 0.25  # silence after the root's end that counts as "nothing more is coming" (DESIGN section 2)
DRAIN_LIMIT_S = 2.0  # the most that a chatty leftover can hold up the result (DESIGN section 2)
DRAIN_ROUNDS = 4  # 4 MiB: more than any pipe holds when the last writer of the tree is dead; a stranger may write for ever
HANDED_TAIL_BYTES = 65_536  # fits into a socket's buffer (212,992 by default) as base64, so that a host that is busy gets the ending too
LAST_WORDS_S = 2.0  # for a host that reads slowly; what it missed is in the journal
OWNER_GONE_GRACE_S = 1.5  # with KILL behind it, a `call` or `host` tree is gone within 3 s of its host (DESIGN section 2)
HOST_END_S = 0.05  # from the end of a host's connections to the end of the host, with room for a busy machine
OUTPUT_NOTICE_S = 0.02  # live readers are told at most 50 times a second that there is more
SEAL_RETRY_S = 1.0  # between attempts to write an ending that a full disk refused
SEAL_LIMIT_S = 86_400.0  # after a day the ending is given up: its caller was answered long ago
SESSION_CHECK_S = 60.0  # how often a session's hold is looked at
SESSION_UNHELD_S = 86_400.0  # a session that nobody held for a day is closed (DESIGN section 2)
