#!/usr/bin/env python3
"""Runs a network of four CometBFT nodes that keep all they have in RocksDB, and kills nodes.

usage: scripts/cometbft-over-capi.py PROGRAM LIBRARIES WORK BLOCKS KILLS

PROGRAM is cometbft, LIBRARIES the directory of its librocksdb, WORK one for files. The network
makes at least BLOCKS blocks with transactions; meanwhile nodes, at times several, are killed
KILLS times and started again. A node replays all blocks into its application at each start, and
ends if a hash is another. In the end all must have the same blocks, results and validators.
"""

import base64
import hashlib
import http.client
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

NODES = 4
TIMEOUT_S = 300
SETTINGS = {
    "DB_BACKEND": "rocksdb",
    "PROXY_APP": "kvstore",
    "LOG_LEVEL": "error",
    "P2P_ALLOW_DUPLICATE_IP": "true",
    "P2P_ADDR_BOOK_STRICT": "false",
    "P2P_PEX": "false",
    "CONSENSUS_TIMEOUT_PROPOSE": "1s",
    "CONSENSUS_TIMEOUT_COMMIT": "200ms",
}
# What a node must not say: that it disagrees, or that its data is damaged.
BAD_WORDS = ("CONSENSUS FAILURE", "panic:", "orruption", "rror committing", "conflicting")


def free_ports(count):
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in held]
    for server in held:
        server.close()
    return ports


class Node:
    """A process of the network, with its directory, its ports and its log."""

    def __init__(self, program, libraries, home, ports, peers):
        self.program, self.libraries, self.home, self.port = program, libraries, home, ports[0]
        settings = SETTINGS | {
            "RPC_LADDR": f"tcp://127.0.0.1:{ports[0]}",
            "P2P_LADDR": f"tcp://127.0.0.1:{ports[1]}",
            "P2P_PERSISTENT_PEERS": peers,
        }
        self.environment = os.environ | {"LD_LIBRARY_PATH": str(libraries)}
        self.environment |= {f"CMT_{name}": value for name, value in settings.items()}
        self.process = None

    def start(self):
        with (self.home / "log").open("ab") as log:
            command = [self.program, "node", "--home", self.home]
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)

    def end(self, kill):
        (self.process.kill if kill else self.process.terminate)()
        self.process.wait(TIMEOUT_S)
        self.process = None

    def ask(self, path):
        """The result of a call; None if the node gives no answer, or an error."""
        try:
            url = f"http://127.0.0.1:{self.port}/{path}"
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer).get("result")
        except (OSError, ValueError, http.client.HTTPException):
            return None

    def height(self):
        """Of the last block that the node has; 0 while it does not answer."""
        if self.process and self.process.poll() is not None:
            sys.exit(f"{self.home.name} ended with {self.process.returncode}: {self.home}/log")
        status = self.ask("status") if self.process else None
        return int(status["sync_info"]["latest_block_height"]) if status else 0

    def has_library(self):
        maps = pathlib.Path(f"/proc/{self.process.pid}/maps").read_text()
        return str(self.libraries) in maps


class Network:
    """Four validators, of which three agree on a block."""

    def __init__(self, program, libraries, work):
        homes = [work / f"node{number}" for number in range(NODES)]
        environment = os.environ | {"LD_LIBRARY_PATH": str(libraries)}

        def call(*arguments):
            command = [program, *arguments]
            return subprocess.check_output(command, env=environment, text=True).strip()

        hosts = [word for _ in homes for word in ("--hostname", "127.0.0.1")]
        call("testnet", "--v", str(NODES), "--o", str(work), *hosts)
        ids = [call("show-node-id", "--home", str(home)) for home in homes]
        ports = free_ports(2 * NODES)
        peers = [f"{id}@127.0.0.1:{ports[2 * at + 1]}" for at, id in enumerate(ids)]
        self.nodes = [
            Node(
                program,
                libraries,
                home,
                ports[2 * at : 2 * at + 2],
                ",".join(peers[:at] + peers[at + 1 :]),
            )
            for at, home in enumerate(homes)
        ]

    def start(self):
        for node in self.nodes:
            node.start()
        self.wait_for("network", lambda: self.is_even() and self.highest() > 0)
        assert all(node.has_library() for node in self.nodes), "a node has another librocksdb"

    def stop(self):
        for node in self.nodes:
            if node.process:
                node.end(kill=False)

    def highest(self):
        return max(node.height() for node in self.nodes)

    def is_even(self):
        """Whether all nodes have about the same blocks."""
        heights = [node.height() for node in self.nodes]
        return min(heights) > 0 and max(heights) - min(heights) <= 3

    def wait_for(self, what, condition):
        end = time.monotonic() + TIMEOUT_S
        while not condition():
            if time.monotonic() > end:
                heights = [node.height() for node in self.nodes]
                sys.exit(f"no {what} within {TIMEOUT_S} s, blocks {heights}")
            time.sleep(0.1)


