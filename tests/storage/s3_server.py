"""An S3 server in a process of its own, on this machine alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

from pyarrow import fs

BUCKET = "stores"
_PATIENCE = 60.0
"""Seconds; a busy machine may keep the server from answering within the three that are usual."""
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
            connect_timeout=_PATIENCE,
            request_timeout=_PATIENCE,
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

    def requests(self) -> dict[str, int]:
        """The number of requests by method since the last time this was asked."""
        return dict(json.loads(self._control("GET", "requests")))

    def traffic(self, path: str) -> dict[str, tuple[int, int]]:
        """The requests of each object below a path since the last time this was asked, and the bytes of the answers."""
        counted = json.loads(self._control("GET", "traffic"))
        return {name.removeprefix(f"/{path}/"): tuple(each) for name, each in counted.items() if f"/{path}/" in name}

    def inject(self, fault: str, count: int) -> None:
        """Let the next puts of roots, or reads of segments, fail: see `s3_process`."""
        self._control("PUT", f"{fault}/{count}")

    def _control(self, method: str, path: str) -> Any:
        with urlopen(Request(f"http://{self._endpoint}/_control/{path}", method=method)) as answer:
            return answer.read()


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """It takes a port that is free and says which: one that was chosen beforehand may be taken when it starts."""
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("s3_process.py"))]
    environment = {**os.environ, "AWS_EC2_METADATA_DISABLED": "true"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    assert process.stdout is not None
    try:
        port = process.stdout.readline()
        if not port:
            raise RuntimeError(f"the S3 server ended with {process.wait()}")
        server = S3Server(int(port))
        server.filesystem.create_dir(BUCKET)
        yield server
    finally:
        process.kill()
        process.communicate()
