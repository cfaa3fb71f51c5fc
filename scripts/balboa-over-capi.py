#!/usr/bin/env python3
"""Runs Debian's balboa, whose backend stores DNS observations in RocksDB, and checks what it has.

usage: scripts/balboa-over-capi.py PROGRAMS LIBRARIES WORK

PROGRAMS is the directory of balboa's programs, LIBRARIES that of librocksdb.so.7.8, WORK one for
files. Observations are merged into their keys; the backend is killed and started in between.
"""

import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time

TIMEOUT_S = 120
EVENTS = 3000


def wait_for(what, condition):
    """Waits until a condition holds, and returns it."""
    end = time.monotonic() + TIMEOUT_S
    while not (found := condition()):
        if time.monotonic() > end:
            sys.exit(f"no {what} within {TIMEOUT_S} s")
        time.sleep(0.05)
    return found


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def listens(port):
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


class Balboa:
    """The backend over a library, and the frontend that feeds it."""

    def __init__(self, programs, libraries, work):
        self.programs, self.libraries, self.work = programs, libraries, work
        self.environment = os.environ | {"LD_LIBRARY_PATH": str(libraries)}

    def start(self):
        self.port = free_port()
        self.backend = subprocess.Popen(
            [self.programs / "balboa-rocksdb", "-R", "-d", self.work / "db", "-p", str(self.port)],
            env=self.environment,
        )
        wait_for("backend", lambda: listens(self.port))
        maps = pathlib.Path(f"/proc/{self.backend.pid}/maps").read_text()
        assert str(self.libraries) in maps, "the backend has another librocksdb"

    def kill(self):
        """It has no other end."""
        self.backend.kill()
        self.backend.wait(TIMEOUT_S)

    def feed(self, events):
        feed = self.work / "feed.sock"
        feeders = self.work / "feeders.yaml"
        feeders.write_text(
            f"feeder:\n  - {{name: s, type: socket, path: {feed}, input_format: suricata_dns}}\n"
        )
        frontend = subprocess.Popen(
            [self.programs / "balboa", "serve", "-f", feeders, "-H", f"127.0.0.1:{self.port}"]
            + ["-l", self.work / "log", "-p", str(free_port())],
        )
        wait_for("frontend", feed.exists)
        with socket.socket(socket.AF_UNIX) as link:
            wait_for("feeder", lambda: link.connect_ex(str(feed)) == 0)
            link.sendall("".join(json.dumps(event) + "\n" for event in events).encode())
        return frontend

    def dump(self):
        """What the backend has: counts and times by name and address."""
        console, dump = self.programs / "balboa-backend-console", self.work / "dump"
        with dump.open("wb") as file:
            command = [console, "dump", "-p", str(self.port)]
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
        lines = subprocess.check_output([console, "jsonize", "-d", dump], text=True).splitlines()
        entries = [json.loads(line) for line in lines]
        keys = [(entry["rrname"], entry["rdata"]) for entry in entries]
        assert keys == sorted(set(keys)), "the entries are out of order"
        values = [(entry["count"], entry["first_seen"], entry["last_seen"]) for entry in entries]
        return dict(zip(keys, values))


def observations(count):
    """Events, and what is to become of them."""
    draw, events, wanted = random.Random(7), [], {}
    for number in range(count):
        name = f"host{draw.randrange(60)}.example.com"
        address = f"10.0.{draw.randrange(4)}.{draw.randrange(9)}"
        second = 1_700_000_000 + number
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000000+0000", time.gmtime(second))
        dns = {"type": "answer", "id": 1, "rrname": name, "rrtype": "A", "rcode": "NOERROR"}
        dns |= {"rdata": address, "ttl": 60}
        events.append({"timestamp": stamp, "event_type": "dns", "dns": dns})
        seen, first, _ = wanted.get((name, address), (0, second, second))
        wanted[name, address] = (seen + 1, first, second)
    return events, wanted


def main():
    programs, libraries, work = (pathlib.Path(given).resolve() for given in sys.argv[1:])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    balboa = Balboa(programs, libraries, work)
    events, wanted = observations(EVENTS)
    balboa.start()
    frontend = balboa.feed(events)
    try:
        wait_for("complete data", lambda: balboa.dump() == wanted)
    finally:
        frontend.terminate()
        frontend.wait(TIMEOUT_S)
    balboa.kill()
    balboa.start()
    assert balboa.dump() == wanted, "after a restart"
    balboa.kill()
    print(f"balboa: {EVENTS} observations of {len(wanted)} entries, also after a restart")


main()
