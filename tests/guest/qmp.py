# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's monitor, for tests that look at a guest from outside."""
import json
import os
import socket
import struct
import sys
import time


class Qmp:
    def __init__(self, path, tries=6000):
        """The socket may be there within tries / 10 s only."""
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(tries):
            try:
                self.socket.connect(path)
                break
            except OSError:
                time.sleep(0.1)
        else:
            sys.exit(os.path.basename(sys.argv[0]) + ": no QEMU at " + path)
        credentials = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self.pid = struct.unpack("3i", credentials)[0]
        self.file = self.socket.makefile("rw")
        self.file.readline()
        self.ask("qmp_capabilities")

    def ask(self, command, **arguments):
        json.dump({"execute": command, "arguments": arguments}, self.file)
        self.file.write("\n")
        self.file.flush()
        while True:
            line = self.file.readline()
            if not line:
                raise EOFError
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise RuntimeError(answer["error"]["desc"])

    def device(self):
        for folder in ("/machine/peripheral", "/machine/peripheral-anon"):
            for entry in self.ask("qom-list", path=folder):
                if entry["type"] == "child<mlx5-hca>":
                    return folder + "/" + entry["name"]
        raise RuntimeError("no mlx5-hca")
