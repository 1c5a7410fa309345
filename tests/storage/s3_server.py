"""An S3 server in a process of its own, on this machine alone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from pyarrow import fs

BUCKET = "stores"
_KEY, _SECRET, _REGION = "key", "secret", "us-east-1"


class S3Server:
    def __init__(self, port: int) -> None:
        self._endpoint = f"127.0.0.1:{port}"
        self.filesystem = fs.S3FileSystem(
            access_key=_KEY,
            secret_key=_SECRET,
            region=_REGION,
            scheme="http",
            endpoint_override=self._endpoint,
            allow_bucket_creation=True,
        )

    def uri(self, path: str) -> str:
        options = f"scheme=http&region={_REGION}&endpoint_override={quote(self._endpoint, safe='')}"
        return f"s3://{_KEY}:{_SECRET}@{path}?{options}"

    def files(self, path: str) -> set[str]:
        """The names of all files below a path."""
        found = self.filesystem.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        return {each.path.removeprefix(path + "/") for each in found if each.type is fs.FileType.File}

    def read(self, path: str) -> bytes:
        with self.filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())

    def write(self, path: str, raw: bytes) -> None:
        with self.filesystem.open_output_stream(path) as stream:
            stream.write(raw)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-W", "ignore", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "AWS_EC2_METADATA_DISABLED": "true"}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    try:
        _wait_for(port, process)
        server = S3Server(port)
        server.filesystem.create_dir(BUCKET)
        yield server
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with socket.socket() as asking:
            if asking.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"the S3 server ended with {process.returncode}")
