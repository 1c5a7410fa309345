"""A Spark Connect server on a free port of this machine, until its standard input ends."""

from __future__ import annotations

import socket
import sys

import remuda.spark

PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> None:
    port = free_port()
    config = {"spark.plugins": PLUGIN, "spark.connect.grpc.binding.port": str(port)}
    spark = remuda.spark.session(master="local[2]", config=config)
    print(f"sc://127.0.0.1:{port}", flush=True)
    sys.stdin.read()
    spark.stop()


if __name__ == "__main__":
    main()
