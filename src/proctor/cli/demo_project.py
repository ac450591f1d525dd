"""The small project that ``proctor demo`` works on: a module with its tests, and a development server that is hard to get rid of.

Nothing has to be installed for it: ``unittest`` and ``http.server`` come with Python.
"""

from __future__ import annotations

import os

__all__ = ["FILES", "create"]

_MODULE = '''\
"""Counts what is in the store."""


class Inventory:
    def __init__(self):
        self._counts = {}

    def add(self, name, amount=1):
        self._counts[name] = self._counts.get(name, 0) + amount

    def take(self, name, amount=1):
        if self._counts.get(name, 0) < amount:
            raise LookupError(f"not enough {name}")
        self._counts[name] -= amount

    def count(self, name):
        return self._counts.get(name, 0)
'''

_TESTS = """\
import unittest

from inventory import Inventory


class InventoryTest(unittest.TestCase):
    def test_what_was_added_is_there(self):
        inventory = Inventory()
        inventory.add("apple", 3)
        self.assertEqual(inventory.count("apple"), 3)

    def test_what_was_taken_is_gone(self):
        inventory = Inventory()
        inventory.add("apple", 3)
        inventory.take("apple", 2)
        self.assertEqual(inventory.count("apple"), 1)

    def test_more_than_there_is_cannot_be_taken(self):
        with self.assertRaises(LookupError):
            Inventory().take("apple")
"""

_SERVER = '''\
"""A development server that does not listen to SIGTERM."""

import http.server
import signal
import sys

from inventory import Inventory

inventory = Inventory()
inventory.add("apple", 3)


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = f"apples: {inventory.count('apple')}\\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        print("served", self.path, flush=True)


signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Page)
print("listening on port", sys.argv[1], flush=True)
server.serve_forever()
'''

_START = '''\
"""Starts the server the way development tools do: as a child in a session of its own."""

import subprocess
import sys

sys.exit(subprocess.Popen([sys.executable, "server.py", sys.argv[1]], start_new_session=True).wait())
'''

FILES: dict[str, str] = {
    "inventory.py": _MODULE,
    "test_inventory.py": _TESTS,
    "server.py": _SERVER,
    "dev.py": _START,
}


def create(folder: str) -> None:
    """Write the project into a new folder."""
    os.mkdir(folder)
    for name, text in FILES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