def feed(network, draw, over):
    """Sends transactions to any node until told that it is over."""
    number = 0
    while not over.wait(0.05):
        number += 1
        node = draw.choice(network.nodes)
        entry = f"key{draw.randrange(500)}={number}-{'v' * 200}"
        node.ask(f"broadcast_tx_async?tx=0x{entry.encode().hex()}")


def kill_nodes(network, draw, blocks, kills):
    """Kills nodes at moments spread over the blocks. The network has none without three nodes."""
    done = 0
    while done < kills:
        network.wait_for("block", lambda: network.highest() >= (done + 1) * blocks // (kills + 1))
        time.sleep(draw.random())
        count = min(draw.choice([1] * 12 + [2] * 3 + [NODES]), kills - done)
        victims = draw.sample(network.nodes, count)
        for node in victims:
            node.end(kill=True)
        time.sleep(draw.random() * 3)
        for node in victims:
            node.start()
        network.wait_for("return of killed nodes", network.is_even)
        done += count
        print(f"{done} kills, {network.highest()} blocks", flush=True)
    network.wait_for("last block", lambda: network.highest() >= blocks)


def facts(node, height):
    """What a node says of a block: its hash and header, results, validators and transactions."""
    block = node.ask(f"block?height={height}")
    results = node.ask(f"block_results?height={height}")
    validators = node.ask(f"validators?height={height}")
    assert block and results and validators, f"{node.home.name} lacks a part of block {height}"
    return block, results, validators


def compare(network, blocks):
    """All nodes have the same blocks; what their indexes say of transactions is so."""
    heights = {}
    for height in range(1, blocks + 1):
        first = facts(network.nodes[0], height)
        for node in network.nodes[1:]:
            if facts(node, height) != first:
                sys.exit(f"{node.home.name} and {network.nodes[0].home.name} differ at {height}")
        for data in first[0]["block"]["data"]["txs"] or []:
            heights.setdefault(data, []).append(height)
    assert len(heights) > blocks, "the blocks are empty"
    lost = 0
    for data, places in heights.items():
        digest = hashlib.sha256(base64.b64decode(data)).hexdigest()
        for node in network.nodes:
            # A kill loses what an indexer had not yet been told.
            if (entry := node.ask(f"tx?hash=0x{digest}")) is None:
                lost += 1
            else:
                assert entry["tx"] == data and int(entry["height"]) in places, "a wrong entry"
    assert lost < len(heights) * NODES / 10, f"indexes lack {lost} entries"
    return len(heights), lost


def main():
    program, libraries, work = (pathlib.Path(given).resolve() for given in sys.argv[1:4])
    blocks, kills = map(int, sys.argv[4:])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    draw, over = random.Random(50), threading.Event()
    network = Network(program, libraries, work)
    network.start()
    feeder = threading.Thread(target=feed, args=(network, random.Random(7), over), daemon=True)
    feeder.start()
    try:
        kill_nodes(network, draw, blocks, kills)
        over.set()
        feeder.join()
        transactions, lost = compare(network, blocks)
        network.stop()
        network.start()
        assert compare(network, blocks)[0] == transactions, "after a restart"
    finally:
        network.stop()
    for node in network.nodes:
        lines = (node.home / "log").read_text(errors="replace").splitlines()
        bad = [line for line in lines if any(word in line for word in BAD_WORDS)]
        assert not bad, f"{node.home.name}: {bad[:5]}"
    print(
        f"cometbft: {blocks} blocks with {transactions} transactions and {kills} kills;"
        f" all nodes agree, also after a restart; {lost} entries were not indexed"
    )


main()
