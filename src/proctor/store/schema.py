"""The tables of ``proctor.db`` and every statement that touches them.

``user_version`` is the schema's number: a database with a larger one is only read. Small columns stand before ``record``, so that a scan
does not touch the pages that long records overflow into. ``number`` keeps the order of insertion, which a clock that was set back cannot
change. ``journal_bytes`` is how long an unfinished execution's journal was when its record was read from it: as long as that is its length,
the row says all there is. The two partial indexes stay small: unfinished executions are few, and most executions have no session.
"""

from __future__ import annotations

__all__ = [
    "ADD_DAMAGED",
    "ALL_IDS",
    "CREATE",
    "DAMAGED",
    "DELETE",
    "FORGET_DAMAGED",
    "GET",
    "LATEST",
    "MATCHING",
    "NEWEST_CREATED",
    "OLDEST_ENDED",
    "PUT",
    "RECENT",
    "RECENT_OF_SESSION",
    "SEEN",
    "SET_VERIFIED",
    "UNFINISHED",
    "UNFINISHED_OF_SESSION",
    "UNFINISHED_SEEN",
    "VERIFIED",
    "VERSION",
]

VERSION = 1

CREATE = f"""
create table executions (
    number integer primary key,
    id text not null unique,
    created_ms integer not null,
    ended_ms integer,
    ended integer not null,
    status text not null,
    session text,
    journal_bytes integer,
    record text not null
);
create index unfinished on executions (session) where ended = 0;
create index of_session on executions (session) where session is not null;
create table damaged (id text primary key, reason text not null) without rowid;
create table verified (one integer primary key check (one = 1), runs_mtime_ns integer not null);
pragma user_version = {VERSION};
"""

# An ended row never becomes unfinished again: a host that was slow to write what it knew must not undo what another one learned.
PUT = """
insert into executions (id, created_ms, ended_ms, ended, status, session, record) values (?, ?, ?, ?, ?, ?, ?)
on conflict (id) do update set ended_ms = excluded.ended_ms, ended = excluded.ended, status = excluded.status, record = excluded.record,
    journal_bytes = null
where executions.ended = 0 or excluded.ended = 1
"""
SEEN = "update executions set journal_bytes = ? where id = ? and ended = 0"
DELETE = "delete from executions where id = ?"
GET = "select id, record from executions where id = ?"
MATCHING = "select id from executions where id >= ? and id < ? order by id desc limit ?"
LATEST = "select id from executions order by number desc limit 1"
# Without the hint SQLite scans the whole table, since that comes in the order asked for (measured: 98 ms against 1 ms at 100,000 rows).
UNFINISHED = "select id, record from executions indexed by unfinished where ended = 0 order by number"
UNFINISHED_SEEN = "select id, record, journal_bytes from executions where ended = 0 order by number"
UNFINISHED_OF_SESSION = "select id from executions indexed by unfinished where ended = 0 and session = ? and id <> ? order by number"
RECENT = "select id, record from executions order by number desc limit ?"
RECENT_OF_SESSION = "select id, record from executions where session = ? order by number desc limit ?"
OLDEST_ENDED = "select id, coalesce(ended_ms, created_ms) as at from executions where ended = 1 order by at, id"
ALL_IDS = "select id from executions"
NEWEST_CREATED = "select created_ms from executions order by number desc limit 1"

DAMAGED = "select id, reason from damaged order by id"
ADD_DAMAGED = "insert or replace into damaged (id, reason) values (?, ?)"
FORGET_DAMAGED = "delete from damaged"
VERIFIED = "select runs_mtime_ns from verified"
SET_VERIFIED = "insert or replace into verified (one, runs_mtime_ns) values (1, ?)"
